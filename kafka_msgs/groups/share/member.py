"""A member of a share group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from attrs import field, frozen

from kafka_msgs.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue

__all__ = ["Partitions", "ShareMember"]

Partitions: TypeAlias = Mapping[UUID, Sequence[int]]
"""Partitions by topic id, in the order of Kafka's maps."""

_NEW_METADATA: Final = ShareGroupMemberMetadataValue(rack_id=None)
_STABLE: Final = 0


@frozen(kw_only=True)
class ShareMember:
    """A member. ``metadata`` is the value of its record. ``assigned`` are the partitions that it reads."""

    member_id: str
    metadata: ShareGroupMemberMetadataValue = _NEW_METADATA
    epoch: int = 0
    previous_epoch: int = -1
    state: int = _STABLE
    assigned: Partitions = field(factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target of that epoch."""
        return self.state == _STABLE and self.epoch == epoch
