"""Topic statistics per partition and hour: sizes, compression, producers, transactions, and timestamp order.

This module owns the statistics, which are the same as in the job ``topic-profile``. ``kafka_msgs.log`` reads batches
and records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add, or_
from typing import Any, Final

from attrs import define, field, fields, frozen

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.summary import CODEC_NAMES
from kafka_msgs.offline.groups import ReadProblem
from kafka_msgs.offline.partition_discovery import Progress
from kafka_msgs.records import ControlRecord, ControlType, Payload, ReadOptions, Record, RecordBatch

__all__ = ["TopicProfile", "TopicStats", "merge_stats", "read_profile"]

_HOUR_MS: Final = 3_600_000


@define(kw_only=True)
class TopicStats:
    """The statistics of some batches of a topic. Sizes are in bytes.

    ``bytes`` is the stored size of all batches. ``data_bytes`` is the stored size of the batches with client records,
    and ``batches`` is their number. ``content_bytes`` is the size of keys, values and headers. ``producers`` contains
    the producer ids of numbered batches. ``transactions`` and ``aborted_transactions`` count the commit and abort
    markers. ``aborted_records`` counts the records in aborted transactions. ``out_of_order`` counts records with an
    earlier timestamp than the previous record.
    """

    records: int = 0
    batches: int = 0
    bytes: int = 0
    data_bytes: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    header_bytes: int = 0
    max_key_size: int | None = None
    max_value_size: int | None = None
    without_key: int = 0
    tombstones: int = 0
    codecs: set[str] = field(factory=set)
    producers: set[int] = field(factory=set)
    transactions: int = 0
    aborted_transactions: int = 0
    aborted_records: int = 0
    out_of_order: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def add(self, other: TopicStats) -> None:
        """Add the statistics of another part of the topic to these."""
        for each in fields(TopicStats):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, _MERGED.get(each.name, add)(mine, theirs))

    @property
    def content_bytes(self) -> int:
        """The size of keys, values and headers in bytes."""
        return self.key_bytes + self.value_bytes + self.header_bytes

    @property
    def ratio(self) -> float | None:
        """The number of content bytes per stored byte, including framing. None without records."""
        return self.content_bytes / self.data_bytes if self.data_bytes else None

    @property
    def mean_key_size(self) -> float | None:
        """The mean size of keys. A null key counts as 0. None without records."""
        return self.key_bytes / self.records if self.records else None

    @property
    def mean_value_size(self) -> float | None:
        """The mean size of values. A null value counts as 0. None without records."""
        return self.value_bytes / self.records if self.records else None


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _largest(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


_MERGED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "max_key_size": _largest,
    "max_value_size": _largest,
    "first_offset": _least,
    "last_offset": _largest,
    "codecs": or_,
    "producers": or_,
}
"""The merge functions of statistics that are not summed."""


@frozen(kw_only=True)
class TopicProfile:
    """The statistics by topic, partition and hour, and the problems.

    An hour is its start in milliseconds since the epoch, and None for records without a timestamp. A batch counts in
    the hour of its first record. The problems of a partition are keyed by the name of its directory.
    """

    figures: dict[tuple[str, int, int | None], TopicStats]
    problems: tuple[tuple[str, ReadProblem], ...]


def read_profile(partitions: Iterable[Partition], *, progress: Progress | None = None) -> TopicProfile:
    """Return the profile of partitions. An unreadable batch is a problem, and does not count.

    Raises ``OSError``.
    """
    found: dict[tuple[str, int, int | None], TopicStats] = {}
    problems: list[tuple[str, ReadProblem]] = []
    for partition in partitions:
        walk = _Walk(partition.topic, partition.partition)
        walk.run(partition, progress or Progress())
        found |= {(partition.topic, partition.partition, hour): figures for hour, figures in walk.hours.items()}
        problems += [(partition.path.name, each) for each in walk.problems]
    return TopicProfile(figures=found, problems=tuple(problems))


def merge_stats(figures: Iterable[TopicStats]) -> TopicStats:
    """Return the merged statistics of several parts of a topic."""
    total = TopicStats()
    for each in figures:
        total.add(each)
    return total


class _Walk:
    """One pass over a partition, from its first batch to its last."""

    def __init__(self, topic: str, number: int) -> None:
        self.hours: defaultdict[int | None, TopicStats] = defaultdict(TopicStats)
        self.problems: list[ReadProblem] = []
        self._topic = topic
        self._number = number
        self._before: int | None = None
        self._open: defaultdict[int, list[tuple[TopicStats, int]]] = defaultdict(list)

    def run(self, partition: Partition, progress: Progress) -> None:
        for segment in partition.segments:
            progress.file(segment.path)
            for item in segment.walk_batches(options=ReadOptions(zero_copy=True)):
                try:
                    if isinstance(item, LogFileError):
                        raise item
                    self._batch(item)
                except LogFileError as fault:
                    self._report(str(fault))
                except KafkaMsgsError as error:
                    self._report(f"{segment.path} at byte {item.position}: {error}")
                progress.read(item.position)

    def _report(self, reason: str) -> None:
        self.problems.append(ReadProblem(topic=self._topic, partition=self._number, offset=None, reason=reason))

    def _batch(self, batch: AnyBatch) -> None:
        """Count a batch. Batches emptied by compaction do not count."""
        if isinstance(batch, RecordBatch) and batch.is_control:
            markers = batch.control_records()
            if markers:
                self._markers(batch, markers)
            return
        records = list(batch.records())
        if not records:
            return
        figures = self._figures(batch, records[0].timestamp)
        self._records(figures, records)
        figures.batches += 1
        figures.data_bytes += batch.size
        figures.codecs.add(CODEC_NAMES[batch.codec])
        if isinstance(batch, RecordBatch):
            self._producer(figures, batch, len(records))

    def _figures(self, batch: AnyBatch, first: int) -> TopicStats:
        figures = self.hours[first // _HOUR_MS * _HOUR_MS if first >= 0 else None]
        figures.bytes += batch.size
        return figures

    def _producer(self, figures: TopicStats, batch: RecordBatch, count: int) -> None:
        if batch.producer_id >= 0:
            figures.producers.add(batch.producer_id)
        if batch.is_transactional:
            self._open[batch.producer_id].append((figures, count))

    def _markers(self, batch: RecordBatch, markers: Sequence[ControlRecord]) -> None:
        figures = self._figures(batch, markers[0].timestamp)
        marker = markers[0].type
        if marker is ControlType.COMMIT:
            figures.transactions += 1
        elif marker is ControlType.ABORT:
            figures.aborted_transactions += 1
        if marker in (ControlType.COMMIT, ControlType.ABORT):
            for waiting, count in self._open.pop(batch.producer_id, ()):
                waiting.aborted_records += count if marker is ControlType.ABORT else 0

    def _records(self, figures: TopicStats, records: Sequence[Record]) -> None:
        keys = [0 if record.key is None else len(record.key) for record in records]
        values = [0 if record.value is None else len(record.value) for record in records]
        figures.records += len(records)
        figures.key_bytes += sum(keys)
        figures.value_bytes += sum(values)
        figures.header_bytes += sum(_header_size(*each) for record in records for each in record.headers)
        figures.max_key_size = _largest(figures.max_key_size, max(keys))
        figures.max_value_size = _largest(figures.max_value_size, max(values))
        figures.without_key += sum(record.key is None for record in records)
        figures.tombstones += sum(record.value is None for record in records)
        figures.first_offset = _least(figures.first_offset, records[0].offset)
        figures.last_offset = _largest(figures.last_offset, records[-1].offset)
        for record in records:
            if self._before is not None and record.timestamp < self._before:
                figures.out_of_order += 1
            self._before = record.timestamp


def _header_size(name: str, value: Payload | None) -> int:
    return len(name.encode("utf-8", "surrogateescape")) + (0 if value is None else len(value))
