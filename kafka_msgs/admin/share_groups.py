"""Offsets of share groups (KIP-932): list, alter, delete."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_msgs.admin.fan_out import CoordinatorFanOut
from kafka_msgs.admin.partitions import by_topic
from kafka_msgs.admin.results import Outcome, Results, api_name, broker_error, item_as_value, no_value, outcomes
from kafka_msgs.client.cluster_metadata import Broker, TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.messages import alter_share_group_offsets_request as alter
from kafka_msgs.messages import delete_share_group_offsets_request as delete
from kafka_msgs.messages import describe_share_group_offsets_request as describe
from kafka_msgs.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kafka_msgs.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from kafka_msgs.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponseGroup as OffsetsOfGroup,
)
from kafka_msgs.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponsePartition as SharePartitionOffset,
)

__all__ = [
    "SharePartitionOffset",
    "alter_share_group_offsets",
    "delete_share_group_offsets",
    "list_share_group_offsets",
]


def list_share_group_offsets(
    client: ClientCore,
    groups: Mapping[str, Collection[TopicPartition] | None],
    *,
    timeout: float | None = None,
) -> Flow[Results[str, Results[TopicPartition, SharePartitionOffset]]]:
    """Return the start offsets of share groups: of some partitions of each, or with None of all."""

    def wanted(group_id: str) -> describe.DescribeShareGroupOffsetsRequestGroup:
        partitions = groups[group_id]
        topics = None if partitions is None else by_topic(partitions)
        return describe.DescribeShareGroupOffsetsRequestGroup(
            group_id=group_id,
            topics=None
            if topics is None
            else tuple(
                describe.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=numbers)
                for name, numbers in topics.items()
            ),
        )

    return (
        yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=client.deadline(timeout)).each(
            groups,
            lambda ids: describe.DescribeShareGroupOffsetsRequest(groups=tuple(map(wanted, ids))),
            lambda response: ((each.group_id, each) for each in response.groups),
            _offsets,
        )
    )


def _offsets(group: OffsetsOfGroup, _: Broker | None) -> Results[TopicPartition, SharePartitionOffset]:
    items = ((TopicPartition(t.topic_name, each.partition_index), each) for t in group.topics for each in t.partitions)
    return outcomes(api_name(describe.DescribeShareGroupOffsetsRequest), items, item_as_value)


def alter_share_group_offsets(
    client: ClientCore, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
) -> Flow[Results[TopicPartition, None]]:
    """Set the start offsets of a share group. The group must have no members."""
    deadline = client.deadline(timeout)
    request = alter.AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=tuple(
            alter.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=tuple(
                    alter.AlterShareGroupOffsetsRequestPartition(
                        partition_index=each, start_offset=offsets[TopicPartition(name, each)]
                    )
                    for each in numbers
                ),
            )
            for name, numbers in by_topic(offsets).items()
        ),
    )

    api = api_name(request)

    def read(response: AlterShareGroupOffsetsResponse) -> Outcome[Results[TopicPartition, None]]:
        items = (
            (TopicPartition(topic.topic_name, each.partition_index), each)
            for topic in response.responses
            for each in topic.partitions
        )
        return broker_error(response, api, group_id) or outcomes(api, items, no_value, offsets)

    return (yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=deadline).one(group_id, request, read))


def delete_share_group_offsets(
    client: ClientCore, group_id: str, topics: Collection[str], *, timeout: float | None = None
) -> Flow[Results[str, None]]:
    """Delete the offsets of a share group for whole topics. The group must have no members."""
    deadline = client.deadline(timeout)
    request = delete.DeleteShareGroupOffsetsRequest(
        group_id=group_id,
        topics=tuple(delete.DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in topics),
    )

    api = api_name(request)

    def read(response: DeleteShareGroupOffsetsResponse) -> Outcome[Results[str, None]]:
        items = ((each.topic_name, each) for each in response.responses)
        return broker_error(response, api, group_id) or outcomes(api, items, no_value, topics)

    return (yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=deadline).one(group_id, request, read))
