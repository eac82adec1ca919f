"""Share group offsets: Describe-, Alter- and DeleteShareGroupOffsets (KIP-932).

The group coordinator handles changes. These handlers check authorization and build descriptions from the state of the
share partitions and the end offsets of their logs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from attrs import evolve

from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.share_service import find_share_service
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.share import UNSET, SharePartitionKey
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors.api import ApiError
from kafka_msgs.messages import alter_share_group_offsets_response as altered
from kafka_msgs.messages import delete_share_group_offsets_response as deleted
from kafka_msgs.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from kafka_msgs.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kafka_msgs.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kafka_msgs.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafka_msgs.schema import ZERO_UUID

__all__ = ["HANDLERS"]

_FORBIDDEN: Final = "Topic authorization failed."
_UNKNOWN: Final = "This server does not host this topic-partition."


def _describe(call: ServerCall[DescribeShareGroupOffsetsRequest]) -> None:
    groups = tuple(_described(call, group) for group in call.request.groups)
    call.respond(DescribeShareGroupOffsetsResponse(groups=groups))


def _described(
    call: ServerCall[DescribeShareGroupOffsetsRequest], group: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        call.require_group(group.group_id, AclOperation.DESCRIBE)
        topics = tuple(_all_topics(call, group.group_id) if group.topics is None else _topics(call, group))
    except ApiError as error:
        message = ERROR_TEXTS.get(ErrorCode(error.error), error.message)
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=group.group_id, error_code=error.error, error_message=message
        )
    return DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, topics=topics)


def _all_topics(call: ServerCall[Any], group_id: str) -> Iterable[DescribeShareGroupOffsetsResponseTopic]:
    """Yield all topics of a group that the client may see. Raises ``ApiError``."""
    host = GroupCoordinatorService.of_call(call)
    for topic_id, partitions in host.share_partitions(group_id).items():
        topic = call.cluster.image.topics_by_id.get(topic_id)
        if topic is not None and call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            yield _topic(call, group_id, topic.name, topic_id, partitions)


def _topics(
    call: ServerCall[Any], group: DescribeShareGroupOffsetsRequestGroup
) -> Iterable[DescribeShareGroupOffsetsResponseTopic]:
    """Yield the requested topics: topics with state, then unknown topics, then unauthorized topics.

    Topics with state, and their partitions, are listed once each.
    """
    known: dict[UUID, tuple[str, dict[int, None]]] = {}
    unknown: list[DescribeShareGroupOffsetsResponseTopic] = []
    hidden: list[DescribeShareGroupOffsetsResponseTopic] = []
    for asked in group.topics or ():
        topic = call.cluster.image.topics.get(asked.topic_name)
        if not call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, asked.topic_name):
            part = DescribeShareGroupOffsetsResponsePartition(
                start_offset=UNSET, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=_FORBIDDEN
            )
            hidden.append(_same(asked, part))
        elif topic is None:
            unknown.append(_same(asked, DescribeShareGroupOffsetsResponsePartition(start_offset=UNSET)))
        else:
            known.setdefault(topic.id, (topic.name, {}))[1].update(dict.fromkeys(asked.partitions))
    for topic_id, (name, partitions) in known.items():
        yield _topic(call, group.group_id, name, topic_id, partitions)
    yield from (*unknown, *hidden)


def _same(asked: Any, part: DescribeShareGroupOffsetsResponsePartition) -> DescribeShareGroupOffsetsResponseTopic:
    partitions = tuple(evolve(part, partition_index=each) for each in asked.partitions)
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name, topic_id=ZERO_UUID, partitions=partitions
    )


def _topic(
    call: ServerCall[Any], group_id: str, name: str, topic_id: UUID, partitions: Iterable[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id,
        partitions=tuple(_partition(call, SharePartitionKey(group_id, topic_id, each)) for each in partitions),
    )


def _partition(call: ServerCall[Any], key: SharePartitionKey) -> DescribeShareGroupOffsetsResponsePartition:
    """Return the offset of a group in a partition. Kafka does not report share coordinator errors here."""
    cluster = call.cluster
    try:
        state = find_share_service(cluster, key).coordinator.read_summary(key)
    except ApiError:
        state = None
    if state is None:
        return DescribeShareGroupOffsetsResponsePartition(partition_index=key.partition, start_offset=UNSET)
    log = cluster.log_manager.get((key.topic_id, key.partition))
    known = log is not None and UNSET not in (state.start_offset, state.delivery_complete_count)
    lag = log.high_watermark - state.start_offset - state.delivery_complete_count if log and known else -1
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition, start_offset=state.start_offset, leader_epoch=state.leader_epoch, lag=lag
    )


def _alter(call: ServerCall[AlterShareGroupOffsetsRequest]) -> None:
    request = call.request
    call.require_group(request.group_id)
    refused: list[altered.AlterShareGroupOffsetsResponseTopic] = []
    good: list[Any] = []
    for topic in request.topics:
        found = call.cluster.image.topics.get(topic.topic_name)
        if not call.allows(AclOperation.READ, ResourceType.TOPIC, topic.topic_name):
            refused.append(_unaltered(topic, found, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _FORBIDDEN))
        elif found is None:
            refused.append(_unaltered(topic, found, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN))
        else:
            good.append(topic)

    def complete(response: altered.AlterShareGroupOffsetsResponse) -> None:
        more = () if response.error_code else refused
        call.respond(evolve(response, responses=(*more, *response.responses)))

    host = GroupCoordinatorService.of_call(call)
    host.handle(call, evolve(request, topics=tuple(good)), complete)


def _unaltered(asked: Any, found: Any, error: ErrorCode, message: str) -> altered.AlterShareGroupOffsetsResponseTopic:
    return altered.AlterShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name,
        topic_id=ZERO_UUID if found is None else found.id,
        partitions=tuple(
            altered.AlterShareGroupOffsetsResponsePartition(
                partition_index=each.partition_index, error_code=error, error_message=message
            )
            for each in asked.partitions
        ),
    )


def _delete(call: ServerCall[DeleteShareGroupOffsetsRequest]) -> None:
    request = call.request
    call.require_group(request.group_id, AclOperation.DELETE)
    good, refused = [], []
    for topic in request.topics:
        if call.allows(AclOperation.READ, ResourceType.TOPIC, topic.topic_name):
            good.append(topic)
            continue
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refused.append(
            deleted.DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, error_code=error, error_message=_FORBIDDEN
            )
        )

    def complete(response: deleted.DeleteShareGroupOffsetsResponse) -> None:
        more = () if response.error_code else refused
        call.respond(evolve(response, responses=(*more, *response.responses)))

    GroupCoordinatorService.of_call(call).handle(call, evolve(request, topics=tuple(good)), complete)


HANDLERS: Final = (
    ApiHandler(DescribeShareGroupOffsetsRequest, _describe),
    ApiHandler(AlterShareGroupOffsetsRequest, _alter),
    ApiHandler(DeleteShareGroupOffsetsRequest, _delete),
)
