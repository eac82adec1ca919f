"""Consumer group offsets that a transaction commits (KIP-447)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.producer.producer_batch import ProducerIdAndEpoch
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_msgs.messages.txn_offset_commit_response import TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic
from kafka_msgs.schema import ZERO_UUID

__all__ = ["commit_errors", "commit_request", "has_topic_ids", "normalize_offsets"]


def has_topic_ids(offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata) -> bool:
    """Return whether the topic ids of all offsets are known."""
    return all(name in group.topic_ids for name in offsets)


def commit_request(
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: ConsumerGroupMetadata,
    *,
    by_id: bool,
) -> TxnOffsetCommitRequest:
    """Return the request that commits offsets in a producer's transaction. Topics have ids or names, see ``by_id``."""
    topics: dict[tuple[str, UUID], list[TxnOffsetCommitRequestPartition]] = {}
    for name, offset in offsets.items():
        entry = TxnOffsetCommitRequestPartition(
            partition_index=name.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            committed_metadata=offset.metadata,
        )
        topics.setdefault((name.topic, group.topic_ids[name] if by_id else ZERO_UUID), []).append(entry)
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        generation_id_or_member_epoch=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=tuple(
            TxnOffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=tuple(entries))
            for (topic, topic_id), entries in topics.items()
        ),
    )


def normalize_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata | str
) -> tuple[dict[TopicPartition, OffsetAndMetadata], ConsumerGroupMetadata]:
    """Return the offsets and the group metadata as full objects."""
    found = {
        TopicPartition(*name): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for name, offset in offsets.items()
    }
    return found, ConsumerGroupMetadata(group) if isinstance(group, str) else group


def commit_errors(request: TxnOffsetCommitRequest, response: TxnOffsetCommitResponse) -> Iterator[int]:
    """Yield the error codes of failed partitions. A partition missing from the response was not committed."""
    codes = {
        (_identity(topic), each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }
    for topic in request.topics:
        for each in topic.partitions:
            if code := codes.get((_identity(topic), each.partition_index), ErrorCode.UNKNOWN_SERVER_ERROR):
                yield code


def _identity(topic: TxnOffsetCommitRequestTopic | TxnOffsetCommitResponseTopic) -> UUID | str:
    """Return the id of a topic, or its name in a version without ids."""
    return topic.name if topic.topic_id == ZERO_UUID else topic.topic_id
