"""A member of a consumer group as others are told of it: a consumer says who it is, and a producer passes it on."""

from __future__ import annotations

from attrs import frozen

__all__ = ["GroupMember"]


@frozen
class GroupMember:
    """The consumer whose offsets are committed. Without a member id the group is not asked whether it is a member."""

    group_id: str
    generation: int = -1
    """The generation, or the member epoch of the protocol of KIP-848."""
    member_id: str = ""
    instance_id: str | None = None
