"""Offset requests: group commits, and lookups of offsets by timestamp.

Each function is a flow over a ``ClientCore``. For a partition error it raises ``BrokerError`` with the partition as the
subject.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from kafka_msgs.client.broker_errors import broker_error, missing_error, raise_for
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, sleep_until
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_msgs.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_msgs.messages.offset_commit_response import OffsetCommitResponseTopic
from kafka_msgs.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka_msgs.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka_msgs.schema import ZERO_UUID

__all__ = ["OffsetAndTimestamp", "commit_offsets", "fetch_committed_offsets", "list_offsets"]

_MANY_SINCE: Final = 8
"""The first OffsetFetch version that supports multiple groups (KIP-709)."""
_STABLE_SINCE: Final = 7
"""The first OffsetFetch version that can require stable offsets, without open transactions (KIP-447)."""
_PASSING_ERRORS: Final = frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_ID})
"""Error codes after which the client retries: a transaction may end, or a topic may have a new id."""
_CONSUMER: Final = -1
_NO_OFFSET: Final = -1


class OffsetAndTimestamp(NamedTuple):
    """The result of an offset lookup: offset (-1 if not found), record timestamp in ms, and leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int


def commit_offsets(
    client: ClientCore,
    group: ConsumerGroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    deadline: float,
) -> Flow[None]:
    """Commit positions. Raises ``BrokerError``, for example if the member is no longer in the group.

    The broker rejects positions of a deleted topic, even if a new topic has the same name (OffsetCommit v10). For
    topics without an id in ``group``, the known metadata contains the id.
    """
    if not offsets:
        return
    ids = {name: group.topic_ids.get(name) or client.cluster.topic_id(name.topic) for name in offsets}
    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic,
            topic_id=topic_id,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=each.partition,
                    committed_offset=offsets[each].offset,
                    committed_leader_epoch=offsets[each].leader_epoch,
                    committed_metadata=offsets[each].metadata,
                )
                for each in partitions
            ),
        )
        for (topic, topic_id), partitions in _by_topic_id(ids).items()
    )
    request = OffsetCommitRequest(
        group_id=group.group_id,
        generation_id_or_member_epoch=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=topics,
    )
    names = {topic.topic_id: topic.name for topic in topics}
    answer = yield from client.call(request, deadline=deadline)
    answered = set()
    for topic in answer.topics:
        for partition in topic.partitions:
            name = TopicPartition(_topic_name(topic, names), partition.partition_index)
            raise_for(partition.error_code, api="OffsetCommit", subject=name)
            answered.add(name)
    _require_all(offsets, answered, "OffsetCommit")


def fetch_committed_offsets(
    client: ClientCore,
    group: ConsumerGroupMetadata,
    partitions: Collection[TopicPartition],
    *,
    stable: bool,
    deadline: float,
) -> Flow[dict[TopicPartition, OffsetAndMetadata]]:
    """Return the committed positions of partitions. Partitions without a committed position are omitted.

    With ``stable``, wait for open transactions that may change the positions (KIP-447). Positions of a deleted topic
    with the same name are omitted (OffsetFetch v10 and later).
    """
    while True:
        ids = {name: client.cluster.topic_id(name.topic) for name in partitions}
        answer = yield from _ask_committed(client, group, ids, stable, deadline)
        raise_for(answer.error_code, api="OffsetFetch", subject=group.group_id)
        names = {topic_id: name.topic for name, topic_id in ids.items() if topic_id is not None}
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        answered, passing = set(), set()
        for topic in answer.topics:
            for each in topic.partitions:
                name = TopicPartition(_topic_name(topic, names), each.partition_index)
                answered.add(name)
                if each.error_code in _PASSING_ERRORS:
                    passing.add(each.error_code)
                elif each.error_code:
                    raise broker_error(each.error_code, api="OffsetFetch", subject=name)
                elif each.committed_offset != _NO_OFFSET:
                    epoch, text = each.committed_leader_epoch, each.metadata or ""
                    found[name] = OffsetAndMetadata(each.committed_offset, epoch, text)
        _require_all(partitions, answered, "OffsetFetch")
        if not passing:
            return found
        yield from _pause(client, deadline, min(passing), partitions)
        if ErrorCode.UNKNOWN_TOPIC_ID in passing:
            yield from client.refresh({name.topic for name in partitions}, deadline=deadline)


