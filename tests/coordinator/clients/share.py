"""A member of a share group."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.coordinator.clients.base import Client, ignore
from tests.coordinator.script_state import Body, World

__all__ = ["ShareClient"]


class ShareClient(Client):
    """Joins, sends heartbeats, changes its subscription, leaves or crashes, and returns."""

    def __init__(self, world: World, group: str, name: str) -> None:
        super().__init__(world, group, name)
        self.epoch: int | None = None

    def actions(self) -> Mapping[Callable[[], None], int]:
        """Return the possible next actions, with weights."""
        if self.epoch is None:
            return {self.join: 6, ignore: 4}
        return {
            self.heartbeat: 60,
            self.resubscribe: 8,
            self.describe: 6,
            self.leave: 4,
            self.fall_silent: 3,
            self.join: 1,
        }

    def _send(self, epoch: int, topics: list[str] | None = None) -> None:
        body = {"groupId": self.group, "memberId": self.name, "memberEpoch": epoch, "subscribedTopicNames": topics}
        self.request("ShareGroupHeartbeat", body, self._answered)

    def _some_topics(self) -> list[str]:
        return self.random.choice((["in"], ["in", "u"], ["x3"], ["y4", "t"]))

    def join(self) -> None:
        """Join with a subscription."""
        self._send(0, self._some_topics())

    def heartbeat(self) -> None:
        """Send a heartbeat without changes."""
        self._send(self.epoch or 0)

    def resubscribe(self) -> None:
        """Change the subscription."""
        self._send(self.epoch or 0, self._some_topics())

    def describe(self) -> None:
        """Describe the group."""
        self.request("ShareGroupDescribe", {"groupIds": [self.group]}, ignore)

    def leave(self) -> None:
        """Leave permanently."""
        self._send(-1)
        self.epoch = None

    def fall_silent(self) -> None:
        """Crash."""
        self.epoch = None

    def _answered(self, answer: Body) -> None:
        if answer["errorCode"] == 0:
            self.epoch = answer["memberEpoch"] if answer["memberEpoch"] >= 0 else None
        elif answer["errorCode"] in (25, 69, 110):
            self.epoch = None
