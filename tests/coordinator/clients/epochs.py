"""What clients of the newer protocols share: epochs, heartbeats with a state, and two ways to leave."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tests.coordinator.clients.base import Client, ignore
from tests.coordinator.script_state import Body, World

__all__ = ["EpochClient"]

_LOST = (25, 69, 110)
"""Errors that mean to join anew: unknown member, group gone, epoch fenced."""


class EpochClient(Client):
    """A member with an epoch. ``owned`` is what it has, ``target`` what it was given last."""

    def __init__(self, world: World, group: str, name: str, *, instance: str | None = None) -> None:
        super().__init__(world, group, name)
        self.member = name
        self.instance = instance
        self.epoch: int | None = None
        self.owned: dict[str, Any] = {}
        self.target: dict[str, Any] = {}

    @abstractmethod
    def send(self, epoch: int, **fields: Any) -> None:
        """Send a heartbeat with some fields."""

    @abstractmethod
    def join(self) -> None:
        """Join with the whole state."""

    @abstractmethod
    def reconcile(self) -> None:
        """Give up what is no longer wanted; once that is done, own what was given."""

    @abstractmethod
    def change(self) -> None:
        """Ask for something that makes the group assign anew."""

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

    def answered(self, answer: Body) -> None:
        """Take the epoch from an answer, or the news that it is lost."""
        if answer["errorCode"] == 0:
            self.member = answer["memberId"] or self.member
            self.epoch = answer["memberEpoch"] if answer["memberEpoch"] >= 0 else None
        elif answer["errorCode"] in _LOST:
            self.epoch = None

    def heartbeat(self) -> None:
        """Say nothing new."""
        self.send(self.epoch or 0)

    def leave(self) -> None:
        """Leave for good."""
        self.send(-1)
        self.epoch = None

    def leave_for_a_while(self) -> None:
        """Leave as a static member that will be back."""
        self.send(-2)
        self.epoch = None
        self._take_another_id()

    def fall_silent(self) -> None:
        """Crash: say nothing until it joins anew."""
        self.epoch = None
        if self.random.random() < 0.5:
            self._take_another_id()

    def _take_another_id(self) -> None:
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
