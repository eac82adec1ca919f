"""What the logs of a broker hold: DescribeLogDirs and DescribeProducers."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from kafka_msgs.broker.call import Call, Handler
from kafka_msgs.broker.handlers.leading import ERROR_TEXTS, find_topic, led_partition
from kafka_msgs.broker.partitions import ProducerState as WriterState
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError
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
from kafka_msgs.schema import ZERO_UUID

__all__ = ["HANDLERS"]


def _describe_log_dirs(call: Call[DescribeLogDirsRequest]) -> None:
    if not call.allows_cluster(AclOperation.DESCRIBE):
        call.answer(DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        return
    asked = None
    if call.request.topics is not None:
        asked = {(topic.topic, partition) for topic in call.request.topics for partition in topic.partitions}
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for log in call.cluster.partitions:
        state = call.cluster.image.partition(log.topic_id, log.partition)
        here = state is not None and call.session.broker_id in state.replicas
        if here and (asked is None or (log.topic, log.partition) in asked):
            topics[log.topic].append(DescribeLogDirsPartition(partition_index=log.partition, partition_size=log.size))
    result = DescribeLogDirsResult(
        log_dir=str(call.cluster.config.directory or call.cluster.settings.text("log.dir")),
        topics=tuple(DescribeLogDirsTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()),
    )
    call.answer(DescribeLogDirsResponse(results=(result,)))


def _describe_producers(call: Call[DescribeProducersRequest]) -> None:
    call.answer(
        DescribeProducersResponse(
            topics=tuple(
                TopicResponse(
                    name=topic.name,
                    partitions=tuple(_producers(call, topic.name, each) for each in topic.partition_indexes),
                )
                for topic in call.request.topics
            )
        )
    )


def _producers(call: Call[DescribeProducersRequest], topic: str, partition: int) -> PartitionResponse:
    try:
        log = led_partition(call, find_topic(call, topic, ZERO_UUID, AclOperation.READ), partition).log
    except RefusedError as error:
        return PartitionResponse(
            partition_index=partition,
            error_code=error.error,
            error_message=error.message or ERROR_TEXTS.get(ErrorCode(error.error)),
        )
    return PartitionResponse(
        partition_index=partition, active_producers=tuple(map(_described, log.producers.states.values()))
    )


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
    Handler(DescribeLogDirsRequest, _describe_log_dirs),
    Handler(DescribeProducersRequest, _describe_producers),
)
