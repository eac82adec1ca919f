"""Topics and their partitions: list, describe, create, delete, and add partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TypeVar
from uuid import UUID

from attrs import evolve, field, frozen

from kafka_msgs.admin.fan_out import milliseconds_left
from kafka_msgs.admin.results import Outcome, Results, api_name, item_as_value, no_value, outcomes, raise_top_level
from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages import create_partitions_request as more
from kafka_msgs.messages import create_topics_request as create
from kafka_msgs.messages.create_topics_response import CreatableTopicResult
from kafka_msgs.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_msgs.messages.delete_topics_response import DeletableTopicResult
from kafka_msgs.messages.describe_topic_partitions_request import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from kafka_msgs.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_msgs.messages.metadata_response import MetadataResponse, MetadataResponseTopic

__all__ = [
    "NewPartitions",
    "NewTopic",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "describe_topic_partitions",
    "describe_topics",
    "list_topics",
    "partitions_of_topics",
]

K = TypeVar("K")
T = TypeVar("T")


@frozen
class NewTopic:
    """A topic to create.

    ``partitions`` and ``replication_factor`` are -1 for the defaults of the cluster. ``assignments`` has the brokers of
    each partition instead, the preferred leader first. ``configs`` are the topic's configurations.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Collection[int]] = field(kw_only=True, factory=dict)
    configs: Mapping[str, str | None] = field(kw_only=True, factory=dict)

    def _in_request(self) -> create.CreatableTopic:
        return create.CreatableTopic(
            name=self.name,
            num_partitions=self.partitions,
            replication_factor=self.replication_factor,
            assignments=tuple(
                create.CreatableReplicaAssignment(partition_index=partition, broker_ids=tuple(brokers))
                for partition, brokers in self.assignments.items()
            ),
            configs=tuple(create.CreatableTopicConfig(name=name, value=value) for name, value in self.configs.items()),
        )


@frozen
class NewPartitions:
    """The new partition count of a topic. ``assignments`` has the brokers of each new partition, or is None."""

    total: int
    assignments: Collection[Collection[int]] | None = None


def list_topics(
    client: ClientCore, *, include_internal: bool = False, timeout: float | None = None
) -> Flow[dict[str, MetadataResponseTopic]]:
    """Return every topic that the client may see, by name, with its partitions, leaders and replicas."""
    response = yield from _metadata(client, None, client.deadline(timeout))
    topics = _named(response.topics, attrgetter("name"))
    return {name: each for name, each in topics if include_internal or not each.is_internal}


def _named(items: Iterable[T], name_of: Callable[[T], K | None]) -> Iterator[tuple[K, T]]:
    """Yield items with their names. Responses may contain topics without names, if the broker only has their ids."""
    return ((name, each) for each in items if (name := name_of(each)) is not None)


def describe_topics(
    client: ClientCore,
    topics: Collection[str | UUID],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str | UUID, MetadataResponseTopic]]:
    """Return topics by name or by topic id, with their partitions, leaders and replicas. It creates no topics."""
    deadline = client.deadline(timeout)
    ids = tuple(MetadataRequestTopic(topic_id=each, name=None) for each in topics if isinstance(each, UUID))
    names = tuple(MetadataRequestTopic(name=each) for each in topics if isinstance(each, str))
    found: dict[str | UUID, Outcome[MetadataResponseTopic]] = {}
    for wanted, key in ((ids, attrgetter("topic_id")), (names, attrgetter("name"))):
        if wanted:  # brokers ignore names in a request with ids
            response = yield from _metadata(client, wanted, deadline, operations=include_authorized_operations)
            items = _named(response.topics, key)
            found |= outcomes(api_name(MetadataRequest), items, item_as_value, map(key, wanted)).outcomes
    return Results({each: found[each] for each in topics})


def _metadata(
    client: ClientCore, topics: tuple[MetadataRequestTopic, ...] | None, deadline: float, *, operations: bool = False
) -> Flow[MetadataResponse]:
    request = MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=operations
    )
    response = yield from client.call(request, deadline=deadline)
    raise_top_level(response, api_name(request))
    return response


def partitions_of_topics(client: ClientCore, topics: Collection[str], *, deadline: float) -> Flow[list[TopicPartition]]:
    """Return every partition of some topics; a topic that does not exist has none."""
    response = yield from _metadata(client, tuple(MetadataRequestTopic(name=each) for each in topics), deadline)
    named = _named(response.topics, attrgetter("name"))
    return [TopicPartition(name, each.partition_index) for name, topic in named for each in topic.partitions]


