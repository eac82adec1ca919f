"""Partitions: their offsets and epochs, record deletion, leader elections, and replica reassignments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, TypeAlias

from kafka_msgs.admin.fan_out import LeaderFanOut, milliseconds_left
from kafka_msgs.admin.results import Outcome, Results, api_name, item_as_value, no_value, outcomes, raise_top_level
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.enums import ElectionType
from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.messages import alter_partition_reassignments_request as reassign
from kafka_msgs.messages import delete_records_request as records
from kafka_msgs.messages import elect_leaders_request as elect
from kafka_msgs.messages import list_offsets_request as offsets_of
from kafka_msgs.messages import list_partition_reassignments_request as ongoing
from kafka_msgs.messages import offset_for_leader_epoch_request as epochs
from kafka_msgs.messages.delete_records_request import DeleteRecordsRequest
from kafka_msgs.messages.delete_records_response import DeleteRecordsPartitionResult, DeleteRecordsResponse
from kafka_msgs.messages.list_offsets_request import ListOffsetsRequest
from kafka_msgs.messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kafka_msgs.messages.list_partition_reassignments_response import OngoingPartitionReassignment
from kafka_msgs.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from kafka_msgs.messages.offset_for_leader_epoch_response import EpochEndOffset, OffsetForLeaderEpochResponse
from kafka_msgs.versions import VersionRange

__all__ = [
    "IsolationLevel",
    "OffsetSpec",
    "alter_partition_reassignments",
    "by_topic",
    "delete_records",
    "elect_leaders",
    "list_end_offsets_of_epochs",
    "list_offsets",
    "list_partition_reassignments",
]


_Offset: TypeAlias = ListOffsetsPartitionResponse


class OffsetSpec(IntEnum):
    """An offset of a partition. Any other number is a timestamp (ms since 1970)."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_SINCE: Final[Mapping[int, int]] = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}
"""The first versions of ListOffsets for these (KIP-734, KIP-405, KIP-1005, KIP-1023)."""


class IsolationLevel(IntEnum):
    """Whether records of open transactions count."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """Return the partition numbers of each topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return {topic: tuple(numbers) for topic, numbers in topics.items()}


def list_offsets(
    client: ClientCore,
    partitions: Mapping[TopicPartition, int],
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, ListOffsetsPartitionResponse]]:
    """Return an offset of each partition: an ``OffsetSpec``, or the first at or after a timestamp in ms.

    The offset is -1 if the partition has no such record. Each leader gets one request. If a leader is too old for
    an ``OffsetSpec``, the outcome is an ``UnsupportedVersionError``.
    """
    deadline = client.deadline(timeout)

    def request_for(part: Collection[TopicPartition]) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=tuple(topic(name, numbers) for name, numbers in by_topic(part).items()),
            timeout_ms=milliseconds_left(client, deadline),
        )

    def topic(name: str, numbers: Collection[int]) -> offsets_of.ListOffsetsTopic:
        wanted = ((each, int(partitions[TopicPartition(name, each)])) for each in numbers)
        return offsets_of.ListOffsetsTopic(
            name=name,
            partitions=tuple(
                offsets_of.ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each, timestamp in wanted
            ),
        )

    def items(response: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, ListOffsetsPartitionResponse]]:
        for topic in response.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition_index), each

    def ask(broker_id: int, part: Sequence[TopicPartition]) -> Flow[Mapping[TopicPartition, Outcome[_Offset]]]:
        connection = yield from client.link(broker_id, deadline=deadline)
        version = connection.highest_version(ListOffsetsRequest)
        able = [each for each in part if version >= _least_version(partitions[each])]
        refused = {each: _too_old(partitions[each], version) for each in part if each not in able}
        if not able:
            return refused
        response = yield from client.call(request_for(able), broker_id=broker_id, retry=False, deadline=deadline)
        return {**outcomes(api_name(ListOffsetsRequest), items(response), item_as_value, able).outcomes, **refused}

    return (yield from LeaderFanOut(client, deadline=deadline).run(partitions, ask))


def _least_version(spec: int) -> int:
    """Return the first version at which a broker does not mistake a specification for a timestamp."""
    return _SINCE.get(spec, ListOffsetsRequest.INFO.versions.lowest)


def _too_old(spec: int, version: int) -> UnsupportedVersionError:
    return UnsupportedVersionError(
        message=f"ListOffsetsRequest with {OffsetSpec(spec).name}",
        version=version,
        supported=VersionRange(_least_version(spec), ListOffsetsRequest.INFO.versions.highest),
    )


