"""Log directories as streams: reads a growing log in micro-batches.

Defines the options of a stream, the ranges of its batches, and the positions in Spark's checkpoint, which contain all
state. A range has the same rows as in a table read. Detects lost data: records removed by retention, an end that moved
back, a deleted partition, a recreated topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kafka_msgs.errors import OffsetPositionError, OptionError
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.filesystems.segment_lookup import lookup_in, lookups_in
from kafka_msgs.log.segment import LARGEST
from kafka_msgs.log.small_files import PARTITION_METADATA, read_partition_metadata
from kafka_msgs.spark.sources.offset_options import (
    EARLIEST,
    OffsetBounds,
    Place,
    StartingOffsets,
    limit_offsets,
    offsets_in,
    to_json,
)
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.read_committed import follow, trail_of
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan

__all__ = ["LogStreamReader", "stream_options"]

_Offsets: TypeAlias = dict[Place, int]


def stream_options(options: Options) -> tuple[bool, int | None]:
    """Return the options of streams: whether lost data is an error, and the limit of a batch."""
    return options.flag("failOnDataLoss", True), options.count("maxOffsetsPerTrigger")


class _Position(NamedTuple):
    """A position in Spark's checkpoint: the next offset of each partition, and the known topic ids."""

    offsets: _Offsets
    topic_ids: Mapping[str, str]


def _position(value: Any) -> _Position:
    """Return the position in a checkpoint. Raises ``OptionError`` for another format."""
    try:
        topic_ids = {str(name): str(each) for name, each in value["topicIds"].items()}
        return _Position(offsets_in(value["offsets"]), topic_ids)
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        reason = "it does not have the position of a stream of log files"
        raise OptionError(source="kafka-log", option="checkpointLocation", value=value, reason=reason) from wrong


@frozen
class _TailedPartition:
    """The current state of a partition: its segments, its log end offset, and the offset up to which it may be read.

    With ``read_committed``, ``end`` may be higher than ``stable``, the start of the first open transaction.
    """

    files: tuple[LogFile, ...]
    end: int
    stable: int

    @classmethod
    def of(cls, files: tuple[LogFile, ...], *, committed: bool) -> _TailedPartition:
        """Return the current state from files. Raises ``OSError``."""
        end = files[-1].base_offset or 0
        # A topic may be deleted after it was listed; the next listing shows that.
        with suppress(FileNotFoundError):
            end = lookup_in(files[-1]).end_offset()
        unstable = follow(trail_of(files[-1:], LARGEST)[1]).last_stable_offset if committed else None
        return cls(files, end, end if unstable is None else min(end, unstable))

    @property
    def first(self) -> int:
        """The base offset of the first segment."""
        return self.files[0].base_offset or 0

    def at(self, position: StartingOffsets) -> int:
        """Return the current offset of a position."""
        found = position.offset_in(self.files[0], lookups_in(self.files))
        return self.stable if found == LARGEST else max(found, self.first)

    def batch_end(self, offset: int) -> int:
        """Return the end of the batch that reaches ``offset`` or follows it, so that batches are not split."""
        for lookup in lookups_in(self.files):
            if lookup.end >= offset and (found := lookup.batch_at(offset - 1)) is not None:
                return min(found.last_offset + 1, self.stable)
        return self.stable

    def resume_at(self, offset: int) -> tuple[int, str | None]:
        """Return the offset to resume from after a read up to ``offset``, and the lost records, if any."""
        if self.end < offset:
            return self.end, f"it ends at offset {self.end}, before offset {offset}"
        if offset < self.first:
            return self.first, f"it begins at offset {self.first}, after offset {offset}"
        return offset, None