def describe_topic_partitions(
    client: ClientCore, topics: Collection[str], *, partitions_per_request: int = 2000, timeout: float | None = None
) -> Flow[Results[str, DescribeTopicPartitionsResponseTopic]]:
    """Return topics with the eligible leader replicas of their partitions (KIP-966).

    It requests at most ``partitions_per_request`` partitions at once, until it has all partitions.
    """
    deadline = client.deadline(timeout)
    names = sorted(set(topics))
    pages: list[DescribeTopicPartitionsResponse] = []
    cursor: Cursor | None = None
    while not pages or cursor is not None:
        request = DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=name) for name in names if cursor is None or name >= cursor.topic_name),
            response_partition_limit=partitions_per_request,
            cursor=cursor,
        )
        pages.append((yield from client.call(request, deadline=deadline)))
        cursor = _next(pages[-1], cursor)
    items = _named(_joined(pages), attrgetter("name"))
    return outcomes(api_name(DescribeTopicPartitionsRequest), items, item_as_value, names)


def _next(page: DescribeTopicPartitionsResponse, last: Cursor | None) -> Cursor | None:
    """Return the start of the next page, or None after the last one. Raises ``BrokerError`` if it does not advance."""
    at = page.next_cursor
    if at is None:
        return None
    if last is not None and (at.topic_name, at.partition_index) <= (last.topic_name, last.partition_index):
        api, message = api_name(DescribeTopicPartitionsRequest), "the broker sends the same page again"
        raise broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, api=api, subject=at.topic_name, message=message)
    return Cursor(topic_name=at.topic_name, partition_index=at.partition_index)


def _joined(pages: Iterable[DescribeTopicPartitionsResponse]) -> Iterable[DescribeTopicPartitionsResponseTopic]:
    """Return the topics of all pages; a topic's partitions may be on several pages."""
    topics: dict[str | None, list[DescribeTopicPartitionsResponseTopic]] = {}
    for page in pages:
        for topic in page.topics:
            topics.setdefault(topic.name, []).append(topic)
    for parts in topics.values():
        yield evolve(parts[0], partitions=tuple(each for part in parts for each in part.partitions))


def create_topics(
    client: ClientCore, topics: Collection[NewTopic], *, validate_only: bool = False, timeout: float | None = None
) -> Flow[Results[str, CreatableTopicResult]]:
    """Create topics. The value of each is the created topic: id, partitions, replication factor, configurations.

    ``validate_only`` validates the request without creating topics.
    """
    deadline = client.deadline(timeout)
    request = create.CreateTopicsRequest(
        topics=tuple(each._in_request() for each in topics),
        timeout_ms=milliseconds_left(client, deadline),
        validate_only=validate_only,
    )
    response = yield from client.call(request, deadline=deadline)
    items = ((each.name, each) for each in response.topics)
    return outcomes(api_name(request), items, item_as_value, [each.name for each in topics])


def delete_topics(
    client: ClientCore, topics: Collection[str | UUID], *, timeout: float | None = None
) -> Flow[Results[str | UUID, None]]:
    """Delete topics, by name or by topic id."""
    deadline = client.deadline(timeout)
    wanted = list(dict.fromkeys(topics))
    by_id = {each for each in wanted if isinstance(each, UUID)}
    request = DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(topic_id=e) if isinstance(e, UUID) else DeleteTopicState(name=e) for e in wanted),
        timeout_ms=milliseconds_left(client, deadline),
    )
    response = yield from client.call(request, deadline=deadline)
    items: Iterable[tuple[str | UUID, DeletableTopicResult]] = _named(
        response.responses, lambda each: each.topic_id if each.topic_id in by_id else each.name
    )
    return outcomes(api_name(request), items, no_value, wanted)


def create_partitions(
    client: ClientCore,
    topics: Mapping[str, int | NewPartitions],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, None]]:
    """Increase the number of partitions of topics. The number is the new total."""
    deadline = client.deadline(timeout)

    def wanted(name: str, new: NewPartitions) -> more.CreatePartitionsTopic:
        assignments = tuple(
            more.CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in new.assignments or ()
        )
        return more.CreatePartitionsTopic(name=name, count=new.total, assignments=assignments or None)

    request = more.CreatePartitionsRequest(
        topics=tuple(
            wanted(name, new if isinstance(new, NewPartitions) else NewPartitions(new)) for name, new in topics.items()
        ),
        timeout_ms=milliseconds_left(client, deadline),
        validate_only=validate_only,
    )
    response = yield from client.call(request, deadline=deadline)
    return outcomes(api_name(request), ((each.name, each) for each in response.results), no_value, topics)
