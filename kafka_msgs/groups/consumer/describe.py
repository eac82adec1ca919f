"""ConsumerGroupDescribe: a consumer group with its members, as of the last committed record (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import HashTable, copy_capacity, hash_map_order
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import ConsumerGroupMember
from kafka_msgs.groups.consumer.membership import find_group
from kafka_msgs.groups.consumer.subscription import preferred_assignor
from kafka_msgs.groups.group_protocol import each_group
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order, java_hash_code
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.messages import consumer_group_describe_response as response
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest

__all__ = ["describe", "refuse_description"]

_CLASSIC = 0
_CONSUMER = 1


def describe(
    op: OperationContext, context: RequestContext, request: ConsumerGroupDescribeRequest, group_ids: Sequence[str]
) -> list[response.DescribedGroup]:
    """Describe groups. A group that is not a consumer group has an error in its entry."""
    return each_group(
        group_ids, lambda group_id: _group(op, find_group(op, group_id)), refuse_description, context.version
    )


def refuse_description(group_id: str, error: GroupError, version: int) -> response.DescribedGroup:
    """Return the entry of a group that cannot be described."""
    return response.DescribedGroup(error_code=error.error, error_message=error.message, group_id=group_id)


def _group(op: OperationContext, group: ConsumerGroup) -> response.DescribedGroup:
    return response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(op, group.assignors, iter_kafka_order(group.assignors)),
        members=tuple(_member(op, group, group.members[member_id]) for member_id in iter_kafka_order(group.members)),
    )


def _member(op: OperationContext, group: ConsumerGroup, member: ConsumerGroupMember) -> response.Member:
    metadata = member.metadata
    names = metadata.subscribed_topic_names
    return response.Member(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=member.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=tuple(hash_map_order(names, capacity=copy_capacity(len(names)))),
        subscribed_topic_regex=metadata.subscribed_topic_regex,
        assignment=_assignment(_owned(member), op.image),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), op.image),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _owned(member: ConsumerGroupMember) -> Mapping[UUID, Sequence[int]]:
    """Return a member's partitions, including partitions to revoke, in the order of Kafka's map of both."""
    owned: dict[UUID, list[int]] = {}
    table: HashTable[UUID] = HashTable(java_hash_code)
    for part in (member.assigned, member.revoking):
        for topic, epochs in part.items():
            owned.setdefault(topic, []).extend(epochs)
            table.compute(topic)
    return {topic: owned[topic] for topic in table.walk()}


def _assignment(partitions: Mapping[UUID, Iterable[int]], image: TopicsImage) -> response.Assignment:
    return response.Assignment(
        topic_partitions=tuple(
            response.TopicPartitions(topic_id=topic, topic_name=image.by_id[topic].name, partitions=tuple(each))
            for topic, each in partitions.items()
            if topic in image.by_id
        )
    )
