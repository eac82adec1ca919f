"""A consumer of the protocol of KIP-848."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.coordinator.clients.base import Client, ignore
from tests.coordinator.world import Body, World

__all__ = ["ConsumerClient"]

Owned = dict[str, set[int]]

_LOST = (25, 69, 110)
"""Errors that mean to join anew: unknown member, group gone, epoch fenced."""


class ConsumerClient(Client):
    """Joins, takes over what it is given in two phases, commits, leaves or falls silent, and comes back."""

    def __init__(self, world: World, group: str, name: str, *, instance: str | None = None) -> None:
        super().__init__(world, group, name)
        self.member = name
        self.instance = instance
        self.epoch: int | None = None
        self.owned: Owned = {}
        self.target: Owned = {}
        self.subscription: dict[str, Any] = self._some_subscription()

    def _some_subscription(self) -> dict[str, Any]:
        names = self.random.choice((["in"], ["in"], ["in", "u"], ["u", "x3"], ["in", "t"], ["x3", "y4"]))
        regex = self.random.choice((None, None, None, "", "i.*", "x.|y4"))
        assignor = self.random.choice((None, None, None, "range", "uniform"))
        return {"subscribedTopicNames": names, "subscribedTopicRegex": regex, "serverAssignor": assignor}

    def actions(self) -> Mapping[Callable[[], None], int]:
        """What the client may do now, with weights."""
        if self.epoch is None:
            return {self.join: 6, ignore: 4}
        return {
            self.heartbeat: 60,
            self.reconcile: 40,
            self.resubscribe: 3,
            self.commit: 6,
            self.fetch: 3,
            self.leave: 3,
            self.leave_for_a_while: 3 if self.instance else 0,
            self.fall_silent: 2,
            self.join: 1,
        }

    @property
    def settled(self) -> bool:
        """Whether it is a member that owns what it was given."""
        return self.epoch is not None and self.owned == self.target

    def settle(self) -> None:
        """Do what brings the group to rest: be a member, own what was given, send heartbeats."""
        if self.busy:
            return
        if self.epoch is None:
            self.join()
        elif self.settled:
            self.heartbeat()
        else:
            self.reconcile()

    def _send(self, epoch: int, **fields: Any) -> None:
        body = {"groupId": self.group, "memberId": self.member, "memberEpoch": epoch, "instanceId": self.instance}
        self.request("ConsumerGroupHeartbeat", body | {"rackId": None} | fields, self._answered)

    def join(self) -> None:
        """Join with the whole state."""
        self.owned, self.target = {}, {}
        timeout = self.random.choice((5000, 60_000, 300_000))
        self._send(0, rebalanceTimeoutMs=timeout, topicPartitions=[], **self.subscription)

    def heartbeat(self) -> None:
        """Say nothing new."""
        self._send(self.epoch or 0)

    def resubscribe(self) -> None:
        """Subscribe to something else."""
        self.subscription = self._some_subscription()
        self._send(self.epoch or 0, **self.subscription)

    def reconcile(self) -> None:
        """Give up what is no longer wanted; once that is done, own what was given."""
        kept = {topic: numbers & self.target.get(topic, set()) for topic, numbers in self.owned.items()}
        kept = {topic: numbers for topic, numbers in kept.items() if numbers}
        self.owned = dict(self.target) if kept == self.owned else kept
        partitions = [{"topicId": topic, "partitions": sorted(numbers)} for topic, numbers in self.owned.items()]
        self._send(self.epoch or 0, topicPartitions=partitions)

    def leave(self) -> None:
        """Leave for good."""
        self._send(-1)
        self.epoch = None

    def leave_for_a_while(self) -> None:
        """Leave as a static member that will be back."""
        self._send(-2)
        self.epoch = None
        self.member = f"{self.name}{self.random.randint(1, 3)}"

    def fall_silent(self) -> None:
        """Crash: say nothing until it joins anew."""
        self.epoch = None
        if self.random.random() < 0.5:
            self.member = f"{self.name}{self.random.randint(1, 3)}"

    def commit(self) -> None:
        """Commit an offset as a member."""
        partition = {"partitionIndex": self.random.randint(0, 2), "committedOffset": self.random.randint(0, 99)}
        body = {
            "groupId": self.group,
            "generationIdOrMemberEpoch": self.epoch,
            "memberId": self.member,
            "groupInstanceId": self.instance,
            "topics": [{"name": self.random.choice(("in", "u")), "partitions": [partition]}],
        }
        self.request("OffsetCommit", body, ignore, lowest=8, highest=9)

    def fetch(self) -> None:
        """Fetch offsets as a member."""
        group = {"groupId": self.group, "memberId": self.member, "memberEpoch": self.epoch, "topics": None}
        body = {"groups": [group], "requireStable": self.random.random() < 0.5}
        self.request("OffsetFetch", body, ignore, lowest=9, highest=9)

    def _answered(self, answer: Body) -> None:
        if answer["errorCode"] == 0:
            self.member = answer["memberId"] or self.member
            self.epoch = answer["memberEpoch"] if answer["memberEpoch"] >= 0 else None
            if answer["assignment"] is not None:
                entries = answer["assignment"]["topicPartitions"]
                self.target = {entry["topicId"]: set(entry["partitions"]) for entry in entries}
        elif answer["errorCode"] in _LOST:
            self.epoch = None
