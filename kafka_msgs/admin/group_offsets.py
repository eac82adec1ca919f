"""Committed offsets of groups: list (KIP-88, KIP-709), alter, and delete (KIP-496).

These operations do not join groups. The coordinator of the group handles them, and topics are identified by name: so
the highest version of OffsetFetch and of OffsetCommit is 9, because later versions identify topics only by their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from kafka_msgs.admin.fan_out import CoordinatorFanOut, seconds_left
from kafka_msgs.admin.partitions import by_topic
from kafka_msgs.admin.results import Outcome, Results, api_name, broker_error, no_value, outcomes
from kafka_msgs.admin.topics import partitions_of_topics
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.client.scheduler import gather
from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.messages import offset_commit_request as commit
from kafka_msgs.messages import offset_delete_request as delete
from kafka_msgs.messages import offset_fetch_request as fetch
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.offset_commit_response import OffsetCommitResponse
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequest
from kafka_msgs.messages.offset_delete_response import OffsetDeleteResponse
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from kafka_msgs.versions import VersionRange

__all__ = [
    "alter_group_offsets",
    "delete_group_offsets",
    "delete_topic_offsets",
    "list_group_offsets",
    "list_offsets_of_groups",
    "offset_fetch_request",
]

Wanted: TypeAlias = Collection[TopicPartition] | None
"""The requested partitions. None requests every partition for which the group has an offset."""

_BY_NAME: Final = 9
"""The highest version of OffsetFetch and OffsetCommit in which topics have names."""

_ALL_SINCE, _MANY_SINCE = 2, 8
"""The first versions of OffsetFetch for all partitions (KIP-88), and for several groups (KIP-709)."""


def list_group_offsets(
    client: ClientCore,
    group_id: str,
    partitions: Wanted = None,
    *,
    require_stable: bool = False,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, OffsetAndMetadata]]:
    """Return the committed offsets of a group (KIP-88).

    Without ``partitions`` the result has every partition for which the group has an offset, including topics that
    no member reads, even if the group has no members. ``require_stable`` waits until open transactions that affect
    the offsets have ended (KIP-447). Raises ``BrokerError`` if the request for the group failed, and
    ``UnsupportedVersionError`` if the broker cannot list all partitions.
    """
    groups = yield from list_offsets_of_groups(
        client, {group_id: partitions}, require_stable=require_stable, timeout=timeout
    )
    return groups[group_id]


def list_offsets_of_groups(
    client: ClientCore,
    groups: Mapping[str, Wanted],
    *,
    require_stable: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, Results[TopicPartition, OffsetAndMetadata]]]:
    """Return the committed offsets of many groups: one request per coordinator (KIP-709).

    ``groups`` has the requested partitions of each group, or None for all, as in ``list_group_offsets``. Brokers
    without support for several groups get one request per group.
    """
    deadline = client.deadline(timeout)

    def ask(
        broker_id: int, ids: Sequence[str]
    ) -> Flow[Mapping[str, Outcome[Results[TopicPartition, OffsetAndMetadata]]]]:
        connection = yield from client.link(broker_id, deadline=deadline)
        version = min(connection.highest_version(OffsetFetchRequest), _BY_NAME)
        parts = [ids] if version >= _MANY_SINCE else [[each] for each in ids]
        requests = [
            offset_fetch_request({each: groups[each] for each in part}, version, require_stable=require_stable)
            for part in parts
        ]
        answers = yield from gather(
            [
                client.call(each, broker_id=broker_id, version=version, retry=False, deadline=deadline)
                for each in requests
            ]
        )
        found: dict[str, Outcome[Results[TopicPartition, OffsetAndMetadata]]] = {}
        for part, answer in zip(parts, answers, strict=True):
            found |= dict.fromkeys(part, answer) if isinstance(answer, Exception) else _offsets(part, answer, version)
        return found

    return (yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=deadline).run(groups, ask))


def offset_fetch_request(
    groups: Mapping[str, Wanted], version: int, *, require_stable: bool = False
) -> OffsetFetchRequest:
    """Return the request for the offsets of groups; before version 8 it supports only one group.

    Raises ``UnsupportedVersionError`` for all partitions of a group before version 2, at which an empty list means no
    partitions.
    """
    if version < _ALL_SINCE and None in groups.values():
        raise UnsupportedVersionError(
            message="OffsetFetchRequest of all partitions",
            version=version,
            supported=VersionRange(_ALL_SINCE, OffsetFetchRequest.INFO.versions.highest),
        )
    if version < _MANY_SINCE:
        ((group_id, wanted),) = groups.items()
        return OffsetFetchRequest(group_id=group_id, topics=_topics(wanted), require_stable=require_stable)
    return OffsetFetchRequest(
        groups=tuple(
            fetch.OffsetFetchRequestGroup(group_id=group_id, topics=_topics_of_group(wanted))
            for group_id, wanted in groups.items()
        ),
        require_stable=require_stable,
    )


def _topics(wanted: Wanted) -> tuple[fetch.OffsetFetchRequestTopic, ...] | None:
    if wanted is None:
        return None
    return tuple(
        fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic(wanted).items()
    )


def _topics_of_group(wanted: Wanted) -> tuple[fetch.OffsetFetchRequestTopics, ...] | None:
    if wanted is None:
        return None
    return tuple(
        fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic(wanted).items()
    )


def _offsets(
    ids: Sequence[str], response: OffsetFetchResponse, version: int
) -> dict[str, Outcome[Results[TopicPartition, OffsetAndMetadata]]]:
    """Return each group's part of a response; before version 8 the response is about one group, without its name."""
    api = api_name(OffsetFetchRequest)
    if version >= _MANY_SINCE:
        return dict(outcomes(api, ((group.group_id, group) for group in response.groups), _partitions, ids).outcomes)
    return {ids[0]: broker_error(response, api, ids[0]) or _partitions(response)}


