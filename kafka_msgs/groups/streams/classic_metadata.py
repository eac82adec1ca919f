"""The classic protocol metadata of a member: a tagged field of its record has the fields that a classic group needs."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from kafka_msgs.drafts.kip_1071_migration import StreamsGroupClassicMember
from kafka_msgs.errors import DecodeError
from kafka_msgs.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue

__all__ = ["CLASSIC_TAG", "classic_member", "with_classic_member"]

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
