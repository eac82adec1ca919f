"""One pass over a range of a partition: its records in the reducer of the job, and the problems found on the way.

Problems up to the last record are final, like the rows of all appended tables. Problems after it belong to data that
the next run reads again, such as a batch that a broker is writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

import pyarrow as pa
from attrs import define

from kafka_msgs.analysis.job import PROBLEMS_TABLE, REPORT_ROWS, Job, LogRange, PartitionReducer, SavedState
from kafka_msgs.engines.checkpoint import Checkpoint
from kafka_msgs.engines.partition_reader import PartitionReader, ResumePoint, check_contiguous
from kafka_msgs.engines.plan import PlannedRange
from kafka_msgs.errors import LogFileError
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.tables.task_output import TableWriter, TaskOutput

__all__ = ["START", "PartitionPass", "Problems", "check_no_gaps", "state_schemas"]

S = TypeVar("S")

START: Final = "_start"
"""The number in a state that contains ``LogRange.start``."""
_FIRST_OFFSET: Final = "_first"
_COUNT: Final = "_problems"
_FIRST, _TAIL = "_problems", "_tail"


def state_schemas(job: Job[S]) -> Mapping[str, pa.Schema]:
    """Return the schemas of the tables in the states of a job."""
    problems = job.tables[PROBLEMS_TABLE].schema
    return {**job.state_tables, _FIRST: problems, _TAIL: problems}


@define
class Problems:
    """The problems of a range: their count up to the last record, the first of them, and those after that record."""

    output: TaskOutput
    range: LogRange
    first: pa.Table
    tail: pa.Table
    count: int = 0
    _writer: TableWriter | None = None
    _files: int = 0

    @property
    def total(self) -> int:
        """The count of all problems."""
        return self.count + int(self.tail.num_rows)

    @property
    def shown(self) -> pa.Table:
        """The first problems."""
        return pa.concat_tables([self.first, self.tail]).slice(0, REPORT_ROWS)

    def add_damage(self, rows: pa.Table) -> None:
        """Add damage, which is final once a record follows it."""
        self.tail = pa.concat_tables([self.tail, rows])

    def add(self, rows: pa.Table) -> None:
        """Add the problems among the next records."""
        for found in (self.tail, rows):
            if found.num_rows:
                if self._writer is None:
                    self._writer = self._new_file(f"{self.range.part}-{self._files}")
                    self._files += 1
                self._writer.write(found)
                self.count += found.num_rows
                self.first = pa.concat_tables([self.first, found]).slice(0, REPORT_ROWS)
        self.drop_tail()

    def drop_tail(self) -> None:
        """Drop the problems after the last record, which are written by now, or will be found again."""
        self.tail = self.tail.slice(0, 0)

    def close(self) -> None:
        """Complete the file of the final problems."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def merge(self, later: Problems, *, has_records: bool) -> None:
        """Add the problems of the next range."""
        if has_records:
            self._files += 1
            self.add(later.tail.slice(0, 0))
        self.close()
        self.count += later.count
        self.first = pa.concat_tables([self.first, later.first]).slice(0, REPORT_ROWS)
        self.tail = pa.concat_tables([self.tail, later.tail])

    def finish(self) -> None:
        """Write the problems after the last record."""
        self.close()
        if self.tail.num_rows:
            with self._new_file(f"{self.range.stem}-open", is_open=True) as writer:
                writer.write(self.tail)

    def abandon(self) -> None:
        """End without a result."""
        if self._writer is not None:
            self._writer.abandon()

    def _new_file(self, name: str, *, is_open: bool = False) -> TableWriter:
        schema, log = self.tail.schema, self.range.log
        return self.output.writer(
            schema, PROBLEMS_TABLE, f"{name}-{self.output.attempt[:8]}.parquet", log=log, is_open=is_open
        )


@define
class PartitionPass(Generic[S]):
    """The state of a range: the last record that was read, the reducer, and the problems.

    ``first`` is the offset of the first record read in this run, None without records.
    """

    job: Job[S]
    planned: PlannedRange
    range: LogRange
    reducer: PartitionReducer[S]
    problems: Problems
    tip: ResumePoint | None
    first: int | None = None

    @classmethod
    def start(
        cls, job: Job[S], output: TaskOutput, planned: PlannedRange, of: LogRange, saved: Checkpoint | None = None
    ) -> PartitionPass[S]:
        """Return the state of a range: an empty one, or a saved one."""
        empty = job.tables[PROBLEMS_TABLE].schema.empty_table()
        numbers, tables = dict(saved.state.numbers if saved else {}), dict(saved.state.tables if saved else {})
        first, tail = tables.pop(_FIRST, empty), tables.pop(_TAIL, empty)
        numbers.pop(START, None)
        first_offset = numbers.pop(_FIRST_OFFSET, None)
        problems = Problems(output, of, first, tail, numbers.pop(_COUNT, 0))
        state = SavedState(numbers, tables) if saved is not None else None
        tip = None if saved is None else saved.tip
        return cls(job, planned, of, job.start(output, of, state), problems, tip, first_offset)

    def read(self, segments: Sequence[LogFile]) -> None:
        """Read the records after the current state. Raises ``LogRewrittenError`` and ``OSError``."""
        for _ in self.steps(segments):
            pass

    def steps(self, segments: Sequence[LogFile]) -> Iterator[None]:
        """Read like ``read``, and yield after each part of the records."""
        edges = self.planned.start, self.planned.end
        reader = PartitionReader(segments, self.tip, self.job.columns, *edges, is_continued=self.range.start > 0)
        try:
            for segment, item in reader:
                if isinstance(item, LogFileError):
                    row = self.job.damage(self.range, item)
                    self.problems.add_damage(pa.Table.from_pylist([row], schema=self.problems.tail.schema))
                else:
                    self.problems.add(self.reducer.add(item, segment.name, segment.first))
                yield
            self.tip, self.first = reader.tip, reader.first
            self.problems.close()
        except BaseException:
            self.problems.abandon()
            self.problems.output.discard(self.range.log)
            raise

    def merge(self, later: PartitionPass[S]) -> None:
        """Add the state of the next range."""
        self.reducer.merge(later.reducer)
        self.problems.merge(later.problems, has_records=later.tip is not None)
        self.tip = later.tip or self.tip

    def checkpoint(self, shape: Sequence[tuple[int, int]]) -> Checkpoint:
        """Return the state, for a later task or run. ``shape`` lists the base offset and size of each segment."""
        state, problems = self.reducer.checkpoint(), self.problems
        numbers = {**state.numbers, START: self.range.start, _COUNT: problems.count}
        if self.first is not None:
            numbers[_FIRST_OFFSET] = self.first
        return Checkpoint(
            topic=self.range.topic,
            partition=self.range.number,
            topic_id=self.planned.topic_id,
            tip=self.tip,
            segments=tuple(shape),
            problems=problems.count,
            state=SavedState(numbers, {**state.tables, _FIRST: problems.first, _TAIL: problems.tail}),
        )


def check_no_gaps(ranges: Sequence[PartitionPass[S]]) -> None:
    """Raise ``LogRewrittenError`` if a record is missing between ranges that continue an earlier run."""
    end = ranges[0].range.start
    for each in ranges if end else ():
        if each.first is not None:
            check_contiguous(end, each.first)
        end = end if each.tip is None else each.tip.offset + 1
