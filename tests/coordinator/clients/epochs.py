"""The base of clients of the newer protocols: epochs, heartbeats with state, and two ways to leave."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tests.coordinator.clients.base import Client, ignore
from tests.coordinator.script_state import Body, World

__all__ = ["EpochClient"]

_LOST = (25, 69, 110)
"""Errors after which a member joins again: unknown member, group gone, epoch fenced."""


class EpochClient(Client):
    """A member with an epoch. ``owned`` is its current assignment, ``target`` the last assignment it received."""

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
        """Join with the full state."""

    @abstractmethod
    def reconcile(self) -> None:
        """Revoke partitions or tasks outside the target assignment. If there are none, own the target assignment."""

    @abstractmethod
    def change(self) -> None:
        """Make a change that triggers a new assignment."""

    @property
    def settled(self) -> bool:
        """Whether the client is a member that owns its target assignment."""
        return self.epoch is not None and self.owned == self.target

    def settle(self) -> None:
        """Send the request that brings the group closer to rest: join, reconcile, or a heartbeat."""
        if self.busy:
            return
        if self.epoch is None:
            self.join()
        elif self.settled:
            self.heartbeat()
        else:
            self.reconcile()

    def answered(self, answer: Body) -> None:
        """Store the epoch of a response, or drop it after an error that invalidates it."""
        if answer["errorCode"] == 0:
            self.member = answer["memberId"] or self.member
            self.epoch = answer["memberEpoch"] if answer["memberEpoch"] >= 0 else None
        elif answer["errorCode"] in _LOST:
            self.epoch = None

    def heartbeat(self) -> None:
        """Send a heartbeat without changes."""
        self.send(self.epoch or 0)

    def leave(self) -> None:
        """Leave permanently."""
        self.send(-1)
        self.epoch = None

    def leave_for_a_while(self) -> None:
        """Leave temporarily, as a static member."""
        self.send(-2)
        self.epoch = None
        self._take_another_id()

    def fall_silent(self) -> None:
        """Crash: send no request until the next join."""
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