def _partitions(
    answer: OffsetFetchResponse | OffsetFetchResponseGroup,
) -> Results[TopicPartition, OffsetAndMetadata]:
    items = ((TopicPartition(topic.name, p.partition_index), p) for topic in answer.topics for p in topic.partitions)
    return outcomes(api_name(OffsetFetchRequest), items, _committed)


def _committed(partition: OffsetFetchResponsePartition | OffsetFetchResponsePartitions) -> OffsetAndMetadata:
    return OffsetAndMetadata(partition.committed_offset, partition.committed_leader_epoch, partition.metadata or "")


def alter_group_offsets(
    client: ClientCore,
    group_id: str,
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
    *,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, None]]:
    """Set the offsets of a group; other partitions keep their offsets.

    The group must have no members. Otherwise each partition fails with ``UNKNOWN_MEMBER_ID``. The operation is not
    atomic: some partitions may succeed while others fail.
    """
    deadline = client.deadline(timeout)
    request = OffsetCommitRequest(group_id=group_id, topics=_commits(offsets))

    api = api_name(request)

    def read(response: OffsetCommitResponse) -> Outcome[Results[TopicPartition, None]]:
        items = (
            (TopicPartition(topic.name, p.partition_index), p) for topic in response.topics for p in topic.partitions
        )
        return outcomes(api, items, no_value, offsets)

    return (yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=deadline).one(group_id, request, read))


def _commits(offsets: Mapping[TopicPartition, int | OffsetAndMetadata]) -> tuple[commit.OffsetCommitRequestTopic, ...]:
    def partition(topic: str, number: int) -> commit.OffsetCommitRequestPartition:
        offset = offsets[TopicPartition(topic, number)]
        whole = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        return commit.OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=whole.offset,
            committed_leader_epoch=whole.leader_epoch,
            committed_metadata=whole.metadata,
        )

    return tuple(
        commit.OffsetCommitRequestTopic(name=topic, partitions=tuple(partition(topic, each) for each in numbers))
        for topic, numbers in by_topic(offsets).items()
    )


def delete_group_offsets(
    client: ClientCore, group_id: str, partitions: Collection[TopicPartition], *, timeout: float | None = None
) -> Flow[Results[TopicPartition, None]]:
    """Delete the offsets of a group for some partitions (KIP-496).

    A partition whose topic the group subscribes to fails with ``GROUP_SUBSCRIBED_TO_TOPIC``. Raises ``BrokerError``
    if the request for the group failed.
    """
    deadline = client.deadline(timeout)
    topics = tuple(
        delete.OffsetDeleteRequestTopic(
            name=topic, partitions=tuple(delete.OffsetDeleteRequestPartition(partition_index=each) for each in numbers)
        )
        for topic, numbers in by_topic(partitions).items()
    )
    request = OffsetDeleteRequest(group_id=group_id, topics=topics)

    api = api_name(request)

    def read(response: OffsetDeleteResponse) -> Outcome[Results[TopicPartition, None]]:
        items = (
            (TopicPartition(topic.name, p.partition_index), p) for topic in response.topics for p in topic.partitions
        )
        return broker_error(response, api, group_id) or outcomes(api, items, no_value, partitions)

    return (yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=deadline).one(group_id, request, read))


def delete_topic_offsets(
    client: ClientCore, group_id: str, topics: Collection[str], *, timeout: float | None = None
) -> Flow[Results[str, None]]:
    """Delete the offsets of a group for all partitions of some topics. A topic fails with its first partition.

    The partitions are all partitions of the topics, and all partitions for which the group has an offset.
    """
    deadline = client.deadline(timeout)
    names = list(dict.fromkeys(topics))
    existing = yield from partitions_of_topics(client, names, deadline=deadline)
    stored = yield from list_group_offsets(client, group_id, timeout=seconds_left(client, deadline))
    partitions = {each for each in (*existing, *stored) if each.topic in names}
    deleted = yield from delete_group_offsets(
        client, group_id, sorted(partitions), timeout=seconds_left(client, deadline)
    )
    failed: dict[str, Exception] = {}
    for partition, error in deleted.errors.items():
        failed.setdefault(partition.topic, error)
    return Results({name: failed.get(name) for name in names})
