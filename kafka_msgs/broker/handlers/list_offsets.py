"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: reading and changing the offsets of partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from kafka_msgs.broker.handlers.partition_access import find_topic, get_leader_partition
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.log import IsolationLevel
from kafka_msgs.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from kafka_msgs.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka_msgs.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from kafka_msgs.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_msgs.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest, OffsetForLeaderPartition
from kafka_msgs.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

__all__ = ["HANDLERS"]

T = TypeVar("T")
P = TypeVar("P", ListOffsetsPartition, DeleteRecordsPartition)

_CONSUMER: Final = -1
_FIRST_WITH_EPOCHS: Final = 4
_ISOLATIONS: Final[tuple[IsolationLevel, IsolationLevel]] = ("read_uncommitted", "read_committed")
_NEWER_TIMESTAMPS: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""Special timestamps with the first version that supports each. -1 and -2 are supported by all versions."""


def _on_led(
    call: ServerCall[Any],
    topic: str,
    partition: int,
    epoch: int,
    operation: AclOperation | None,
    use: Callable[[PartitionLog], T],
) -> T | ErrorCode:
    """Return the result of ``use`` for the log of a partition that this broker leads, or the error."""
    try:
        found = find_topic(call, topic, None, operation)
        return use(get_leader_partition(call, found, partition, epoch).log)
    except RequestRefusedError as error:
        return ErrorCode(error.error)


def _by_topic(topics: Iterable[tuple[str, Iterable[P]]]) -> dict[str, dict[int, P]]:
    """Return the partitions of a request by topic and number. If a partition is repeated, the last entry wins."""
    found: dict[str, dict[int, P]] = {}
    for name, partitions in topics:
        for each in partitions:
            found.setdefault(name, {})[each.partition_index] = each
    return found


def _list_offsets(call: ServerCall[ListOffsetsRequest]) -> None:
    request = call.request
    if request.topics and request.isolation_level not in range(len(_ISOLATIONS)):
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    counts = Counter((topic.name, each.partition_index) for topic in request.topics for each in topic.partitions)
    asked = _by_topic((topic.name, topic.partitions) for topic in request.topics)
    topics = (
        ListOffsetsTopicResponse(
            name=name, partitions=tuple(_listed(call, name, each, counts[name, index]) for index, each in parts.items())
        )
        for name, parts in asked.items()
    )
    call.respond(ListOffsetsResponse(topics=tuple(topics)))


def _listed(
    call: ServerCall[ListOffsetsRequest], topic: str, asked: ListOffsetsPartition, times: int
) -> ListOffsetsPartitionResponse:
    def part(**fields: Any) -> ListOffsetsPartitionResponse:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, **fields)

    if times > 1:
        return part(error_code=ErrorCode.INVALID_REQUEST)
    if asked.timestamp < -2 and call.version < _NEWER_TIMESTAMPS.get(asked.timestamp, 2**15):
        return part(error_code=ErrorCode.UNSUPPORTED_VERSION)
    isolation = _ISOLATIONS[call.request.isolation_level == 1] if call.request.replica_id == _CONSUMER else None
    found = _on_led(
        call,
        topic,
        asked.partition_index,
        asked.current_leader_epoch,
        _describe_permission(call),
        lambda log: log.offset_for_timestamp(asked.timestamp, isolation),
    )
    if isinstance(found, ErrorCode):
        return part(error_code=found)
    if found is None:
        return part()
    epoch = found.leader_epoch if call.version >= _FIRST_WITH_EPOCHS else -1
    return part(timestamp=found.timestamp, offset=found.offset, leader_epoch=epoch)


def _describe_permission(call: ServerCall[Any]) -> AclOperation | None:
    """Return the required permission. Brokers may query all topics, without one (KIP-320)."""
    return None if call.allows_cluster(AclOperation.CLUSTER_ACTION) else AclOperation.DESCRIBE


def _offset_for_leader_epoch(call: ServerCall[OffsetForLeaderEpochRequest]) -> None:
    topics = (
        OffsetForLeaderTopicResult(
            topic=topic.topic, partitions=tuple(_epoch_end(call, topic.topic, each) for each in topic.partitions)
        )
        for topic in call.request.topics
    )
    call.respond(OffsetForLeaderEpochResponse(topics=tuple(topics)))


def _epoch_end(
    call: ServerCall[OffsetForLeaderEpochRequest], topic: str, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    end = _on_led(
        call,
        topic,
        asked.partition,
        asked.current_leader_epoch,
        _describe_permission(call),
        lambda log: log.end_offset_for_epoch(asked.leader_epoch),
    )
    if isinstance(end, ErrorCode):
        return EpochEndOffset(partition=asked.partition, error_code=end)
    return EpochEndOffset(partition=asked.partition, leader_epoch=end.epoch, end_offset=end.start_offset)


def _delete_records(call: ServerCall[DeleteRecordsRequest]) -> None:
    asked = _by_topic((topic.name, topic.partitions) for topic in call.request.topics)
    topics = (
        DeleteRecordsTopicResult(name=name, partitions=tuple(_deleted(call, name, each) for each in parts.values()))
        for name, parts in asked.items()
    )
    call.respond(DeleteRecordsResponse(topics=tuple(topics)))


def _deleted(
    call: ServerCall[DeleteRecordsRequest], topic: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    def delete(log: PartitionLog) -> int:
        if not (log.config.deletes or not log.config.cleanup_policy):
            raise RequestRefusedError(ErrorCode.POLICY_VIOLATION)
        return log.delete_records(asked.offset)

    low = _on_led(call, topic, asked.partition_index, -1, AclOperation.DELETE, delete)
    error, low = (low, -1) if isinstance(low, ErrorCode) else (ErrorCode.NONE, low)
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=low, error_code=error)


HANDLERS: Final = (
    ApiHandler(ListOffsetsRequest, _list_offsets),
    ApiHandler(OffsetForLeaderEpochRequest, _offset_for_leader_epoch),
    ApiHandler(DeleteRecordsRequest, _delete_records),
)
