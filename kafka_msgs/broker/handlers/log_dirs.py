"""Contents and locations of a broker's logs: DescribeLogDirs, AlterReplicaLogDirs and DescribeProducers."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from kafka_msgs.broker.controller.topics import check_topic_name
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS, find_topic, get_leader_partition
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.storage import ProducerStateEntry as WriterState
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from kafka_msgs.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafka_msgs.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kafka_msgs.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafka_msgs.messages.describe_producers_request import DescribeProducersRequest
from kafka_msgs.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

__all__ = ["HANDLERS"]

_LONGEST_NAME: Final = 255
_FUTURE_SUFFIX: Final = ".-future" + "0" * 32
"""The suffix of a directory while a replica moves there, including an id of 32 digits."""


def _log_dir(call: ServerCall[Any]) -> str:
    """Return the log directory of the broker. Without files it is only a name."""
    path = call.cluster.log_dir_path(call.session.broker_id)
    return call.cluster.configs.text("log.dir") or "" if path is None else str(path)


def _describe_log_dirs(call: ServerCall[DescribeLogDirsRequest]) -> None:
    if not call.allows_cluster(AclOperation.DESCRIBE):
        call.respond(DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        return
    asked = None
    if call.request.topics is not None:
        asked = {(topic.topic, partition) for topic in call.request.topics for partition in topic.partitions}
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for log in call.cluster.log_manager:
        state = call.cluster.image.partition(log.topic_id, log.partition)
        here = state is not None and call.session.broker_id in state.replicas
        if here and (asked is None or (log.topic, log.partition) in asked):
            topics[log.topic].append(DescribeLogDirsPartition(partition_index=log.partition, partition_size=log.size))
    log_dir = _log_dir(call)
    volume = shutil.disk_usage(_existing(Path(log_dir)))
    result = DescribeLogDirsResult(
        log_dir=log_dir,
        total_bytes=volume.total,
        usable_bytes=volume.free,
        topics=tuple(DescribeLogDirsTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()),
    )
    call.respond(DescribeLogDirsResponse(results=(result,)))


def _alter_replica_log_dirs(call: ServerCall[AlterReplicaLogDirsRequest]) -> None:
    """Move replicas. A broker has a single log directory, so replicas that may move there are already in it."""
    call.require_cluster(AclOperation.ALTER)
    paths = {
        (topic.name, partition): wanted.path
        for wanted in call.request.dirs
        for topic in wanted.topics
        for partition in topic.partitions
    }
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for (topic, partition), path in paths.items():
        error = _move_error(call, topic, partition, path)
        topics[topic].append(AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=error))
    results = (
        AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(parts)) for name, parts in topics.items()
    )
    call.respond(AlterReplicaLogDirsResponse(results=tuple(results)))


def _move_error(call: ServerCall[AlterReplicaLogDirsRequest], topic: str, partition: int, path: str) -> ErrorCode:
    """Return the reason why a replica of this broker cannot be in a directory, as in Kafka's ``ReplicaManager``."""
    if len(f"{topic}-{partition}{_FUTURE_SUFFIX}") > _LONGEST_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != _log_dir(call):
        return ErrorCode.LOG_DIR_NOT_FOUND
    found = call.cluster.image.topics.get(topic)
    if found is None or not 0 <= partition < len(found.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    here = call.session.broker_id in found.partitions[partition].replicas
    return ErrorCode.NONE if here else ErrorCode.REPLICA_NOT_AVAILABLE


def _existing(path: Path) -> Path:
    """Return the directory or its nearest existing parent: in-memory data has no directory."""
    return next(each for each in (path, *path.parents) if each.exists())


def _describe_producers(call: ServerCall[DescribeProducersRequest]) -> None:
    topics = (
        TopicResponse(
            name=topic.name, partitions=tuple(_producers(call, topic.name, each) for each in topic.partition_indexes)
        )
        for topic in call.request.topics
    )
    call.respond(DescribeProducersResponse(topics=tuple(topics)))


def _producers(call: ServerCall[DescribeProducersRequest], topic: str, partition: int) -> PartitionResponse:
    try:
        check_topic_name(topic)
        found = find_topic(call, topic, None, AclOperation.READ)
        log = get_leader_partition(call, found, partition, or_followed=True).log
    except RequestRefusedError as error:
        code = ErrorCode(error.error)
        message = error.message or _text(call, topic, code)
        return PartitionResponse(partition_index=partition, error_code=code, error_message=message)
    active = tuple(map(_described, log.producers.states.values()))
    return PartitionResponse(partition_index=partition, active_producers=active)


def _text(call: ServerCall[DescribeProducersRequest], topic: str, error: ErrorCode) -> str | None:
    """Return Kafka's message for an error, or None for an unknown partition."""
    if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic in call.cluster.image.topics:
        return None
    return ERROR_TEXTS.get(error)


def _described(state: WriterState) -> ProducerState:
    return ProducerState(
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=-1 if state.first_offset is None else state.first_offset,
    )


HANDLERS: Final = (
    ApiHandler(AlterReplicaLogDirsRequest, _alter_replica_log_dirs),
    ApiHandler(DescribeLogDirsRequest, _describe_log_dirs),
    ApiHandler(DescribeProducersRequest, _describe_producers),
)
