"""Share sessions: the partitions that a share group member fetches, and the state of their responses (KIP-932).

A session belongs to one broker and one connection. Its epoch counts the requests: 0 starts a session, and -1 ends it.
In Kafka these are ``ShareSessionCache`` and ``ShareSessionContext``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from attrs import define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "MemberKey",
    "ShareSession",
    "ShareSessionCache",
    "TopicIdPartition",
    "rotated",
]

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_EPOCH: Final = 2**31 - 1

TopicIdPartition: TypeAlias = tuple[UUID, int]
"""A topic id and a partition number."""


class MemberKey(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


@define(eq=False)
class ShareSession:
    """A member's session.

    ``places`` are the fetched partitions, in order, each with a flag for whether the next response must include it.
    ``connection`` is the connection number.
    """

    key: MemberKey
    connection: int
    partitions: dict[TopicIdPartition, bool]
    epoch: int = INITIAL_EPOCH + 1

    def update_responded(self, place: TopicIdPartition, *, has_records: bool, failed: bool) -> bool:
        """Return whether a response must include a partition, and remember it.

        Partitions with records move to the end.
        """
        if place not in self.partitions:
            return False
        shown = has_records or failed or self.partitions[place]
        self.partitions[place] = failed
        if has_records:
            self.partitions[place] = self.partitions.pop(place)
        return shown

    def advance(self, epoch: int) -> None:
        """Advance to the next request.

        Raises ``RequestRefusedError`` with INVALID_SHARE_SESSION_EPOCH for another epoch.
        """
        if epoch != self.epoch:
            raise RequestRefusedError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        self.epoch = self.epoch + 1 if self.epoch < _MAX_EPOCH else 1


def rotated(places: list[TopicIdPartition], epoch: int) -> list[TopicIdPartition]:
    """Return the partitions of a fetch, rotated by the epoch so that each partition comes first in turn."""
    at = epoch % len(places) if places and epoch > 0 else 0
    return places[at:] + places[:at]


class ShareSessionCache:
    """The share sessions of one broker, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[MemberKey, ShareSession] = {}
        self._sizes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: MemberKey) -> ShareSession:
        """Return the session of a member. Raises ``RequestRefusedError`` with SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise RequestRefusedError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def begin(self, key: MemberKey, places: Iterable[TopicIdPartition], connection: int) -> ShareSession:
        """Begin a session, replacing the member's previous session.

        Raises ``RequestRefusedError`` with SHARE_SESSION_LIMIT_REACHED if all slots are in use.
        """
        self.end(key)
        if len(self._sessions) >= self._limit:
            raise RequestRefusedError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(key, connection, dict.fromkeys(places, False))
        self._sessions[key] = session
        self._sizes[key.group_id] = self._sizes.get(key.group_id, 0) + 1
        return session

    def update(
        self, key: MemberKey, epoch: int, add: Iterable[TopicIdPartition], forget: Iterable[TopicIdPartition]
    ) -> ShareSession:
        """Apply a fetch to an existing session. Raises ``RequestRefusedError``.

        The errors are SHARE_SESSION_NOT_FOUND and INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.get(key)
        session.advance(epoch)
        for place in add:
            session.partitions.setdefault(place, True)
        for place in forget:
            session.partitions.pop(place, None)
        return session

    def end(self, key: MemberKey) -> ShareSession | None:
        """Remove the session of a member, and return it."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._sizes[key.group_id] -= 1
            if not self._sizes[key.group_id]:
                del self._sizes[key.group_id]
        return session

    def has(self, session: ShareSession) -> bool:
        """Return whether a session is still active."""
        return self._sessions.get(session.key) is session

    def has_members(self, group_id: str) -> bool:
        """Return whether a member of the group has a session."""
        return group_id in self._sizes
