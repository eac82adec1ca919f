"""The live state of a classic group: its members, their pending responses, and the group state.

This is the soft state of ``ClassicGroup``: it is created from the group's record on first use, requests change it
between two records, and a failed append does not undo it (Kafka's ``ClassicGroup``). This module implements the rules
that need only the group. The functions of ``rebalance`` apply the changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NoReturn, TypeAlias

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order
from kafka_msgs.groups.classic.members import VALID_PREVIOUS_STATES, ClassicGroupMember, ClassicGroupState, MemberTable
from kafka_msgs.groups.consumer_protocol import CONSUMER_PROTOCOL
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.internal_topics.consumer_protocol import decode_embedded
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_msgs.messages.join_group_request import JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = ["LiveGroup"]

Protocols: TypeAlias = tuple[JoinGroupRequestProtocol, ...]

_NO_RECORD: Final = GroupMetadataValue(protocol=None, leader=None)


class LiveGroup:
    """The live state of a classic group, created from its ``record``, or without a record for a new group.

    ``since`` is the time of the last state change in milliseconds, or None if it is unknown. ``pending_join_members``
    are assigned ids whose members must still rejoin (KIP-394). ``pending_syncs`` are the members of the generation
    whose SyncGroup is missing. ``joining`` counts the members that wait for the next generation. ``member_added`` is
    set if a member has joined during the delay of the initial rebalance. ``subscribed`` are the topics that the
    members subscribe to, or None if the coordinator cannot decode the subscriptions.
    """

    __slots__ = (
        "_supported",
        "generation",
        "joining",
        "leader",
        "member_added",
        "members",
        "pending_join_members",
        "pending_syncs",
        "previous",
        "protocol_name",
        "protocol_type",
        "since",
        "state",
        "static_members",
        "subscribed",
    )

    def __init__(self, record: GroupMetadataValue | None) -> None:
        if record is None:
            record = _NO_RECORD
        self.state = ClassicGroupState.STABLE if record.members else ClassicGroupState.EMPTY
        self.previous = ClassicGroupState.DEAD
        self.since: int | None = None if record.current_state_timestamp == -1 else record.current_state_timestamp
        self.protocol_type: str | None = record.protocol_type or None
        self.protocol_name = record.protocol
        self.generation = record.generation
        self.leader = record.leader
        self.members = MemberTable()
        self.static_members: dict[str, str] = {}
        self.pending_join_members: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.joining = 0
        self.member_added = False
        self.subscribed: frozenset[str] | None = None
        self._supported: Counter[str] = Counter()
        for member in record.members:
            self.add(_restored(member, record))
        self.subscribed = self._subscriptions()

    @classmethod
    def from_consumers(cls, generation: int, members: Iterable[ClassicGroupMember], now: int) -> LiveGroup:
        """Return the state of a stable group of consumers that did not start with JoinGroup."""
        live = cls(None)
        live.state, live.since, live.generation = ClassicGroupState.STABLE, now, generation
        for member in members:
            live.add(member)
        live.protocol_name = live.select_protocol()
        live.subscribed = live._subscriptions()
        return live

    # Members.

    def add(self, member: ClassicGroupMember, promise: Future[JoinGroupResponse] | None = None) -> None:
        """Add a member with the future of its JoinGroup response, if any. Raises ``GroupError`` if it does not fit."""
        if member.instance_id is not None:
            if member.instance_id in self.static_members:
                _broken()
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if not self.supports(member.protocol_type, member.protocols):
            _broken()
        if self.leader is None:
            self.leader = member.member_id
        self.members.put(member)
        self._count(member.protocols, 1)
        self._wait(member, promise)
        self.pending_join_members.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id. The next member in Kafka's order replaces a removed leader."""
        member = self.members.pop(member_id)
        if member is not None:
            self._count(member.protocols, -1)
            self._wait(member, None)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next((each.member_id for each in self.members), None)
        self.pending_join_members.discard(member_id)
        self.pending_syncs.discard(member_id)

    def update(
        self,
        member: ClassicGroupMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        promise: Future[JoinGroupResponse] | None,
    ) -> None:
        """Update the protocols and timeouts of a member that rejoins, and set the future of its response."""
        self._count(member.protocols, -1)
        self._count(protocols, 1)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._wait(member, promise)

    def replace_static(self, old_id: str, new_id: str) -> ClassicGroupMember:
        """Give a static member a new member id, and fence pending requests with the old id."""
        old = self.members.pop(old_id)
        if old is None or old.instance_id is None:
            _broken()
        self.answer_join(old, _fenced_join(old_id))
        old.answer_sync(SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        new = evolve(old, member_id=new_id, joining=None, syncing=None, is_new=False)
        self.members.put(new)
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[old.instance_id] = new_id
        return new

    def answer_join(self, member: ClassicGroupMember, response: JoinGroupResponse) -> None:
        """Respond to the pending JoinGroup request of a member, if it has one."""
        promise = member.joining
        if promise is not None:
            promise.resolve(response)
            self._wait(member, None)

    def _wait(self, member: ClassicGroupMember, promise: Future[JoinGroupResponse] | None) -> None:
        self.joining += (promise is not None) - (member.joining is not None)
        member.joining = promise

    def validate_member(self, member_id: str, instance_id: str | None) -> ClassicGroupMember:
        """Return a member. Raises ``GroupError``: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        known = member_id if instance_id is None else self.static_members.get(instance_id)
        if known is not None and known != member_id:
            raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if known is None or member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    @property
    def all_joined(self) -> bool:
        """True if each member waits for the next generation and no id is pending."""
        return self.joining == len(self.members) and not self.pending_join_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The greatest rebalance timeout of the members. It is never negative."""
        return max([0, *(member.rebalance_timeout_ms for member in self.members)])

    def elect_joined_leader(self) -> bool:
        """Elect a leader among the joined members. Returns False if there is no leader, or if no member has joined."""
        if self.leader is None:
            return False
        leader = self.members.get(self.leader)
        if leader is None or leader.joining is None:
            joined = next((member for member in self.members if member.joining is not None), None)
            if joined is None:
                return False
            self.leader = joined.member_id
        return True

    # Protocols.

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols could be in the group."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type and protocols)
        if self.protocol_type != protocol_type:
            return False
        return any(self._supported[protocol.name] == len(self.members) for protocol in protocols)

    def select_protocol(self) -> str:
        """Return the protocol with the most votes among the protocols that all members support."""
        candidates = {name for name, count in self._supported.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members)
        return max(hash_map_order(votes), key=votes.__getitem__)

    def _count(self, protocols: Iterable[JoinGroupRequestProtocol], step: int) -> None:
        for protocol in protocols:
            self._supported[protocol.name] += step

    def _subscriptions(self) -> frozenset[str] | None:
        """The topics that the members subscribe to, or None if the coordinator cannot read them."""
        if self.protocol_type != CONSUMER_PROTOCOL or (self.members and self.protocol_name is None):
            return None
        topics: set[str] = set()
        for member in self.members:
            subscription = decode_embedded(ConsumerProtocolSubscription, member.metadata(self.protocol_name)).message
            if subscription is None:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)

    # States.

    def transition_to(self, state: ClassicGroupState, now: int) -> None:
        """Move to another state. Raises ``GroupError`` for an invalid transition."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            _broken()
        self.previous, self.state, self.since = self.state, state, now

    def next_generation(self, now: int) -> None:
        """Begin the next generation with the members that have joined."""
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed = self._subscriptions()
        self.transition_to(ClassicGroupState.COMPLETING_REBALANCE if self.members else ClassicGroupState.EMPTY, now)
        self.pending_syncs.clear()

    # Messages.

    def join_response(
        self, member_id: str, *, with_members: bool = False, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """Return the response that adds a member to the current generation."""
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=tuple(map(self._joined, self.members)) if with_members else (),
        )

    def _joined(self, member: ClassicGroupMember) -> JoinGroupResponseMember:
        return JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(self.protocol_name),
        )

    def metadata(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """Return the current record of the group, with the assignments of its members by id."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=-1 if self.since is None else self.since,
            members=tuple(
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members
            ),
        )


def _restored(member: MemberMetadata, record: GroupMetadataValue) -> ClassicGroupMember:
    protocol = JoinGroupRequestProtocol(name=record.protocol or "", metadata=member.subscription)
    return ClassicGroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout,
        session_timeout_ms=member.session_timeout,
        protocol_type=record.protocol_type,
        protocols=(protocol,),
        assignment=member.assignment,
    )


def _fenced_join(member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=member_id, protocol_name=None)


def _broken() -> NoReturn:
    """Raise Kafka's general error for a case that a conforming member cannot cause."""
    raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
