"""Every group in ``__consumer_offsets``, as its coordinator would describe it, with committed offsets and lag.

This module builds groups from the partitions of the topic: it selects the records to decode, and reports unreadable
ones. ``kafka_msgs.internal_topics`` interprets records, and ``kafka_msgs.log`` reads files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias
from uuid import UUID

from attrs import evolve, field, frozen

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.internal_topics.group_descriptions import GroupDescription, describe_group
from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, UnknownRecord, decode_record
from kafka_msgs.internal_topics.replay import ReplayedGroup, TransactionEnd, replay
from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import EndOffsets, Progress
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.records import ControlType, RecordBatch

__all__ = [
    "OFFSETS_TOPIC",
    "GroupOffset",
    "GroupWithOffsets",
    "GroupsRead",
    "ReadProblem",
    "add_end_offsets",
    "read_groups",
]

OFFSETS_TOPIC: Final = "__consumer_offsets"

_NO_EPOCH: Final = -1
_NO_TIME: Final = -1
_NO_TOPIC_ID: Final = UUID(int=0)


@frozen(kw_only=True)
class GroupOffset:
    """The committed offset of a group for one partition, or the start offset of a share group.

    Times are in milliseconds since the epoch. ``end_offset`` is None if the end of the partition is unknown. ``done``
    is the number of completed records from ``offset`` on, or None if unknown; only share groups have it.
    ``leader_epoch``, ``metadata``, ``expire_timestamp`` and ``topic_id`` are None if the commit does not have them,
    and ``commit_timestamp`` is None for a share group.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp: int | None
    expire_timestamp: int | None
    topic_id: UUID | None
    end_offset: int | None
    done: int | None = 0

    @property
    def lag(self) -> int | None:
        """The number of unread offsets, at least 0. As in Kafka's tools, markers and compacted records count."""
        distance = self._distance
        return None if distance is None else max(0, distance)

    @property
    def ahead(self) -> int | None:
        """The number of offsets by which the commit is beyond the end, as after a truncation or a new topic."""
        distance = self._distance
        return None if distance is None else max(0, -distance)

    @property
    def _distance(self) -> int | None:
        if self.end_offset is None or self.done is None:
            return None
        return self.end_offset - self.offset - self.done


@frozen(kw_only=True)
class GroupWithOffsets:
    """A group: the description from its coordinator, and its committed offsets by topic and partition."""

    description: GroupDescription
    offsets: tuple[GroupOffset, ...]

    @property
    def lag(self) -> int | None:
        """The sum of the known lags. None if no lag is known."""
        return _sum(each.lag for each in self.offsets)

    @property
    def ahead(self) -> int | None:
        """The sum of the known distances beyond the ends. It does not reduce the lag."""
        return _sum(each.ahead for each in self.offsets)

    @property
    def last_commit(self) -> int | None:
        """The time of the latest commit. None without a commit."""
        return max((each.commit_timestamp for each in self.offsets if each.commit_timestamp is not None), default=None)


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None


@frozen(kw_only=True)
class ReadProblem:
    """Unreadable data: the ``topic`` and ``partition``, the ``offset`` if it is a record, and the reason."""

    topic: str
    partition: int
    offset: int | None
    reason: str


@frozen(kw_only=True)
class GroupsRead:
    """All groups, by name, and the problems."""

    groups: tuple[GroupWithOffsets, ...]
    problems: tuple[ReadProblem, ...]


def read_groups(
    partitions: Iterable[Partition], end_offsets: EndOffsets, *, progress: Progress | None = None
) -> GroupsRead:
    """Return the groups in partitions of ``__consumer_offsets``. ``end_offsets`` are used for the lags.

    Unreadable records and damaged parts of files become problems. All other records count. Raises ``OSError``.
    """
    found: list[GroupWithOffsets] = []
    problems: list[ReadProblem] = []
    for partition in partitions:
        loading = _Loading(partition, problems)
        loading.load(progress or Progress())
        found += [_group(each, end_offsets) for each in replay(loading.records()).groups().values()]
    return GroupsRead(groups=tuple(sorted(found, key=lambda each: each.description.group_id)), problems=tuple(problems))