@frozen
class _TailedLog:
    """The current partitions of a log directory, and their topic ids."""

    partitions: Mapping[Place, _TailedPartition]
    topic_ids: Mapping[str, str]

    @classmethod
    def of(cls, source: str, files: Iterable[LogFile], *, committed: bool) -> _TailedLog:
        """Return the current state from sorted files. Raises ``OptionError``, ``OSError`` and ``LogFileError``.

        Files that are not segments in a partition directory cannot be part of a checkpoint, and are ignored.
        """
        own = [file for file in files if _place(file) is not None]
        groups = {place: tuple(group) for place, group in groupby(own, key=_place) if place is not None}
        if not groups:
            reason = "a stream needs segments in directories of partitions"
            raise OptionError(source=source, option="path", value=None, reason=reason)
        heads = {topic: group[0] for (topic, _), group in reversed(groups.items())}
        found = (
            (topic, head.read_sibling(PARTITION_METADATA, read_partition_metadata)) for topic, head in heads.items()
        )
        return cls(
            {place: _TailedPartition.of(group, committed=committed) for place, group in groups.items()},
            {topic: str(metadata.topic_id) for topic, metadata in found if metadata is not None},
        )

    @property
    def files(self) -> list[LogFile]:
        """The segments in order."""
        return [file for each in self.partitions.values() for file in each.files]

    def position(self, offsets: _Offsets) -> dict[str, Any]:
        """Return offsets in this log as a position for the checkpoint."""
        topics = {topic for topic, _ in offsets}
        known = {topic: each for topic, each in sorted(self.topic_ids.items()) if topic in topics}
        return {"offsets": to_json(offsets), "topicIds": known}

    def resume_from(self, reached: _Position, *, fails: bool) -> _Offsets:
        """Return the offsets to resume from in the partitions of a position.

        If records were lost, raises ``OffsetPositionError`` with ``fails``. Without it, reading resumes at the first
        remaining record, and deleted partitions are skipped.
        """
        found = {}
        for place, offset in reached.offsets.items():
            resumed, lost = self._resume_at(place, offset, reached.topic_ids.get(place[0]))
            if lost is not None and fails:
                reason = f"{lost}: records were lost (failOnDataLoss)"
                raise OffsetPositionError(topic=place[0], partition=place[1], reason=reason)
            if resumed is not None:
                found[place] = resumed
        return found

    def _resume_at(self, place: Place, offset: int, topic_id: str | None) -> tuple[int | None, str | None]:
        """Return the offset to resume from after a read up to ``offset``, and the lost records, if any."""
        partition, now = self.partitions.get(place), self.topic_ids.get(place[0])
        if partition is None:
            return None, "it is not there any more"
        if topic_id is not None and now is not None and topic_id != now:
            return partition.first, f"the topic was created again: its id is {now}, and was {topic_id}"
        if partition.end < offset:
            return partition.end, f"it ends at offset {partition.end}, before offset {offset}"
        if offset < partition.first:
            return partition.first, f"it begins at offset {partition.first}, after offset {offset}"
        return offset, None


def _place(file: LogFile) -> Place | None:
    if file.topic is None or file.partition is None or file.base_offset is None or not file.path.endswith(".log"):
        return None
    return file.topic, file.partition


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the growing partitions of a plan, with the reader of a table. The checkpoint contains the offsets."""

    def __init__(self, reader: LogReader, fails_on_data_loss: bool, max_offsets: int | None) -> None:
        self.plan: ReadPlan = reader.plan
        self.plan.bounds.check_stream(self.plan.source)
        if self.plan.tier is not None:
            reason = "a stream reads the log directory of a broker; read what is in remote storage as a table"
            raise OptionError(source=self.plan.source, option="remoteLayout", value=None, reason=reason)
        self.reader = reader
        if fails_on_data_loss:
            reader.reading = evolve(reader.reading, must_exist=True)
        self._fails, self._max_offsets = fails_on_data_loss, max_offsets
        self.schema = reader.schema
        self._target: _Offsets | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Omit the plan, because tasks have their own parts."""
        return self.__dict__ | {"plan": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the start of a stream without a checkpoint."""
        now = self._now()
        self.plan.check_places(now.files)
        starting = self.plan.bounds.starting
        return now.position({place: each.at(starting) for place, each in now.partitions.items()})

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the end of the next batch. With a limit, it does not split record batches."""
        now, reached = self._now(), _position(start)
        begin = self._begin(now, reached)
        end = {place: max(begin[place], stop) for place, stop in self._ends(now).items()}
        if isinstance(limit, ReadMaxRows):
            cuts = limit_offsets(begin, end, limit.max_rows)
            end = {
                place: min(stop, now.partitions[place].batch_end(cuts[place])) if cuts[place] < stop else stop
                for place, stop in end.items()
            }
        known = {place: offset for place, offset in begin.items() if place in reached.offsets}
        return now.position(known | end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a batch."""
        return ReadAllAvailable() if self._max_offsets is None else ReadMaxRows(self._max_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Record the current end of the partitions as the end of the stream."""
        self._target = self._ends(self._now())

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return the current end of the partitions, for the progress of the stream."""
        now = self._now()
        return now.position(self._ends(now))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the splits of a batch. Raises ``OffsetPositionError`` if some of its records no longer exist."""
        now, stop = self._now(), _position(end)
        now.resume_from(stop, fails=self._fails)
        begin = self._begin(now, _position(start))
        bounds = OffsetBounds(StartingOffsets(EARLIEST, begin), StartingOffsets(EARLIEST, stop.offsets))
        # A batch ends before a truncated tail, so no warning is needed.
        plan = evolve(self.plan, bounds=bounds, reports_truncated_tails=True)
        return [InputPartition(split) for split in plan.splits_in(now.files)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split."""
        return self.reader.read(partition)

    def _now(self) -> _TailedLog:
        return _TailedLog.of(self.plan.source, self.plan.files(), committed=self.plan.committed)

    def _begin(self, now: _TailedLog, start: _Position) -> _Offsets:
        """Return the start offsets; a new partition starts at its first record."""
        new = {place: each.first for place, each in now.partitions.items()}
        return new | now.resume_from(start, fails=self._fails)

    def _ends(self, now: _TailedLog) -> _Offsets:
        """Return the current ends of the partitions, limited to the recorded end."""
        ends = {place: each.stable for place, each in now.partitions.items()}
        target = self._target
        return ends if target is None else {place: min(ends[place], target[place]) for place in ends if place in target}
