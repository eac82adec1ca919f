"""A member of a streams group: Kafka's ``StreamsGroupMember``, with the metadata of a classic protocol member."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from attrs import evolve, field, frozen

from kafka_msgs.drafts.kip_1071_migration import StreamsGroupClassicMember
from kafka_msgs.errors import DecodeError
from kafka_msgs.groups.modern_group import STATIC_LEAVE_EPOCH
from kafka_msgs.groups.streams.tasks import NO_TASKS, TasksTupleWithEpochs
from kafka_msgs.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue

__all__ = ["NEW_METADATA", "MemberState", "StreamsGroupMember", "with_classic_member"]

CLASSIC_TAG: Final = 1071
"""The tag of the field in ``StreamsGroupMemberMetadataValue``. Kafka uses small numbers for its own fields."""


def classic_member(metadata: StreamsGroupMemberMetadataValue) -> StreamsGroupClassicMember | None:
    """Return the classic protocol metadata in a member's record; None for a member of the streams protocol.

    A field with the tag but different content counts as none.
    """
    for tag, data in metadata.unknown_tagged_fields:
        if tag == CLASSIC_TAG:
            try:
                return StreamsGroupClassicMember.decode(data, 0)
            except DecodeError:
                return None
    return None


def with_classic_member(
    metadata: StreamsGroupMemberMetadataValue, classic: StreamsGroupClassicMember | None
) -> StreamsGroupMemberMetadataValue:
    """Return the member metadata with the classic protocol metadata added, or removed if it is None."""
    others = tuple(each for each in metadata.unknown_tagged_fields if each[0] != CLASSIC_TAG)
    own = () if classic is None else ((CLASSIC_TAG, classic.encode(0)),)
    return evolve(metadata, unknown_tagged_fields=tuple(sorted((*others, *own))))


class MemberState(IntEnum):
    """The progress of a member towards its target, as in its record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        """Return the state of a record. A number that this release does not define is ``UNKNOWN``."""
        return cls(value) if value in _STATES else cls.UNKNOWN


_STATES: Final = frozenset(MemberState)

NEW_METADATA: Final = StreamsGroupMemberMetadataValue(instance_id=None, rack_id=None, topology_epoch=-1)
"""The metadata of a member before its first heartbeat."""


@frozen(kw_only=True)
class StreamsGroupMember:
    """The recorded state of a member: its reported metadata, and its current assignment."""

    member_id: str
    metadata: StreamsGroupMemberMetadataValue = NEW_METADATA
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: TasksTupleWithEpochs = NO_TASKS
    revoking: TasksTupleWithEpochs = NO_TASKS
    """The tasks that the member must still revoke."""
    classic: StreamsGroupClassicMember | None = field(init=False)
    """The metadata of a classic protocol member; None for a member of the streams protocol.

    It is a decoded copy of a field of ``metadata``, for fast access.
    """

    @classic.default
    def _classic(self) -> StreamsGroupClassicMember | None:
        return classic_member(self.metadata)

    @property
    def instance_id(self) -> str | None:
        """The name of a static member; None for a dynamic one."""
        return self.metadata.instance_id

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the member may take to revoke tasks, in milliseconds."""
        return self.metadata.rebalance_timeout_ms

    @property
    def is_revoking(self) -> bool:
        """Whether the member has tasks to revoke first."""
        return self.state is MemberState.UNREVOKED_TASKS

    @property
    def holding(self) -> TasksTupleWithEpochs:
        """All tasks that the member may still run: its assignment, and the tasks that it must revoke."""
        mine, leaving = self.assigned, self.revoking
        return TasksTupleWithEpochs(
            {**leaving.active, **mine.active}, mine.standby | leaving.standby, mine.warmup | leaving.warmup
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target assignment of an epoch."""
        return self.epoch == epoch and self.state == MemberState.STABLE

    def as_temporarily_left(self) -> StreamsGroupMember:
        """Return the static member after it left temporarily."""
        return evolve(self, epoch=STATIC_LEAVE_EPOCH, revoking=NO_TASKS, assigned=self.assigned.with_epoch(0))