def _ask_committed(
    client: ClientCore,
    group: ConsumerGroupMetadata,
    ids: Mapping[TopicPartition, UUID | None],
    stable: bool,
    deadline: float,
) -> Flow[OffsetFetchResponse | OffsetFetchResponseGroup]:
    """Send OffsetFetch to the group coordinator, and return the response for the group.

    Older brokers receive the single-group form of the request. As in Kafka's consumer, brokers without support for
    stable offsets receive the request without ``require_stable``.
    """
    connection = yield from client.coordinator_link(group.group_id, CoordinatorKind.GROUP, deadline=deadline)
    version = connection.highest_version(OffsetFetchRequest)
    stable = stable and version >= _STABLE_SINCE
    if version < _MANY_SINCE:
        topics = tuple(
            OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(each.partition for each in found))
            for topic, found in _by_topic(ids).items()
        )
        older = OffsetFetchRequest(group_id=group.group_id, topics=topics, require_stable=stable)
        return (yield from client.call(older, deadline=deadline))
    modern = group.member_id and group.generation >= 0
    asked = OffsetFetchRequestGroup(
        group_id=group.group_id,
        member_id=group.member_id if modern else None,
        member_epoch=group.generation if modern else -1,
        topics=tuple(
            OffsetFetchRequestTopics(
                name=topic, topic_id=topic_id, partition_indexes=tuple(each.partition for each in found)
            )
            for (topic, topic_id), found in _by_topic_id(ids).items()
        ),
    )
    answer = yield from client.call(OffsetFetchRequest(groups=(asked,), require_stable=stable), deadline=deadline)
    for each in answer.groups:
        if each.group_id == group.group_id:
            return each
    raise missing_error("OffsetFetch", group.group_id)


def list_offsets(
    client: ClientCore, times: Mapping[TopicPartition, int], *, committed: bool, deadline: float
) -> Flow[dict[TopicPartition, OffsetAndTimestamp]]:
    """Return the first offset at or after a timestamp for each partition: ms, or an ``OffsetResetStrategy``.

    With ``committed``, the end of a partition is its last stable offset (``read_committed``).
    """
    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(partition_index=each.partition, timestamp=times[each]) for each in partitions
            ),
        )
        for topic, partitions in _by_topic(times).items()
    )
    request = ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=int(committed), topics=topics)
    answer = yield from client.call(request, deadline=deadline)
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            name = TopicPartition(topic.name, each.partition_index)
            raise_for(each.error_code, api="ListOffsets", subject=name)
            found[name] = OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
    _require_all(times, found, "ListOffsets")
    return found


def _require_all(requested: Collection[TopicPartition], answered: Collection[TopicPartition], api: str) -> None:
    """Raise ``BrokerError`` for a requested partition that is missing from the response."""
    for name in requested:
        if name not in answered:
            raise missing_error(api, name)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for name in sorted(partitions):
        topics.setdefault(name.topic, []).append(name)
    return topics


def _topic_name(
    topic: OffsetCommitResponseTopic | OffsetFetchResponseTopic | OffsetFetchResponseTopics, names: Mapping[UUID, str]
) -> str:
    """Return the name of a topic in a response. Newer versions contain the topic id instead."""
    return topic.name if topic.name or isinstance(topic, OffsetFetchResponseTopic) else names.get(topic.topic_id, "")


def _by_topic_id(ids: Mapping[TopicPartition, UUID | None]) -> dict[tuple[str, UUID], list[TopicPartition]]:
    topics: dict[tuple[str, UUID], list[TopicPartition]] = {}
    for name in sorted(ids):
        topics.setdefault((name.topic, ids[name] or ZERO_UUID), []).append(name)
    return topics


def _pause(client: ClientCore, deadline: float, error: int, partitions: Collection[TopicPartition]) -> Flow[None]:
    """Wait for ``backoff`` before a retry. Raises ``BrokerError`` if the deadline is earlier."""
    moment = client.network.now() + client.config.backoff
    if moment >= deadline:
        raise broker_error(error, api="OffsetFetch", subject=sorted(partitions))
    yield from sleep_until(moment)
