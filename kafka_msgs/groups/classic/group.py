"""The interface of a classic group to other modules of the coordinator (Kafka's ``ClassicGroup``).

Kafka writes one record for a classic group when a rebalance is complete. That record is the hard state of the group.
The soft state is ``LiveGroup``.
"""

from __future__ import annotations

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.members import ClassicGroupState
from kafka_msgs.groups.classic.rebalance import schedule_heartbeat_timeout
from kafka_msgs.groups.consumer_protocol import CONSUMER_PROTOCOL
from kafka_msgs.groups.group import CommitCheck, Committer, ExpiryCondition, Group, OffsetAndPosition, is_expired
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.operation import ShardState
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.list_groups_response import ListedGroup

__all__ = ["ClassicGroup", "apply_group_metadata"]

_WITH_MEMBERS = (
    ClassicGroupState.STABLE,
    ClassicGroupState.PREPARING_REBALANCE,
    ClassicGroupState.COMPLETING_REBALANCE,
)


class ClassicGroup(Group):
    """A classic group. ``record`` is None while the group only has offsets and no member has joined."""

    __slots__ = ("record",)

    kind = "classic"
    soft: LiveGroup | None

    def __init__(self, group_id: str, record: GroupMetadataValue | None = None) -> None:
        super().__init__(group_id)
        self.record = record

    @property
    def live(self) -> LiveGroup:
        """The live state, created from the record on first use."""
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
        """Whether the group only has offsets: no member has joined since it was created or loaded."""
        live = self.live
        return live.state is ClassicGroupState.EMPTY and live.protocol_type is None and not live.pending_join_members

    def listed(self) -> ListedGroup:
        """Return the group's entry in a ListGroups response. A group that only has offsets has no protocol type."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.live.protocol_type or "",
            group_state=self.state_name(),
            group_type=self.kind,
        )

    def describe(self) -> DescribedGroup:
        """Return the description of the group. Only a Stable group's description has metadata and assignments."""
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

    def validate_offset_commit(self, op: GroupOperation, committer: Committer) -> CommitCheck | None:
        """Check that a member may commit: its generation must match, and the group must not be completing a rebalance.

        A commit outside a transaction counts as a heartbeat of the member.
        """
        live = self.live
        if live.state is ClassicGroupState.DEAD:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if committer.epoch < 0 and self.is_empty:
            return None
        member = None
        if committer.epoch >= 0 or committer.member_id or committer.instance_id is not None:
            member = live.validate_member(committer.member_id, committer.instance_id)
            if committer.epoch != live.generation:
                raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        elif not committer.transactional and not self.is_empty:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.transactional and live.state is ClassicGroupState.COMPLETING_REBALANCE:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        if member is not None and not committer.transactional:
            schedule_heartbeat_timeout(op, self, member)
        return None

    def validate_offset_fetch(self, op: GroupOperation, *, member_id: str | None, epoch: int) -> None:
        """Refuse if the group is dead. Everybody may fetch offsets."""
        self._refuse_dead()

    def validate_offset_delete(self, op: GroupOperation) -> None:
        """Refuse while the group has members with unknown subscriptions."""
        self._refuse_dead()
        if self.live.state in _WITH_MEMBERS and not self.uses_consumer_protocol:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self, op: GroupOperation) -> None:
        """Refuse while the group has members."""
        self._refuse_dead()
        if self.live.state in _WITH_MEMBERS:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP)

    def _refuse_dead(self) -> None:
        if self.live.state is ClassicGroupState.DEAD:
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def emit_tombstones(self, op: GroupOperation) -> None:
        """Emit the tombstone of the only record of the group."""
        op.emit(GroupMetadataKey(group=self.group_id), None)

    def cancel_timers(self, op: GroupOperation) -> None:
        """Do nothing: Kafka keeps the timers of a classic group. They find no group when they expire."""

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member reads the topic. If consumer subscriptions cannot be decoded, every topic counts as read."""
        subscribed = self.live.subscribed
        return self.uses_consumer_protocol if subscribed is None else topic in subscribed

    def offset_expiration(self) -> ExpiryCondition | None:
        """Return the condition for an offset to be expired (KIP-211).

        If no member has ever joined the group, its offsets expire by their commit time. If the group is empty, the
        retention starts at the time at which it became empty. If a group of consumers is Stable, offsets of topics that
        no member reads expire by their commit time.
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
    """Apply a record of a classic group. An existing live state does not change."""
    group = state.groups.get(key.group)
    if value is None:
        changes.delete(state.groups, key.group)
    elif isinstance(group, ClassicGroup):
        changes.assign(group, "record", value)
    else:
        changes.set(state.groups, key.group, ClassicGroup(key.group, value))
