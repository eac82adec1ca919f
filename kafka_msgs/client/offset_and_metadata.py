"""A position that a consumer group commits."""

from __future__ import annotations

from attrs import frozen

__all__ = ["OffsetAndMetadata"]


@frozen
class OffsetAndMetadata:
    """A committed position: the offset of the next record to read, the leader epoch before it, and a metadata string.

    ``leader_epoch`` is -1 if unknown. ``offset`` is -1 if an admin client requested a partition without a committed
    position. Kafka's class has the same name.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
