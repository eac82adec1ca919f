"""The identity of a consumer group member. Consumers provide it, and producers send it with offsets (KIP-447)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from attrs import field, frozen

from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["ConsumerGroupMetadata"]


@frozen
class ConsumerGroupMetadata:
    """The consumer whose offsets are committed. Without a member id, the coordinator does not check the membership."""

    group_id: str
    generation: int = -1
    """The generation, or the member epoch in the KIP-848 protocol."""
    member_id: str = ""
    instance_id: str | None = None
    topic_ids: Mapping[TopicPartition, UUID] = field(factory=dict, eq=False, repr=False)
    """The topic ids of the returned records. The broker refuses offsets of a topic that was deleted meanwhile, even if
    a new topic has its name (KIP-1319).
    """
