"""AlterShareGroupOffsets and DeleteShareGroupOffsets: the start offsets of an empty share group (KIP-932).

The offsets are in the state of share partitions, which the share coordinator stores. The source is Kafka's
``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias
from uuid import UUID

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order, number_order
from kafka_msgs.groups.assignors.spec import Partitions
from kafka_msgs.groups.group_protocol import Api, SingleGroupApi
from kafka_msgs.groups.modern_group import find_group
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.share.group import ShareGroup
from kafka_msgs.groups.share.initialization import (
    begin_deletion_of_topics,
    begin_initialization,
    delete_share_state,
    end_deletion_of_topics,
    finish_initialization,
)
from kafka_msgs.messages import alter_share_group_offsets_response as altered
from kafka_msgs.messages import delete_share_group_offsets_response as deleted
from kafka_msgs.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from kafka_msgs.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kafka_msgs.messages.share_group_state_partition_metadata_value import TopicPartitionsInfo
from kafka_msgs.schema import ZERO_UUID

__all__ = ["OFFSET_APIS"]

_INVALID_ID: Final = "The group id is invalid."
_UNKNOWN_PARTITION: Final = GroupError(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)

_Failures: TypeAlias = Mapping[tuple[UUID, int], GroupError]
"""The errors of the share coordinator, by topic id and partition."""


def alter_offsets(
    op: OperationContext, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> Future[altered.AlterShareGroupOffsetsResponse]:
    """Set the start offsets of a group without members. Raises ``GroupError``."""
    group_id = request.group_id
    group = ShareGroup(group_id) if group_id not in op.state.groups else find_group(op, ShareGroup, group_id)
    group.validate_delete(op)
    offsets = dict(_offsets(op, request))
    if offsets:
        begin_initialization(op, group, {each: _info(op, each, offsets[each]) for each in hash_map_order(offsets)})
    answer, epoch = op.new_future(), group.epoch

    def ask(error: ApiError | None) -> None:
        if error is None:
            failures = _initialize(op, group_id, epoch, offsets)
            if offsets and not failures:
                finish_initialization(
                    op, group_id, {each: _info(op, each, wanted) for each, wanted in offsets.items() if wanted}
                )
            answer.resolve(_altered(op, request, failures))

    op.on_committed(ask)
    return answer


def _offsets(op: OperationContext, request: AlterShareGroupOffsetsRequest) -> Iterator[tuple[UUID, dict[int, int]]]:
    """Yield the new start offsets by partition, for each existing topic."""
    for asked in request.topics:
        topic = op.image.topics.get(asked.topic_name)
        if topic is not None:
            known = (each for each in asked.partitions if each.partition_index < topic.partitions)
            yield topic.id, {each.partition_index: each.start_offset for each in known}


def _info(op: OperationContext, topic_id: UUID, offsets: Mapping[int, int]) -> TopicPartitionsInfo:
    name = op.image.by_id[topic_id].name
    return TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=tuple(number_order(tuple(offsets))))


def _initialize(
    op: OperationContext, group_id: str, epoch: int, offsets: Mapping[UUID, Mapping[int, int]]
) -> dict[tuple[UUID, int], GroupError]:
    """Initialize partitions in the share coordinator again. Return the errors."""
    failures: dict[tuple[UUID, int], GroupError] = {}
    for topic_id, starts in offsets.items():
        for partition, start in starts.items():
            try:
                op.services.share_persister.initialize(
                    group_id, topic_id, partition, state_epoch=epoch, start_offset=start
                )
            except GroupError as error:
                failures[topic_id, partition] = error
    return failures


def _altered(
    op: OperationContext, request: AlterShareGroupOffsetsRequest, failures: _Failures
) -> altered.AlterShareGroupOffsetsResponse:
    responses = []
    for asked in request.topics:
        topic = op.image.topics.get(asked.topic_name)
        topic_id, hosted = (ZERO_UUID, 0) if topic is None else (topic.id, topic.partitions)
        errors = (
            failures.get((topic_id, each.partition_index)) if each.partition_index < hosted else _UNKNOWN_PARTITION
            for each in asked.partitions
        )
        partitions = tuple(
            altered.AlterShareGroupOffsetsResponsePartition(partition_index=each.partition_index, **_error(error))
            for each, error in zip(asked.partitions, errors, strict=True)
        )
        responses.append(
            altered.AlterShareGroupOffsetsResponseTopic(
                topic_name=asked.topic_name, topic_id=topic_id, partitions=partitions
            )
        )
    return altered.AlterShareGroupOffsetsResponse(responses=tuple(responses))


def _error(error: GroupError | None) -> dict[str, Any]:
    return {} if error is None else {"error_code": error.error, "error_message": error.message}


def delete_offsets(
    op: OperationContext, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> Future[deleted.DeleteShareGroupOffsetsResponse]:
    """Delete the offsets of a group without members for some topics. Raises ``GroupError``."""
    group_id = request.group_id
    group = find_group(op, ShareGroup, group_id)
    group.validate_delete(op)
    names = [topic.topic_name for topic in request.topics]
    known = group.partitions is not None
    doomed = begin_deletion_of_topics(op, group, names)
    failed = [_undeletable(op, name) for name in names if name not in doomed] if known else []
    answer = op.new_future()

    def ask(error: ApiError | None) -> None:
        if error is not None:
            return
        done = [_forget(op, group_id, name, partitions) for name, partitions in doomed.items()]
        good = [each for each in done if not each.error_code]
        response = deleted.DeleteShareGroupOffsetsResponse(
            responses=(*good, *failed, *(each for each in done if each.error_code))
        )
        ids = {each.topic_id for each in good}
        ended = op.submit(lambda step: end_deletion_of_topics(step, group_id, ids)) if ids else Future.from_value(None)
        ended.then(lambda _: response).add_done_callback(answer.copy_from)

    op.on_committed(ask)
    return answer


def _undeletable(op: OperationContext, name: str) -> deleted.DeleteShareGroupOffsetsResponseTopic:
    error = GroupError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")
    if name not in op.image.topics:
        error = _UNKNOWN_PARTITION
    return deleted.DeleteShareGroupOffsetsResponseTopic(topic_name=name, **_error(error))


def _forget(
    op: OperationContext, group_id: str, name: str, partitions: Partitions
) -> deleted.DeleteShareGroupOffsetsResponseTopic:
    (topic_id,) = partitions
    failure = None
    try:
        delete_share_state(op, group_id, partitions)
    except GroupError as error:
        failure = error
    return deleted.DeleteShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, **_error(failure))


def _text(error: GroupError) -> str | None:
    return _INVALID_ID if error.error is ErrorCode.INVALID_GROUP_ID else error.message


OFFSET_APIS: Final[tuple[Api, ...]] = (
    SingleGroupApi(
        request=AlterShareGroupOffsetsRequest,
        handle=alter_offsets,
        refuse=lambda request, error, version: altered.AlterShareGroupOffsetsResponse(
            error_code=error.error, error_message=_text(error)
        ),
    ),
    SingleGroupApi(
        request=DeleteShareGroupOffsetsRequest,
        handle=delete_offsets,
        refuse=lambda request, error, version: deleted.DeleteShareGroupOffsetsResponse(
            error_code=error.error, error_message=_text(error)
        ),
    ),
)
"""The apis of the group coordinator for the offsets of a share group."""
