"""Behaviour of streams groups that a profile adds to the release: ``Profile.streams_extension``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic_support import ClassicMemberSupport
from kafka_msgs.groups.member_timers import Fence
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.topology import StreamsTopology

__all__ = ["resolve_patterns", "streams_extension"]


class StreamsExtension(Protocol):
    """Migration of live groups between the classic and the streams protocol, and patterns of source topics.

    ``CLASSIC_SUPPORT`` handles requests of classic protocol members. ``resolve`` returns a topology with the topics
    that its patterns match, and the patterns that match none.
    """

    CLASSIC_SUPPORT: ClassicMemberSupport[Any, Any]

    def upgrade(self, op: OperationContext, group: ClassicGroup, fence: Fence, /) -> StreamsGroup: ...

    def may_downgrade(
        self, op: OperationContext, group: StreamsGroup, leaving: Sequence[StreamsGroupMember], /
    ) -> bool: ...

    def downgrade(
        self, op: OperationContext, group: StreamsGroup, leaving: Sequence[StreamsGroupMember], /
    ) -> None: ...

    def has_patterns(self, topology: StreamsTopology, /) -> bool: ...

    def resolve(self, topology: StreamsTopology, topics: Iterable[str], /) -> tuple[StreamsTopology, Sequence[str]]: ...


def streams_extension(op: OperationContext) -> StreamsExtension | None:
    """Return the extension of the coordinator's profile, or None."""
    extension: StreamsExtension | None = op.services.streams_extension
    return extension


def resolve_patterns(op: OperationContext, topology: StreamsTopology) -> tuple[StreamsTopology, Sequence[str]]:
    """Return the topology with the topics that its patterns match, and the patterns that match none."""
    extension = streams_extension(op)
    return (topology, ()) if extension is None else extension.resolve(topology, op.image.topics)
