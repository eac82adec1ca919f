"""A classic group as the other parts of the coordinator see it (Kafka's ``ClassicGroup``).

Kafka writes one record for a classic group when a rebalance is complete. So the hard state of the group is that record.
All else is in ``LiveGroup``, the soft state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.classic_state import ClassicGroupState
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.rebalance import schedule_heartbeat_timeout
from kafka_msgs.groups.consumer_protocol import CONSUMER_PROTOCOL
from kafka_msgs.groups.group import CommitCheck, Committer, ExpiryCondition, Group, is_expired
from kafka_msgs.groups.shard_state import OffsetAndPosition, ShardState
from kafka_msgs.groups.undo_log import Changes
from kafka_msgs.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.list_groups_response import ListedGroup

if TYPE_CHECKING:
    from kafka_msgs.groups.operation import OperationContext

__all__ = ["ClassicGroup", "apply_group_metadata"]

_WITH_MEMBERS = (
    ClassicGroupState.STABLE,
    ClassicGroupState.PREPARING_REBALANCE,
    ClassicGroupState.COMPLETING_REBALANCE,
)


class ClassicGroup(Group):
    """A classic group. ``record`` is None while the group only has offsets and nobody has joined it."""

    __slots__ = ("record",)

    kind = "classic"
    soft: LiveGroup | None

    def __init__(self, group_id: str, record: GroupMetadataValue | None = None) -> None:
        super().__init__(group_id)
        self.record = record

    @property
    def live(self) -> LiveGroup:
        """The live state. It is made from the record when it is first needed."""
        if self.soft is None:
            self.soft = LiveGroup(self.record)
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
        return self.live.state is ClassicGroupState.EMPTY

    @property
    def is_simple(self) -> bool:
        """Whether the group has nothing but offsets: nobody has joined it since it was made or loaded."""
        live = self.live
        return live.state is ClassicGroupState.EMPTY and live.protocol_type is None and not live.pending_join_members

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
        stable = live.state is ClassicGroupState.STABLE
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

    def validate_offset_commit(self, op: OperationContext, committer: Committer) -> CommitCheck | None:
        """Check that a member may commit: at its generation, and not while assignments are made.

        A commit outside a transaction shows that the member is alive.
        """
        live = self.live
        if live.state is ClassicGroupState.DEAD:
            raise GroupError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if committer.epoch < 0 and self.is_empty:
            return None
        member = None
        if committer.epoch >= 0 or committer.member_id or committer.instance_id is not None:
            member = live.validate_member(committer.member_id, committer.instance_id)
            if committer.epoch != live.generation:
                raise GroupError(error=ErrorCode.ILLEGAL_GENERATION)
        elif not committer.transactional and not self.is_empty:
            raise GroupError(error=ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.transactional and live.state is ClassicGroupState.COMPLETING_REBALANCE:
            raise GroupError(error=ErrorCode.REBALANCE_IN_PROGRESS)
        if member is not None and not committer.transactional:
            schedule_heartbeat_timeout(op, self, member)
        return None

    def validate_offset_fetch(self, op: OperationContext, *, member_id: str | None, epoch: int) -> None:
        """Refuse if the group is dead. Everybody may fetch offsets."""
        self._refuse_dead()

    def validate_offset_delete(self, op: OperationContext) -> None:
        """Refuse while there are members whose subscriptions are not known."""
        self._refuse_dead()
        if self.live.state in _WITH_MEMBERS and not self.uses_consumer_protocol:
            raise GroupError(error=ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self, op: OperationContext) -> None:
        """Refuse while there are members."""
        self._refuse_dead()
        if self.live.state in _WITH_MEMBERS:
            raise GroupError(error=ErrorCode.NON_EMPTY_GROUP)

    def _refuse_dead(self) -> None:
        if self.live.state is ClassicGroupState.DEAD:
            message = f"Group {self.group_id} is in dead state."
            raise GroupError(error=ErrorCode.GROUP_ID_NOT_FOUND, message=message)

    def emit_tombstones(self, op: OperationContext) -> None:
        """Emit the tombstone of the only record of the group."""
        op.emit(GroupMetadataKey(group=self.group_id), None)

    def cancel_timers(self, op: OperationContext) -> None:
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
        if self.uses_consumer_protocol and live.subscribed is not None and live.state is ClassicGroupState.STABLE:
            return is_expired
        return None

    def _since_empty(self, offset: OffsetAndPosition, now: int, retention: int) -> bool:
        since = self.live.since
        return is_expired(offset, now, retention, since)


def apply_group_metadata(
    state: ShardState, changes: Changes, key: GroupMetadataKey, value: GroupMetadataValue | None
) -> None:
    """Apply a record of a classic group. The live state of a group that has one stays as it is."""
    group = state.groups.get(key.group)
    if value is None:
        changes.delete(state.groups, key.group)
    elif isinstance(group, ClassicGroup):
        changes.assign(group, "record", value)
    else:
        changes.set(state.groups, key.group, ClassicGroup(key.group, value))
