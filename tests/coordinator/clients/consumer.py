"""A consumer with the protocol of KIP-848."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.coordinator.clients.base import ignore
from tests.coordinator.clients.epochs import EpochClient
from tests.coordinator.script_state import Body, World

__all__ = ["ConsumerClient"]


class ConsumerClient(EpochClient):
    """Joins, reconciles its assignment in two phases, commits, leaves or crashes, and returns."""

    def __init__(self, world: World, group: str, name: str, *, instance: str | None = None) -> None:
        super().__init__(world, group, name, instance=instance)
        self.subscription: dict[str, Any] = self._some_subscription()

    def _some_subscription(self) -> dict[str, Any]:
        names = self.random.choice((["in"], ["in"], ["in", "u"], ["u", "x3"], ["in", "t"], ["x3", "y4"]))
        regex = self.random.choice(("", "", "", "", "", "i.*", "x.|y4", "^[^g]+\\d?$"))
        assignor = self.random.choice((None, None, None, "range", "uniform"))
        return {"subscribedTopicNames": names, "subscribedTopicRegex": regex, "serverAssignor": assignor}

    def wants(self, topic: str) -> bool:
        """Return whether the client subscribes to a topic, by name or by pattern."""
        pattern = self.subscription["subscribedTopicRegex"]
        return topic in self.subscription["subscribedTopicNames"] or bool(pattern and re.fullmatch(pattern, topic))

    def actions(self) -> Mapping[Callable[[], None], int]:
        """Return the possible next actions, with weights."""
        if self.epoch is None:
            return {self.join: 6, ignore: 4}
        return {
            self.heartbeat: 60,
            self.reconcile: 40,
            self.change: 3,
            self.commit: 6,
            self.fetch: 3,
            self.leave: 3,
            self.leave_for_a_while: 3 if self.instance else 0,
            self.fall_silent: 2,
            self.join: 1,
        }

    def send(self, epoch: int, **fields: Any) -> None:
        """Send a heartbeat with some fields."""
        body = {"groupId": self.group, "memberId": self.member, "memberEpoch": epoch, "instanceId": self.instance}
        lowest = 0 if fields.get("subscribedTopicRegex") is None else 1
        self.request("ConsumerGroupHeartbeat", body | fields, self.answered, lowest=lowest)

    def join(self) -> None:
        """Join with the full state."""
        self.owned, self.target = {}, {}
        timeout = self.random.choice((5000, 60_000, 300_000))
        self.send(0, rebalanceTimeoutMs=timeout, topicPartitions=[], **self.subscription)

    def change(self) -> None:
        """Change the subscription."""
        self.subscription = self._some_subscription()
        self.send(self.epoch or 0, **self.subscription)

    def reconcile(self) -> None:
        """Revoke partitions outside the target assignment. If there are none, own the target assignment."""
        kept = {topic: numbers & self.target.get(topic, set()) for topic, numbers in self.owned.items()}
        kept = {topic: numbers for topic, numbers in kept.items() if numbers}
        self.owned = dict(self.target) if kept == self.owned else kept
        partitions = [{"topicId": topic, "partitions": sorted(numbers)} for topic, numbers in self.owned.items()]
        self.send(self.epoch or 0, topicPartitions=partitions)

    def fetch(self) -> None:
        """Fetch offsets as a member."""
        group = {"groupId": self.group, "memberId": self.member, "memberEpoch": self.epoch, "topics": None}
        body = {"groups": [group], "requireStable": self.random.random() < 0.5}
        self.request("OffsetFetch", body, ignore, lowest=9, highest=9)

    def answered(self, answer: Body) -> None:
        """Store the epoch and the target assignment."""
        super().answered(answer)
        if answer["errorCode"] == 0 and answer["assignment"] is not None:
            entries = answer["assignment"]["topicPartitions"]
            self.target = {entry["topicId"]: set(entry["partitions"]) for entry in entries}
