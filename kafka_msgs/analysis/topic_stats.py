"""Topic statistics by hour, as a reducer: sizes, compression, producers, transactions, and timestamp order.

This module owns the statistics, which are the same as in the job ``topic-profile``. ``kafka_msgs.log`` reads batches
and records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from operator import add, or_
from typing import Any, Final

from attrs import define, field, fields

from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.log.summary import CODEC_NAMES
from kafka_msgs.records import ControlRecord, ControlType, Payload, Record, RecordBatch

__all__ = ["HourlyTopicStats", "TopicStats", "merge_stats"]

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


def merge_stats(figures: Iterable[TopicStats]) -> TopicStats:
    """Return the merged statistics of several parts of a topic."""
    total = TopicStats()
    for each in figures:
        total.add(each)
    return total


@define
class HourlyTopicStats:
    """The statistics of a range of a partition by hour.

    An hour is its start in milliseconds since the epoch, and None for records without a timestamp. A batch counts in
    the hour of its first record. For merges with earlier and later ranges, the state also contains the first record's
    time and hour, the last record's time, the first marker of each producer, and the record counts of open transactions
    by producer and hour.
    """

    hours: defaultdict[int | None, TopicStats] = field(factory=lambda: defaultdict(TopicStats))
    _first: tuple[int, int | None] | None = None
    _last_time: int | None = None
    _first_markers: dict[int, ControlType] = field(factory=dict)
    _open: dict[int, list[tuple[int | None, int]]] = field(factory=dict)

    def add(self, batch: AnyBatch) -> None:
        """Add the next batch. Batches emptied by compaction do not count. Raises the errors of reading its records."""
        if isinstance(batch, RecordBatch) and batch.is_control:
            markers = batch.control_records()
            if markers:
                self._add_markers(batch, markers)
            return
        records = list(batch.records())
        if records:
            self._add_records(batch, records)

    def merge(self, later: HourlyTopicStats) -> HourlyTopicStats:
        """Return the statistics of this range and of the range after it. Both operands become unusable."""
        for hour, stats in later.hours.items():
            self.hours[hour].add(stats)
        if later._first is not None:
            time, hour = later._first
            self.hours[hour].out_of_order += int(self._last_time is not None and time < self._last_time)
            self._first = self._first or later._first
            self._last_time = later._last_time
        for producer, marker in later._first_markers.items():
            self._end(producer, marker)
        for producer, batches in later._open.items():
            self._open.setdefault(producer, []).extend(batches)
        return self

    def checkpoint(self) -> HourlyTopicStats:
        """Return a copy of the state, which can be pickled."""
        return deepcopy(self)

    def _add_records(self, batch: AnyBatch, records: Sequence[Record]) -> None:
        hour = _hour_of(records[0].timestamp)
        stats = self.hours[hour]
        stats.bytes += batch.size
        stats.batches += 1
        stats.data_bytes += batch.size
        stats.codecs.add(CODEC_NAMES[batch.codec])
        self._first = self._first or (records[0].timestamp, hour)
        _count_records(stats, records)
        stats.out_of_order += self._count_late(records)
        if isinstance(batch, RecordBatch):
            self._add_producer(stats, batch, hour, len(records))

    def _count_late(self, records: Sequence[Record]) -> int:
        late = 0
        for record in records:
            late += int(self._last_time is not None and record.timestamp < self._last_time)
            self._last_time = record.timestamp
        return late

    def _add_producer(self, stats: TopicStats, batch: RecordBatch, hour: int | None, count: int) -> None:
        if batch.producer_id >= 0:
            stats.producers.add(batch.producer_id)
        if batch.is_transactional:
            self._open.setdefault(batch.producer_id, []).append((hour, count))

    def _add_markers(self, batch: RecordBatch, markers: Sequence[ControlRecord]) -> None:
        stats = self.hours[_hour_of(markers[0].timestamp)]
        stats.bytes += batch.size
        marker = markers[0].type
        if marker in (ControlType.COMMIT, ControlType.ABORT):
            stats.transactions += int(marker is ControlType.COMMIT)
            stats.aborted_transactions += int(marker is ControlType.ABORT)
            self._end(batch.producer_id, ControlType(marker))

    def _end(self, producer: int, marker: ControlType) -> None:
        self._first_markers.setdefault(producer, marker)
        for hour, count in self._open.pop(producer, ()):
            self.hours[hour].aborted_records += count if marker is ControlType.ABORT else 0


def _hour_of(timestamp: int) -> int | None:
    return timestamp // _HOUR_MS * _HOUR_MS if timestamp >= 0 else None


def _count_records(stats: TopicStats, records: Sequence[Record]) -> None:
    keys = [0 if record.key is None else len(record.key) for record in records]
    values = [0 if record.value is None else len(record.value) for record in records]
    stats.records += len(records)
    stats.key_bytes += sum(keys)
    stats.value_bytes += sum(values)
    stats.header_bytes += sum(_header_size(*each) for record in records for each in record.headers)
    stats.max_key_size = _largest(stats.max_key_size, max(keys))
    stats.max_value_size = _largest(stats.max_value_size, max(values))
    stats.without_key += sum(record.key is None for record in records)
    stats.tombstones += sum(record.value is None for record in records)
    stats.first_offset = _least(stats.first_offset, records[0].offset)
    stats.last_offset = _largest(stats.last_offset, records[-1].offset)


def _header_size(name: str, value: Payload | None) -> int:
    return len(name.encode("utf-8", "surrogateescape")) + (0 if value is None else len(value))
