"""Offsets that brokers keep or look up: commits of a group, and positions by time.

Each function is a piece of logic over a ``ClientCore``. Errors of single partitions are raised as ``BrokerError`` with
the partition as its subject.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from attrs import frozen

from kafka_msgs.client.broker_errors import broker_error, missing_error, raise_for
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.membership import ConsumerGroupMetadata
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, sleep_until
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

__all__ = ["OffsetAndMetadata", "OffsetAndTimestamp", "commit_offsets", "fetch_committed_offsets", "list_offsets"]

_MANY_SINCE: Final = 8
"""The version of OffsetFetch from which it asks about many groups (KIP-709)."""
_STABLE_SINCE: Final = 7
"""The version of OffsetFetch from which a broker can wait for open transactions (KIP-447)."""
_PASSING_ERRORS: Final = frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_ID})
"""Error codes after which a client asks again: a transaction may end, and a topic may have another id by now."""
_CONSUMER: Final = -1
_NO_OFFSET: Final = -1


@frozen
class OffsetAndMetadata:
    """A committed position: the offset of the next record to read, the leader epoch before it, and a text.

    ``leader_epoch`` is -1 if it is not known. In Kafka it is ``OffsetAndMetadata``.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class OffsetAndTimestamp(NamedTuple):
    """An offset that was looked up: -1 if there is none; the timestamp of its record in ms, and its leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int


def commit_offsets(
    client: ClientCore,
    group_id: str,
    identity: ConsumerGroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    topic_ids: Mapping[TopicPartition, UUID | None] | None = None,
    deadline: float,
) -> Flow[None]:
    """Commit positions. Raises ``BrokerError``, for example if the member is not in the group any more.

    ``topic_ids`` are the topics that the positions belong to. The broker refuses positions of a topic that was deleted,
    even if another topic has its name now (OffsetCommit v10).
    """
    if not offsets:
        return
    ids = {name: client.cluster.topic_id(name.topic) for name in offsets} | dict(topic_ids or {})
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
        group_id=group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
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
    group_id: str,
    identity: ConsumerGroupMetadata,
    partitions: Collection[TopicPartition],
    *,
    stable: bool,
    deadline: float,
) -> Flow[dict[TopicPartition, OffsetAndMetadata]]:
    """Return the committed positions of partitions. Those without one are left out.

    With ``stable``, positions that an open transaction may change are waited for (KIP-447). Positions of an earlier
    topic of the same name are left out (OffsetFetch v10 and later).
    """
    while True:
        ids = {name: client.cluster.topic_id(name.topic) for name in partitions}
        answer = yield from _ask_committed(client, group_id, identity, ids, stable, deadline)
        raise_for(answer.error_code, api="OffsetFetch", subject=group_id)
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
    group_id: str,
    identity: ConsumerGroupMetadata,
    ids: Mapping[TopicPartition, UUID | None],
    stable: bool,
    deadline: float,
) -> Flow[OffsetFetchResponse | OffsetFetchResponseGroup]:
    """Send OffsetFetch to the coordinator of the group; return the part of the answer that is about the group.

    An older broker is asked in the older form, about one group. One that does not know stable offsets is not asked for
    them, as in Kafka's consumer.
    """
    connection = yield from client.coordinator_link(group_id, CoordinatorKind.GROUP, deadline=deadline)
    version = connection.highest_version(OffsetFetchRequest)
    stable = stable and version >= _STABLE_SINCE
    if version < _MANY_SINCE:
        topics = tuple(
            OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(each.partition for each in found))
            for topic, found in _by_topic(ids).items()
        )
        older = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=stable)
        return (yield from client.call(older, deadline=deadline))
    modern = identity.member_id and identity.generation >= 0
    group = OffsetFetchRequestGroup(
        group_id=group_id,
        member_id=identity.member_id if modern else None,
        member_epoch=identity.generation if modern else -1,
        topics=tuple(
            OffsetFetchRequestTopics(
                name=topic, topic_id=topic_id, partition_indexes=tuple(each.partition for each in found)
            )
            for (topic, topic_id), found in _by_topic_id(ids).items()
        ),
    )
    answer = yield from client.call(OffsetFetchRequest(groups=(group,), require_stable=stable), deadline=deadline)
    for each in answer.groups:
        if each.group_id == group_id:
            return each
    raise missing_error("OffsetFetch", group_id)


def list_offsets(
    client: ClientCore, times: Mapping[TopicPartition, int], *, committed: bool, deadline: float
) -> Flow[dict[TopicPartition, OffsetAndTimestamp]]:
    """Return the first offsets whose records are not older than a time: ms, or a ``OffsetResetStrategy``.

    With ``committed`` the end of a partition is its last stable offset (read_committed).
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
    """Raise ``BrokerError`` for a partition that a response does not mention."""
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
    """Return the name of a topic of a response. Newer versions contain the topic id instead."""
    return topic.name if topic.name or isinstance(topic, OffsetFetchResponseTopic) else names.get(topic.topic_id, "")


def _by_topic_id(ids: Mapping[TopicPartition, UUID | None]) -> dict[tuple[str, UUID], list[TopicPartition]]:
    topics: dict[tuple[str, UUID], list[TopicPartition]] = {}
    for name in sorted(ids):
        topics.setdefault((name.topic, ids[name] or ZERO_UUID), []).append(name)
    return topics


def _pause(client: ClientCore, deadline: float, error: int, partitions: Collection[TopicPartition]) -> Flow[None]:
    """Wait a little for an error to pass. Raises ``BrokerError`` if there is no time for that."""
    moment = client.network.now() + client.config.backoff
    if moment >= deadline:
        raise broker_error(error, api="OffsetFetch", subject=sorted(partitions))
    yield from sleep_until(moment)
