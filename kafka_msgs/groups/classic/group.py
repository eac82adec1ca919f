"""A classic group as the other parts of the coordinator see it (Kafka's ``ClassicGroup``).

Kafka writes one record for a classic group when a rebalance is complete. So the hard state of the group is that record.
All else is in ``Membership``, the soft state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.membership import Membership
from kafka_msgs.groups.classic.rebalance import expect_heartbeat
from kafka_msgs.groups.classic.states import ClassicState
from kafka_msgs.groups.embedded import CONSUMER_PROTOCOL
from kafka_msgs.groups.group import CommitCheck, Committer, ExpiryCondition, Group, is_expired
from kafka_msgs.groups.journal import Changes
from kafka_msgs.groups.state import Offset, State
from kafka_msgs.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.list_groups_response import ListedGroup

if TYPE_CHECKING:
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["ClassicGroup", "apply_group_metadata"]

_WITH_MEMBERS = (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE)


class ClassicGroup(Group):
    """A classic group. ``record`` is None while the group only has offsets and nobody has joined it."""

    __slots__ = ("record",)

    kind = "classic"
    soft: Membership | None

    def __init__(self, group_id: str, record: GroupMetadataValue | None = None) -> None:
        super().__init__(group_id)
        self.record = record

    @property
    def live(self) -> Membership:
        """The live state. It is made from the record when it is first needed."""
        if self.soft is None:
            self.soft = Membership(self.record)
        return self.soft

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, so that the coordinator can read their subscriptions."""
        return self.live.protocol_type == CONSUMER_PROTOCOL

    def state_name(self) -> str:
        """The name of the state as Kafka writes it, such as ``PreparingRebalance``."""
        return self.live.state.value

    @property
    def is_empty(self) -> bool:
        """Whether the group is in the state Empty. Members may be joining."""
        return self.live.state is ClassicState.EMPTY

    @property
    def is_simple(self) -> bool:
        """Whether the group has nothing but offsets: nobody has joined it since it was made or loaded."""
        live = self.live
        return live.state is ClassicState.EMPTY and live.protocol_type is None and not live.pending

    def listed(self) -> ListedGroup:
        """Return the group's entry in the answer to ListGroups. A group of offsets alone has no protocol type."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.live.protocol_type or "",
            group_state=self.state_name(),
            group_type=self.kind,
        )

    def describe(self) -> DescribedGroup:
        """Return the description of the group. It has what the members sent only while the group is Stable."""
        live = self.live
        stable = live.state is ClassicState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name(),
            protocol_type=live.protocol_type or "",
            protocol_data=live.protocol_name or "" if stable else "",
            members=tuple(
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(live.protocol_name) if stable else b"",
                    member_assignment=member.assignment,
                )
                for member in live.members
            ),
        )

    def validate_offset_commit(self, tx: Transaction, by: Committer) -> CommitCheck | None:
        """Check that a member may commit: at its generation, and not while assignments are made.

        A commit outside a transaction shows that the member is alive.
        """
        live = self.live
        if live.state is ClassicState.DEAD:
            raise GroupError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if by.epoch < 0 and self.is_empty:
            return None
        member = None
        if by.epoch >= 0 or by.member_id or by.instance_id is not None:
            member = live.validate_member(by.member_id, by.instance_id)
            if by.epoch != live.generation:
                raise GroupError(error=ErrorCode.ILLEGAL_GENERATION)
        elif not by.transactional and not self.is_empty:
            raise GroupError(error=ErrorCode.UNKNOWN_MEMBER_ID)
        if not by.transactional and live.state is ClassicState.COMPLETING_REBALANCE:
            raise GroupError(error=ErrorCode.REBALANCE_IN_PROGRESS)
        if member is not None and not by.transactional:
            expect_heartbeat(tx, self, member)
        return None

    def validate_offset_fetch(self, tx: Transaction, *, member_id: str | None, epoch: int) -> None:
        """Refuse if the group is dead. Everybody may fetch offsets."""
        self._refuse_dead()

    def validate_offset_delete(self, tx: Transaction) -> None:
        """Refuse while there are members whose subscriptions are not known."""
        self._refuse_dead()
        if self.live.state in _WITH_MEMBERS and not self.uses_consumer_protocol:
            raise GroupError(error=ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self, tx: Transaction) -> None:
        """Refuse while there are members."""
        self._refuse_dead()
        if self.live.state in _WITH_MEMBERS:
            raise GroupError(error=ErrorCode.NON_EMPTY_GROUP)

    def _refuse_dead(self) -> None:
        if self.live.state is ClassicState.DEAD:
            message = f"Group {self.group_id} is in dead state."
            raise GroupError(error=ErrorCode.GROUP_ID_NOT_FOUND, message=message)

    def emit_tombstones(self, tx: Transaction) -> None:
        """Emit the tombstone of the only record of the group."""
        tx.emit(GroupMetadataKey(group=self.group_id), None)

    def cancel_timers(self, tx: Transaction) -> None:
        """Kafka keeps the timers of a classic group. They find no group when they expire."""

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member reads the topic. Each topic counts if a subscription of consumers cannot be read."""
        subscribed = self.live.subscribed
        return self.uses_consumer_protocol if subscribed is None else topic in subscribed

    def offset_expiration(self) -> ExpiryCondition | None:
        """Return the condition for an offset to be expired (KIP-211).

        Offsets of a group that nobody joined expire by their commit. Those of an empty group expire by the time since
        when it is empty. Those of a Stable group of consumers expire by their commit, if nobody reads the topic.
        """
        live = self.live
        if live.protocol_type is None:
            return is_expired
        if self.is_empty:
            return self._since_empty
        if self.uses_consumer_protocol and live.subscribed is not None and live.state is ClassicState.STABLE:
            return is_expired
        return None

    def _since_empty(self, offset: Offset, now: int, retention: int) -> bool:
        since = self.live.since
        return is_expired(offset, now, retention, since)


def apply_group_metadata(
    state: State, changes: Changes, key: GroupMetadataKey, value: GroupMetadataValue | None
) -> None:
    """Apply a record of a classic group. The live state of a group that has one stays as it is."""
    group = state.groups.get(key.group)
    if value is None:
        changes.delete(state.groups, key.group)
    elif isinstance(group, ClassicGroup):
        changes.assign(group, "record", value)
    else:
        changes.set(state.groups, key.group, ClassicGroup(key.group, value))
