"""The messages that all languages decode and encode: large and small, as in a cluster of 20 brokers.

Numbers and names come from a seed. Every message is at a version that is supported by each library with this message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, TypeAlias
from uuid import UUID

from benchmarks import message_cases
from kafka_msgs import (
    ApiVersionsResponse,
    ConsumerGroupHeartbeatResponse,
    FetchResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    Message,
    OffsetCommitValue,
    OffsetFetchResponse,
    ProduceRequest,
)
from kafka_msgs.messages.api_versions_response import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey
from kafka_msgs.messages.consumer_group_heartbeat_response import Assignment, TopicPartitions
from kafka_msgs.messages.fetch_response import FetchableTopicResponse, PartitionData
from kafka_msgs.messages.join_group_response import JoinGroupResponseMember
from kafka_msgs.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData

__all__ = ["cases"]

Case: TypeAlias = tuple[Message, int]

_SEED: Final = 20
_TOPICS: Final = 10
_PARTITIONS: Final = 100


def cases() -> Mapping[str, Case]:
    """Return messages and versions, named MESSAGE.VERSION, the largest first."""
    return {f"{message.INFO.name}.{version}": (message, version) for message, version in _cases(Random(_SEED))}


def _cases(rng: Random) -> Iterator[Case]:
    yield message_cases.metadata("varied"), 12
    yield _fetch_response(rng), 17
    yield _offset_fetch_response(rng), 9
    yield _produce_request(rng), 11
    yield _join_group_response(rng), 9
    yield _consumer_group_heartbeat_response(rng), 1
    yield _api_versions_response(), 3
    yield OffsetCommitValue(offset=73_194_551, leader_epoch=7, metadata="", commit_timestamp=1_700_000_000_123), 3
    yield HeartbeatResponse(), 4


def _fetch_response(rng: Random) -> FetchResponse:
    """Return a response to a follower that is up to date, without records."""

    def partition(index: int) -> PartitionData:
        end = rng.randrange(10**9)
        return PartitionData(
            partition_index=index, high_watermark=end, last_stable_offset=end, log_start_offset=end // 2
        )

    topics = (
        FetchableTopicResponse(
            topic_id=UUID(int=rng.getrandbits(128)), partitions=tuple(map(partition, range(_PARTITIONS)))
        )
        for _ in range(_TOPICS)
    )
    return FetchResponse(session_id=rng.getrandbits(31), responses=tuple(topics))


def _offset_fetch_response(rng: Random) -> OffsetFetchResponse:
    def partition(index: int) -> OffsetFetchResponsePartitions:
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=rng.randrange(10**9),
            committed_leader_epoch=rng.randrange(50),
            metadata="",
        )

    topics = (
        OffsetFetchResponseTopics(name=f"topic-{number:05}", partitions=tuple(map(partition, range(_PARTITIONS))))
        for number in range(_TOPICS)
    )
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="billing", topics=tuple(topics)),))


def _produce_request(rng: Random) -> ProduceRequest:
    topics = (
        TopicProduceData(
            name=f"topic-{number:05}",
            partition_data=tuple(PartitionProduceData(index=index, records=rng.randbytes(1000)) for index in range(5)),
        )
        for number in range(4)
    )
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=tuple(topics))


def _join_group_response(rng: Random) -> JoinGroupResponse:
    members = tuple(
        JoinGroupResponseMember(member_id=f"consumer-{UUID(int=rng.getrandbits(128))}", metadata=rng.randbytes(60))
        for _ in range(30)
    )
    return JoinGroupResponse(
        generation_id=12,
        protocol_type="consumer",
        protocol_name="cooperative-sticky",
        leader=members[0].member_id,
        member_id=members[0].member_id,
        members=members,
    )


def _consumer_group_heartbeat_response(rng: Random) -> ConsumerGroupHeartbeatResponse:
    topics = (
        TopicPartitions(topic_id=UUID(int=rng.getrandbits(128)), partitions=tuple(sorted(rng.sample(range(100), 8))))
        for _ in range(5)
    )
    return ConsumerGroupHeartbeatResponse(
        member_id=str(UUID(int=rng.getrandbits(128))),
        member_epoch=41,
        heartbeat_interval_ms=5000,
        assignment=Assignment(topic_partitions=tuple(topics)),
    )


def _api_versions_response() -> ApiVersionsResponse:
    features = {
        "group.version": 1,
        "kraft.version": 1,
        "metadata.version": 29,
        "share.version": 1,
        "transaction.version": 2,
    }
    return ApiVersionsResponse(
        api_keys=tuple(ApiVersion(api_key=key, min_version=0, max_version=key % 19) for key in range(75)),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=1, max_version=level) for name, level in features.items()
        ),
        finalized_features_epoch=88_120,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.items()
        ),
    )
