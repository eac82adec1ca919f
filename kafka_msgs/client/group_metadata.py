"""The identity of a member of a consumer group. A consumer has it, and a producer sends it with offsets (KIP-447)."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ConsumerGroupMetadata"]


@frozen
class ConsumerGroupMetadata:
    """The consumer whose offsets are committed. Without a member id the group is not asked whether it is a member."""

    group_id: str
    generation: int = -1
    """The generation, or the member epoch of the protocol of KIP-848."""
    member_id: str = ""
    instance_id: str | None = None
