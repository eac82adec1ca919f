"""The states of a classic group, and its members: their protocols, pending responses, and Kafka's iteration order."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from enum import Enum
from typing import Final

from attrs import define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import DEFAULT_CAPACITY, grown, hash_map_order
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.messages.join_group_request import JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = ["CAN_REBALANCE", "VALID_PREVIOUS_STATES", "ClassicGroupMember", "ClassicGroupState", "MemberTable"]


class ClassicGroupState(Enum):
    """A state of a classic group. The value is the name that clients see."""

    EMPTY = "Empty"
    """The group has no members. It may have offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join for the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have joined. The leader's assignment is pending."""
    STABLE = "Stable"
    """Each member has its assignment."""
    DEAD = "Dead"
    """The coordinator has dropped the group, because it no longer leads the partition."""


_ANY: Final = frozenset(ClassicGroupState)

VALID_PREVIOUS_STATES: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY}
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: _ANY,
}
"""The states that a group may come from, for each state."""

CAN_REBALANCE: Final = VALID_PREVIOUS_STATES[ClassicGroupState.PREPARING_REBALANCE]
"""The states in which a rebalance can begin."""


@define(kw_only=True, eq=False)
class ClassicGroupMember:
    """The current state of a classic group member (Kafka's ``ClassicGroupMember``).

    ``joining`` and ``syncing`` are the futures of the member's pending responses. ``is_new`` is set until the member
    has been part of a generation. Timeouts are in milliseconds.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    assignment: bytes = b""
    joining: Future[JoinGroupResponse] | None = None
    syncing: Future[SyncGroupResponse] | None = None
    is_new: bool = False

    @property
    def is_waiting(self) -> bool:
        """True while the member has a pending response, and so does not need to send heartbeats."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the member's metadata for a protocol. Raises ``GroupError`` if it does not support the protocol."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def vote(self, candidates: Container[str]) -> str:
        """Return the first protocol of the member that is a candidate. Raises ``GroupError`` if there is none."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Respond to the pending SyncGroup request of the member, if any, and return whether there was one."""
        promise, self.syncing = self.syncing, None
        if promise is not None:
            promise.resolve(response)
        return promise is not None


class MemberTable:
    """Members by id, in the order of a ``java.util.HashMap``, which is visible in responses and records.

    A Java table grows with its members and never shrinks, so the order depends on its greatest size.
    """

    __slots__ = ("_by_id", "_order", "_peak")

    def __init__(self) -> None:
        self._by_id: dict[str, ClassicGroupMember] = {}
        self._order: list[ClassicGroupMember] | None = None
        self._peak = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._by_id

    def __iter__(self) -> Iterator[ClassicGroupMember]:
        if self._order is None:
            self._order = [
                self._by_id[member_id]
                for member_id in hash_map_order(self._by_id, capacity=grown(DEFAULT_CAPACITY, self._peak))
            ]
        return iter(self._order)

    def get(self, member_id: str) -> ClassicGroupMember | None:
        """Return the member of that id, or None."""
        return self._by_id.get(member_id)

    def put(self, member: ClassicGroupMember) -> None:
        """Add a member."""
        self._by_id[member.member_id] = member
        self._peak = max(self._peak, len(self._by_id))
        self._order = None

    def pop(self, member_id: str) -> ClassicGroupMember | None:
        """Remove and return the member of that id. None if there is none."""
        member = self._by_id.pop(member_id, None)
        if member is not None:
            self._order = None
        return member
