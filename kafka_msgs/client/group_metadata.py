"""The identity of a consumer group member. Consumers provide it, and producers send it with offsets (KIP-447)."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ConsumerGroupMetadata"]


@frozen
class ConsumerGroupMetadata:
    """The consumer whose offsets are committed. Without a member id, the coordinator does not check the membership."""

    group_id: str
    generation: int = -1
    """The generation, or the member epoch in the KIP-848 protocol."""
    member_id: str = ""
    instance_id: str | None = None
