"""Consumer group offsets that a transaction commits (KIP-447)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.producer.producer_batch import ProducerIdAndEpoch
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_msgs.messages.txn_offset_commit_response import TxnOffsetCommitResponse

__all__ = ["ConsumerGroupMetadata", "OffsetAndMetadata", "commit_errors", "commit_request", "normalize_offsets"]


@frozen
class OffsetAndMetadata:
    """A committed position: the offset of the next record, with its leader epoch and metadata."""

    offset: int
    leader_epoch: int = -1
    """The leader epoch of the last record; -1 if unknown."""
    metadata: str | None = ""


def commit_request(
    name: str,
    producer: ProducerIdAndEpoch,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: ConsumerGroupMetadata,
) -> TxnOffsetCommitRequest:
    """Return the request that commits offsets in a producer's transaction."""
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        entry = TxnOffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            committed_metadata=offset.metadata,
        )
        topics.setdefault(topic, []).append(entry)
    return TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group.group_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        generation_id_or_member_epoch=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=tuple(
            TxnOffsetCommitRequestTopic(name=topic, partitions=tuple(entries)) for topic, entries in topics.items()
        ),
    )


def normalize_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata | str
) -> tuple[dict[TopicPartition, OffsetAndMetadata], ConsumerGroupMetadata]:
    """Return the offsets and the group metadata as full objects."""
    found = {
        place: OffsetAndMetadata(offset) if isinstance(offset, int) else offset for place, offset in offsets.items()
    }
    return found, ConsumerGroupMetadata(group) if isinstance(group, str) else group


def commit_errors(request: TxnOffsetCommitRequest, response: TxnOffsetCommitResponse) -> Iterator[int]:
    """Yield the error codes of failed partitions. A partition missing from the response was not committed."""
    codes = {
        (topic.name, each.partition_index): each.error_code for topic in response.topics for each in topic.partitions
    }
    for topic in request.topics:
        for each in topic.partitions:
            if code := codes.get((topic.name, each.partition_index), ErrorCode.UNKNOWN_SERVER_ERROR):
                yield code
