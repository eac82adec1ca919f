"""The task of processing one partition, from its files to its part of every table, for all jobs.

Defines the sequence of steps: load the checkpoint, read new records, write problems, and save the next checkpoint. The
job processes the records with a ``PartitionProcessor``. The engine decides where tasks run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa
from attrs import define, field, frozen

from kafka_msgs.engines.checkpoint import Checkpoint, earlier_problems, load_checkpoint, problems_file, save_checkpoint
from kafka_msgs.engines.partition_reader import LogRewrittenError, PartitionInput, PartitionReader, SegmentInput
from kafka_msgs.errors import LogFileError
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.tables.commit_log import RunToken, WrittenFile
from kafka_msgs.tables.task_output import TableWriter, TaskOutput

__all__ = [
    "PROBLEMS_TABLE",
    "REPORT_ROWS",
    "CheckpointData",
    "PartitionProcessor",
    "Problems",
    "ReadSpec",
    "TaskResult",
    "TaskSpec",
    "run_partition",
]

S = TypeVar("S")
SummaryT = TypeVar("SummaryT", covariant=True)

PROBLEMS_TABLE: Final = "problems"
REPORT_ROWS: Final = 50
"""The number of rows of a table that are kept for the report."""


@frozen
class CheckpointData:
    """The job's data about a partition that the next run needs."""

    numbers: Mapping[str, int]
    tables: Mapping[str, pa.Table]


@define
class Problems:
    """The count of a partition's problems, and the first of them. The problems are written as they are found.

    ``tail`` counts the problems since the last record.
    """

    schema: pa.Schema
    count: int = 0
    tail: int = 0
    first: pa.Table = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.first = self.schema.empty_table()

    def add(self, found: pa.Table) -> None:
        """Add problems to the count."""
        self.count += found.num_rows
        self.first = pa.concat_tables([self.first, found.slice(0, max(REPORT_ROWS - self.first.num_rows, 0))])


class PartitionProcessor(Protocol[SummaryT]):
    """Processes the records of one partition for a job, and writes the rows to its output."""

    def add(self, records: pa.RecordBatch, segment: SegmentInput) -> pa.Table:
        """Process the next records; return the problems among them."""

    def finish(self) -> CheckpointData:
        """Return the checkpoint data after the last record."""

    def summary(self, problems: Problems) -> SummaryT:
        """Write the tables and return the report data. This is the last call."""

    def discard(self) -> None:
        """Remove the written files from the output, after this pass failed."""


@frozen(kw_only=True)
class ReadSpec(Generic[S]):
    """The specification of how a job reads a partition.

    ``start`` creates the processor from the output, the partition and the earlier checkpoint. ``tables``
    contains the schemas of the ``CheckpointData`` tables. ``columns`` lists record columns in addition to
    ``partition_reader.RECORD_COLUMNS``. ``damage`` returns the row for an unreadable part of a file, with the columns
    of ``problems``. With ``exact`` an earlier checkpoint is used only if no data already read was rewritten.
    """

    start: Callable[[TaskOutput, PartitionInput, Checkpoint | None], PartitionProcessor[S]]
    tables: Mapping[str, pa.Schema]
    problems: pa.Schema
    damage: Callable[[PartitionInput, LogFileError], Mapping[str, Any]]
    columns: tuple[str, ...] = ()
    exact: bool = False


@frozen(kw_only=True)
class TaskSpec(Generic[S]):
    """The settings shared by all partitions of a run: the output location, the token and the read specification."""

    storage: Storage
    token: RunToken
    reading: ReadSpec[S]


@frozen(kw_only=True)
class TaskResult(Generic[S]):
    """The result of a task. ``reread_reason`` is set if a partition was reread from its start despite an earlier run.

    ``files`` are the complete files that it wrote, by table.
    """

    topic: str
    number: int
    files: Mapping[str, tuple[WrittenFile, ...]]
    reread_reason: str | None
    summary: S


def run_partition(task: TaskSpec[S], log: PartitionInput, progress: Progress | None = None) -> TaskResult[S]:
    """Read the new records of a partition, write its part of the tables and its checkpoint, and return its summary.

    Raises ``OSError``, and ``UnseenFileError`` in a process that does not see the output location of the run.
    """
    # A task may have several concurrent attempts, so each one writes its own files.
    output = TaskOutput.start(task.storage, task.token)
    again, topic_id = None, log.topic_id()
    try:
        earlier = load_checkpoint(output, log.name, task.reading.tables)
        if earlier is not None:
            earlier.check(log, topic_id, exact=task.reading.exact)
        summary = _PartitionPass(task, output, log, topic_id, earlier).run(progress)
    except LogRewrittenError as difference:
        again = str(difference)
        summary = _PartitionPass(task, output, log, topic_id, None).run(progress)
    files = {table: tuple(found.values()) for table, found in output.files.items()}
    return TaskResult(topic=log.topic, number=log.number, files=files, reread_reason=again, summary=summary)


class _PartitionPass(Generic[S]):
    """One pass over a log, from the tip of ``earlier`` or from its start."""

    def __init__(
        self,
        task: TaskSpec[S],
        output: TaskOutput,
        log: PartitionInput,
        topic_id: str | None,
        earlier: Checkpoint | None,
    ) -> None:
        self._run = task.token.run
        self._output = output
        self._log = log
        self._topic_id = topic_id
        self._earlier = earlier
        self._reading = task.reading
        self._problems = Problems(task.reading.problems)
        self._writers: list[TableWriter] = []
        self._work = task.reading.start(output, log, earlier)

    def run(self, progress: Progress | None) -> S:
        tip = None if self._earlier is None else self._earlier.tip
        reader = PartitionReader(self._log.segments, tip, progress, columns=self._reading.columns)
        try:
            self._read(reader)
        except BaseException:
            self._discard()
            raise
        for writer in self._writers:
            writer.close()
        self._save(reader, self._work.finish())
        return self._work.summary(self._problems)

    def _read(self, reader: PartitionReader) -> None:
        if self._earlier is not None:
            for found in earlier_problems(self._output, self._log.name, self._earlier, self._reading.problems):
                self._add_problems(found)
        for segment, item in reader:
            if isinstance(item, LogFileError):
                row = self._reading.damage(self._log, item)
                self._add_problems(pa.Table.from_pylist([row], schema=self._reading.problems))
                self._problems.tail += 1
            else:
                self._add_problems(self._work.add(item, segment))
                self._problems.tail = 0

    def _add_problems(self, found: pa.Table) -> None:
        if not found.num_rows:
            return
        if not self._writers:
            self._writers = [self._output.writer(self._reading.problems, *path) for path in self._files()]
        for writer in self._writers:
            writer.write(found)
        self._problems.add(found)

    def _files(self) -> tuple[tuple[str, str], ...]:
        return (PROBLEMS_TABLE, f"{self._log.name}.parquet"), problems_file(self._log.name)

    def _discard(self) -> None:
        for writer in self._writers:
            writer.abandon()
        self._writers = []
        self._work.discard()

    def _save(self, reader: PartitionReader, kept: CheckpointData) -> None:
        if reader.tip is None:
            return
        state = Checkpoint(
            run=self._run,
            topic_id=self._topic_id,
            tip=reader.tip,
            segments=tuple((each.name, each.base_offset, each.size) for each in self._log.segments),
            problems=self._problems.count,
            tail=self._problems.tail,
            numbers=kept.numbers,
            tables=kept.tables,
        )
        save_checkpoint(state, self._output, self._log.name)