def add_end_offsets(groups: GroupsRead, end_offsets: EndOffsets) -> GroupsRead:
    """Return the groups with end offsets, read after the commits: ends that are older make commits run ahead."""

    def ended(offset: GroupOffset) -> GroupOffset:
        return evolve(offset, end_offset=end_offsets.get((offset.topic, offset.partition)))

    found = (evolve(each, offsets=tuple(map(ended, each.offsets))) for each in groups.groups)
    return evolve(groups, groups=tuple(found))


_Kept: TypeAlias = "tuple[int, bytes | None, bytes | None, int] | TransactionEnd"
"""Offset, key, value and producer id of an undecoded record, or the end of a transaction."""


@frozen
class _Loading:
    """Loads one partition.

    Most records are commits that a later commit of the same key replaces. Outside transactions, only the last record of
    each key is kept, still undecoded. This gives the same state and saves most of the work.
    """

    partition: Partition
    problems: list[ReadProblem]
    kept: dict[bytes | int, _Kept] = field(factory=dict)

    def load(self, progress: Progress) -> None:
        for segment in self.partition.segments:
            progress.file(segment.path)
            for item in segment.walk_batches():
                if isinstance(item, LogFileError):
                    self._report(None, str(item))
                    continue
                try:
                    self._add(item)
                except KafkaMsgsError as error:
                    self._report(None, f"{segment.path.name} at byte {item.position}: {error}")
                progress.read(item.position)

    def records(self) -> Iterator[InternalRecord | TransactionEnd]:
        for each in self.kept.values():
            if isinstance(each, TransactionEnd):
                yield each
            else:
                yield from self._decoded(*each)

    def _add(self, batch: AnyBatch) -> None:
        if isinstance(batch, RecordBatch) and batch.is_control:
            self._add_markers(batch)
            return
        producer = batch.producer_id if isinstance(batch, RecordBatch) and batch.is_transactional else NO_PRODUCER
        for offset, key, value in _rows(batch):
            place = offset if key is None or producer != NO_PRODUCER else key
            self.kept.pop(place, None)
            self.kept[place] = offset, key, value, producer

    def _add_markers(self, batch: RecordBatch) -> None:
        for record in batch.control_records():
            if record.type in (ControlType.ABORT, ControlType.COMMIT):
                committed = record.type is ControlType.COMMIT
                self.kept[record.offset] = TransactionEnd(producer_id=batch.producer_id, committed=committed)

    def _decoded(
        self, offset: int, key: bytes | None, value: bytes | None, producer: int
    ) -> Iterator[InternalRecord | TransactionEnd]:
        try:
            record = decode_record(OFFSETS_TOPIC, key, value, producer_id=producer)
        except KafkaMsgsError as error:
            self._report(offset, str(error))
            return
        if isinstance(record, UnknownRecord):
            self._report(offset, f"this release has no records of type {record.record_type}")
        yield record

    def _report(self, offset: int | None, reason: str) -> None:
        self.problems.append(
            ReadProblem(topic=OFFSETS_TOPIC, partition=self.partition.partition, offset=offset, reason=reason)
        )


def _rows(batch: AnyBatch) -> Iterable[tuple[int, Any, Any]]:
    """Return offset, key and value of each record, for a batch of magic 2 without building record objects."""
    if isinstance(batch, RecordBatch):
        return zip(batch.offsets(), batch.keys(), batch.values(), strict=True)
    return ((record.offset, record.key, record.value) for record in batch.records())


def _group(state: ReplayedGroup, end_offsets: EndOffsets) -> GroupWithOffsets:
    offsets = (
        _committed(topic, partition, value, end_offsets.get((topic, partition)))
        for (topic, partition), value in sorted(state.offsets.items())
    )
    return GroupWithOffsets(description=describe_group(state), offsets=tuple(offsets))


def _committed(topic: str, partition: int, value: OffsetCommitValue, end: int | None) -> GroupOffset:
    return GroupOffset(
        topic=topic,
        partition=partition,
        offset=value.offset,
        leader_epoch=None if value.leader_epoch == _NO_EPOCH else value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp,
        expire_timestamp=None if value.expire_timestamp == _NO_TIME else value.expire_timestamp,
        topic_id=None if value.topic_id == _NO_TOPIC_ID else value.topic_id,
        end_offset=end,
    )
