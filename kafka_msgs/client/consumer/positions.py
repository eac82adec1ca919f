"""The positions of a consumer: commits, committed offsets, and initial positions."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from attrs import evolve

from kafka_msgs.client.broker_errors import broker_error, raise_for
from kafka_msgs.client.cluster_metadata import PartitionInfo, TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import RESETS, AssignedPartition
from kafka_msgs.client.consumer.consumer_state import ConsumerState, Offsets, refused
from kafka_msgs.client.consumer.offsets import (
    OffsetAndTimestamp,
    commit_offsets,
    fetch_committed_offsets,
    list_offsets,
)
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.scheduler import Task
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ClientError, OffsetPositionError
from kafka_msgs.messages.metadata_request import MetadataRequest

__all__ = ["Positions"]

_LOG: Final = logging.getLogger("kafka_msgs.client.consumer")


class Positions:
    """The positions of the partitions of one consumer."""

    def __init__(self, state: ConsumerState) -> None:
        self._state = state
        self._client = state.client
        self._config = state.config
        self._retries = RetryLog(_LOG, state.client.network.now)

    def current(self, names: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int | OffsetAndMetadata]:
        """Return the known positions of the given partitions, or of all partitions."""
        partitions = self._state.partitions
        found = (partitions.get(name) for name in (partitions.names if names is None else names))
        return {
            each.name: OffsetAndMetadata(each.position, each.position_epoch)
            for each in found
            if each is not None and each.position is not None
        }

    def handled(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, int | OffsetAndMetadata]:
        """Return the positions up to which the user has handled all records, or the stored offsets."""
        found = (
            self._state.partitions.get(name)
            for name in (self._state.partitions.names if partitions is None else partitions)
        )
        return {each.name: each.handled for each in found if each is not None and each.handled is not None}

    def commit(self, offsets: Offsets | None, deadline: float) -> Flow[None]:
        """Commit offsets. Raises ``BrokerError`` if the consumer is not in its group.

        The default is all positions, or the stored offsets without ``auto_offset_store``.
        """
        return self._commit(*self._to_commit(offsets), deadline)

    def commit_nowait(self, offsets: Offsets | None) -> Task[None]:
        """Start a commit, and return its task without waiting."""
        self._check_commit()
        return self._client.network.spawn(self.commit(offsets, self._client.deadline(None)))

    def auto_commit(self, partitions: Collection[TopicPartition] | None = None) -> Flow[None]:
        """Commit positions if automatic commits are enabled. After a failure, the next owner rereads the records."""
        if self.commits:
            self._state.notice_topics()
            try:
                yield from self._commit(self.handled(partitions), self._topic_ids(), self._client.deadline(None))
                self._retries.passed("auto_commit")
            except ClientError as error:
                self._retries.failed("auto_commit", error)

    def _to_commit(self, offsets: Offsets | None) -> tuple[Offsets, dict[TopicPartition, UUID]]:
        """Return the offsets to commit, and the ids of their topics.

        Positions belong to the current topics. Other offsets belong to the topics of the returned records.
        """
        self._state.notice_topics()
        ids = self._topic_ids()
        if offsets is not None:
            return dict(offsets), ids | self._state.returned_ids
        return self.current() if self._config.auto_offset_store else self.handled(), ids

    def _topic_ids(self) -> dict[TopicPartition, UUID]:
        return {each.name: each.topic_id for each in self._state.partitions if each.topic_id is not None}

    def _commit(self, offsets: Offsets, topic_ids: Mapping[TopicPartition, UUID], deadline: float) -> Flow[None]:
        self.member()
        values = {
            TopicPartition(*name): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for name, offset in offsets.items()
        }
        group = evolve(self._state.identity, topic_ids=topic_ids)
        begin, failure = self._client.network.now(), None
        try:
            yield from commit_offsets(self._client, group, values, deadline=deadline)
        except ClientError as error:
            failure = error
            raise
        finally:
            self._client.directory.hooks.call(
                "offsets_committed", group.group_id, {name: each.offset for name, each in values.items()},
                self._client.network.now() - begin, failure,
            )  # fmt: skip

    def member(self) -> ConsumerGroupMetadata:
        """Return the group metadata for commits. Raises ``BrokerError`` if the consumer is not a group member now."""
        self._check_commit()
        membership = self._state.membership
        if membership is not None and not membership.is_member:
            raise broker_error(ErrorCode.UNKNOWN_MEMBER_ID, api="OffsetCommit", subject=self._config.group_id)
        return self._state.identity

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata with the topic ids of the returned records. Raises the errors of ``member``."""
        return evolve(self.member(), topic_ids=self._topic_ids() | self._state.returned_ids)

    @property
    def commits(self) -> bool:
        """Whether automatic commits are enabled and the consumer has partitions."""
        in_kafka = self._config.group_id is not None and self._config.offsets_storage == "kafka"
        return self._config.auto_commit and in_kafka and len(self._state.partitions) > 0

    def committed(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> Flow[dict[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of the group. Partitions without a commit are omitted."""
        self._check_commit()
        stable = self._config.isolation_level == "read_committed"
        return (
            yield from fetch_committed_offsets(
                self._client, self._state.identity, [TopicPartition(*name) for name in partitions],
                stable=stable, deadline=deadline,
            )
        )  # fmt: skip

    def position(self, name: TopicPartition, deadline: float) -> Flow[int]:
        """Return the offset of the next record. Looks up an unknown position."""
        partition = self._state.partitions[TopicPartition(*name)]
        if partition.position is None:
            yield from self.reset_or_restore([partition], deadline)
        if partition.error is not None:
            error, partition.error = partition.error, None
            raise error
        assert partition.position is not None
        self._state.note_returned(partition)
        return partition.position

    def reset_or_restore(self, partitions: Collection[AssignedPartition], deadline: float) -> Flow[None]:
        """Set missing positions: from a requested reset, the committed offset, or the reset policy."""
        self._state.notice_topics()
        fresh = [each.name for each in partitions if each.reset_strategy is None]
        versions = {each.name: each.version for each in partitions}
        committed: dict[TopicPartition, OffsetAndMetadata] = {}
        if fresh and self._config.group_id is not None and self._config.offsets_storage == "kafka":
            committed = yield from self.committed(fresh, deadline)
        times: dict[TopicPartition, int] = {}
        for each in partitions:
            if each.position is not None or each.version != versions[each.name]:
                continue
            if each.reset_strategy is None and each.name in committed:
                with self._state.lock:
                    each.seek(committed[each.name].offset, committed[each.name].leader_epoch)
            elif each.reset_strategy is not None:
                times[each.name] = each.reset_strategy
            elif self._config.auto_offset_reset == "none":
                each.error = _no_position(each.name)
            else:
                times[each.name] = RESETS[self._config.auto_offset_reset]
        yield from self._look_up(times, versions, deadline)
        self._state.changed.notify()
        self._state.arrived.notify()

    def _look_up(
        self, times: dict[TopicPartition, int], versions: dict[TopicPartition, int], deadline: float
    ) -> Flow[None]:
        """Set positions by timestamp. If no record is at or after the timestamp, the position is the end."""
        committed = self._config.isolation_level == "read_committed"
        while times:
            found = yield from list_offsets(self._client, times, committed=committed, deadline=deadline)
            later: dict[TopicPartition, int] = {}
            for name, offset in found.items():
                partition = self._state.partitions.get(name)
                if partition is None or partition.version != versions[name]:
                    continue
                if offset.offset < 0 and times[name] >= 0:
                    later[name] = RESETS["latest"]
                else:
                    with self._state.lock:
                        partition.seek(max(offset.offset, 0), offset.leader_epoch)
            times = later

    def look_up(
        self, times: Mapping[TopicPartition, int], deadline: float
    ) -> Flow[dict[TopicPartition, OffsetAndTimestamp]]:
        """Return the first offset at or after a timestamp for each partition: ms, or an ``OffsetResetStrategy``."""
        committed = self._config.isolation_level == "read_committed"
        return list_offsets(self._client, times, committed=committed, deadline=deadline)

    def partitions_of(self, topic: str, deadline: float) -> Flow[Mapping[int, PartitionInfo]]:
        """Return the partitions of a topic. Raises ``UnknownTopicError``."""
        cluster = yield from self._client.refresh((topic,), deadline=deadline)
        info = cluster.topics.get(topic)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if info is None else info.error
        raise_for(code, api="Metadata", subject=topic)
        return dict(cluster.partitions(topic))

    def topics(self, deadline: float) -> Flow[frozenset[str]]:
        """Return the names of all topics, excluding internal topics."""
        answer = yield from self._client.call(MetadataRequest(topics=None), deadline=deadline)
        return frozenset(each.name for each in answer.topics if each.name is not None and not each.is_internal)

    def _check_commit(self) -> None:
        if self._config.group_id is None:
            raise refused("group_id", None, "commits need a group")
        if self._config.offsets_storage != "kafka":
            raise refused("offsets_storage", self._config.offsets_storage, "the positions are kept outside of Kafka")


def _no_position(name: TopicPartition) -> OffsetPositionError:
    reason = "there is no committed offset, and auto_offset_reset is none"
    return OffsetPositionError(topic=name.topic, partition=name.partition, reason=reason)
