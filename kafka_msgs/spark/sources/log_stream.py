"""Log directories as streams: reads a growing log in micro-batches.

Defines the options of a stream, and the ranges of its batches. A range has the same rows as in a table read.
``log_offsets`` determines the start and end of the log. All state is in Spark's checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kafka_msgs.errors import OptionError
from kafka_msgs.spark.sources.log_offsets import LogOffsets, Offsets, TailedLog
from kafka_msgs.spark.sources.offset_bounds import OffsetBounds
from kafka_msgs.spark.sources.offset_options import EARLIEST, StartingOffsets, limit_offsets
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan

__all__ = ["LogStreamReader", "StreamOptions"]


@frozen(kw_only=True)
class StreamOptions:
    """The options that only streams use."""

    fails_on_data_loss: bool
    max_offsets: int | None

    @classmethod
    def of(cls, options: Options) -> StreamOptions:
        """Parse the options. Raises ``OptionError``."""
        return cls(
            fails_on_data_loss=options.flag("failOnDataLoss", True),
            max_offsets=options.count("maxOffsetsPerTrigger", 0) or None,
        )


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the growing partitions of a plan, with the reader of a table."""

    def __init__(self, reader: LogReader, following: StreamOptions) -> None:
        reader.plan.bounds.check_stream(reader.plan.source)
        if reader.plan.tier is not None:
            reason = "a stream reads the log directory of a broker; read what is in remote storage as a table"
            raise OptionError(source=reader.plan.source, option="remoteLayout", value=None, reason=reason)
        self.reader = reader
        if following.fails_on_data_loss:
            self.reader.reading = evolve(reader.reading, must_exist=True)
        self.following = following
        self._target: Offsets | None = None

    @property
    def plan(self) -> ReadPlan:
        """The read plan."""
        return self.reader.plan

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the start of a stream without a checkpoint."""
        now = self._now()
        self.plan.check_places(now.files)
        starting = self.plan.bounds.starting
        return now.position({place: each.at(starting) for place, each in now.partitions.items()}).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the end of the next batch. With a limit, it does not split record batches."""
        now, reached = self._now(), LogOffsets.from_json(start)
        begin = self._begin(now, reached)
        end = {place: max(begin[place], stop) for place, stop in self._ends(now).items()}
        if isinstance(limit, ReadMaxRows):
            cuts = limit_offsets(begin, end, limit.max_rows)
            end = {
                place: min(stop, now.partitions[place].batch_end(cuts[place])) if cuts[place] < stop else stop
                for place, stop in end.items()
            }
        known = {place: offset for place, offset in begin.items() if place in reached.offsets}
        return now.position(known | end).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a batch."""
        most = self.following.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Record the current end of the partitions as the end of the stream."""
        self._target = self._ends(self._now())

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return the current end of the partitions, for the progress of the stream."""
        now = self._now()
        return now.position(self._ends(now)).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the splits of a batch. Raises ``OffsetPositionError`` if some of its records no longer exist."""
        now, stop = self._now(), LogOffsets.from_json(end)
        self._goes_on(now, stop)
        begin = self._begin(now, LogOffsets.from_json(start))
        bounds = OffsetBounds(StartingOffsets(EARLIEST, begin), StartingOffsets(EARLIEST, stop.offsets))
        # A batch ends before a truncated tail, so no warning is needed.
        plan = evolve(self.plan, bounds=bounds, reports_truncated_tails=True)
        return [InputPartition(split) for split in plan.splits_in(now.files)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split."""
        return self.reader.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the checkpoint contains the offsets."""

    def _now(self) -> TailedLog:
        return TailedLog.of(self.plan.source, self.plan.files(), committed=self.plan.committed)

    def _goes_on(self, now: TailedLog, reached: LogOffsets) -> Offsets:
        return now.goes_on(reached, fails=self.following.fails_on_data_loss)

    def _begin(self, now: TailedLog, start: LogOffsets) -> Offsets:
        """Return the start offsets; a new partition starts at its first record."""
        return {place: each.first for place, each in now.partitions.items()} | self._goes_on(now, start)

    def _ends(self, now: TailedLog) -> Offsets:
        """Return the current ends of the partitions, limited to the recorded end."""
        ends = {place: each.stable for place, each in now.partitions.items()}
        target = self._target
        return ends if target is None else {place: min(ends[place], target[place]) for place in ends if place in target}