def list_end_offsets_of_epochs(
    client: ClientCore, leader_epochs: Mapping[TopicPartition, int], *, timeout: float | None = None
) -> Flow[Results[TopicPartition, EpochEndOffset]]:
    """Return the end offset of a leader epoch for each partition (KIP-320).

    The result has the largest epoch that the leader has and that does not exceed the requested epoch, with its end
    offset.
    """

    def request_for(part: Collection[TopicPartition]) -> OffsetForLeaderEpochRequest:
        return OffsetForLeaderEpochRequest(
            replica_id=-1, topics=tuple(topic(name, numbers) for name, numbers in by_topic(part).items())
        )

    def topic(name: str, numbers: Collection[int]) -> epochs.OffsetForLeaderTopic:
        wanted = ((each, leader_epochs[TopicPartition(name, each)]) for each in numbers)
        return epochs.OffsetForLeaderTopic(
            topic=name,
            partitions=tuple(
                epochs.OffsetForLeaderPartition(partition=each, leader_epoch=epoch) for each, epoch in wanted
            ),
        )

    def items(response: OffsetForLeaderEpochResponse) -> Iterator[tuple[TopicPartition, EpochEndOffset]]:
        for topic in response.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.topic, each.partition), each

    leaders = LeaderFanOut(client, deadline=client.deadline(timeout))
    return (yield from leaders.each(leader_epochs, request_for, items, lambda each, _: each))


def delete_records(
    client: ClientCore, before: Mapping[TopicPartition, int], *, timeout: float | None = None
) -> Flow[Results[TopicPartition, int]]:
    """Delete all records before an offset of each partition; -1 is the high watermark. Return the low watermarks.

    The low watermark is the first offset that every replica still has.
    """
    deadline = client.deadline(timeout)

    def request_for(part: Collection[TopicPartition]) -> DeleteRecordsRequest:
        topics = tuple(topic(name, numbers) for name, numbers in by_topic(part).items())
        return DeleteRecordsRequest(topics=topics, timeout_ms=milliseconds_left(client, deadline))

    def topic(name: str, numbers: Collection[int]) -> records.DeleteRecordsTopic:
        wanted = ((each, before[TopicPartition(name, each)]) for each in numbers)
        return records.DeleteRecordsTopic(
            name=name,
            partitions=tuple(
                records.DeleteRecordsPartition(partition_index=each, offset=offset) for each, offset in wanted
            ),
        )

    def items(response: DeleteRecordsResponse) -> Iterator[tuple[TopicPartition, DeleteRecordsPartitionResult]]:
        for topic in response.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition_index), each

    leaders = LeaderFanOut(client, deadline=deadline)
    return (yield from leaders.each(before, request_for, items, lambda each, _: each.low_watermark))


def elect_leaders(
    client: ClientCore,
    partitions: Collection[TopicPartition] | None = None,
    *,
    election: ElectionType = ElectionType.PREFERRED,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, None]]:
    """Elect leaders: of the given partitions, or of all (KIP-183, KIP-460).

    A partition that needs no election fails with ``ELECTION_NOT_NEEDED``. Without ``partitions``, the results have
    only partitions with an election.
    """
    deadline = client.deadline(timeout)
    request = elect.ElectLeadersRequest(
        election_type=election,
        topic_partitions=None
        if partitions is None
        else tuple(
            elect.TopicPartitions(topic=name, partitions=numbers) for name, numbers in by_topic(partitions).items()
        ),
        timeout_ms=milliseconds_left(client, deadline),
    )
    response = yield from client.call(request, deadline=deadline)
    raise_top_level(response, api_name(request))
    items = (
        (TopicPartition(topic.topic, each.partition_id), each)
        for topic in response.replica_election_results
        for each in topic.partition_result
    )
    return outcomes(api_name(request), items, no_value, partitions or ())


def alter_partition_reassignments(
    client: ClientCore,
    replicas: Mapping[TopicPartition, Collection[int] | None],
    *,
    allow_replication_factor_change: bool = True,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, None]]:
    """Start moves of partitions to other brokers, or cancel a move with None (KIP-455)."""
    deadline = client.deadline(timeout)

    def partition(topic: str, number: int) -> reassign.ReassignablePartition:
        brokers = replicas[TopicPartition(topic, number)]
        return reassign.ReassignablePartition(
            partition_index=number, replicas=None if brokers is None else tuple(brokers)
        )

    request = reassign.AlterPartitionReassignmentsRequest(
        timeout_ms=milliseconds_left(client, deadline),
        allow_replication_factor_change=allow_replication_factor_change,
        topics=tuple(
            reassign.ReassignableTopic(name=name, partitions=tuple(partition(name, each) for each in numbers))
            for name, numbers in by_topic(replicas).items()
        ),
    )
    response = yield from client.call(request, deadline=deadline)
    raise_top_level(response, api_name(request))
    items = ((TopicPartition(t.name, each.partition_index), each) for t in response.responses for each in t.partitions)
    return outcomes(api_name(request), items, no_value, replicas)


def list_partition_reassignments(
    client: ClientCore, partitions: Collection[TopicPartition] | None = None, *, timeout: float | None = None
) -> Flow[dict[TopicPartition, OngoingPartitionReassignment]]:
    """Return the moves in progress: of the given partitions, or all (KIP-455)."""
    deadline = client.deadline(timeout)
    request = ongoing.ListPartitionReassignmentsRequest(
        timeout_ms=milliseconds_left(client, deadline),
        topics=None
        if partitions is None
        else tuple(
            ongoing.ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
            for name, numbers in by_topic(partitions).items()
        ),
    )
    response = yield from client.call(request, deadline=deadline)
    raise_top_level(response, api_name(request))
    return {TopicPartition(t.name, each.partition_index): each for t in response.topics for each in t.partitions}
