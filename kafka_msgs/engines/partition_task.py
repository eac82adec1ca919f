"""The tasks of a run: reading ranges of partitions, and finishing partitions whose ranges were read.

A task reads its rows of the plan, and the states that they name. It returns counts, file names, and one merged report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa
from attrs import evolve, field, frozen

from kafka_msgs.analysis.job import REPORT_ROWS, ClusterFacts, Job, LogRange
from kafka_msgs.engines.checkpoint import STATE, StateWriter, load_checkpoint
from kafka_msgs.engines.partition_pass import START, PartitionPass, check_no_gaps, state_schemas
from kafka_msgs.engines.partition_reader import LogRewrittenError
from kafka_msgs.engines.plan import PlannedRange, StateRef, read_batch, write_batches
from kafka_msgs.engines.replicas import REPLICAS, JobInputs, list_replicas, segments_in
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.log.small_files import LEADER_EPOCHS, read_leader_epochs
from kafka_msgs.tables.commit_log import RunToken, WrittenFile
from kafka_msgs.tables.task_output import TaskOutput

__all__ = ["RANGES", "RangeResult", "TaskResult", "TaskSpec", "finish_task", "list_task", "merge_task", "read_task"]

S = TypeVar("S")

RANGES: Final = "_ranges"
"""The table of the states of ranges, which no run commits."""
_ROWS: Final = 4096


@frozen(kw_only=True)
class TaskSpec(Generic[S]):
    """The settings shared by the tasks of a run. It is small: ``plan`` is the path of a file with a batch per task."""

    storage: Storage
    token: RunToken
    inputs: JobInputs
    job: Job[S]
    split_bytes: int
    topics: tuple[str, ...] | None = None
    partitions: Mapping[str, int] = field(factory=dict)
    is_placement_known: bool = False
    plan: str = ""
    facts: str = ""
    totals: Mapping[str, int] = field(factory=dict)


@frozen(kw_only=True)
class RangeResult:
    """A range that was read: its place in the plan, and its state unless the task has finished the partition.

    ``read`` is None if segments were replaced meanwhile, so that the partition must be read again. ``reread_reason`` is
    set if a partition was reread from its start despite an earlier run.
    """

    planned: PlannedRange
    read: LogRange | None
    numbers: Mapping[str, int] = field(factory=dict)
    state: StateRef | None = None
    reread_reason: str | None = None


@frozen(kw_only=True)
class TaskResult(Generic[S]):
    """The result of a task: its ranges, the complete files that it wrote, by table, and its merged report data.

    ``problems`` counts the problems of the partitions that it finished. ``first_problems`` are the first of them, by
    topic and partition.
    """

    ranges: tuple[RangeResult, ...]
    files: Mapping[str, tuple[WrittenFile, ...]]
    report: S | None
    problems: int
    first_problems: Mapping[tuple[str, int], pa.Table]


def list_task(task: TaskSpec[Any], number: int) -> tuple[str, int]:
    """List the replicas of the wanted topics in an input directory.

    Returns the path of an Arrow file with the columns of ``REPLICAS``, and the number of its batches.
    """
    output = TaskOutput.start(task.storage, task.token)
    directory = task.inputs.directories[number]
    root = task.inputs.roots[directory.root]
    rows = list_replicas(root, directory.root, directory.path, task.topics, task.split_bytes)
    chunks = iter(lambda: list(islice(rows, _ROWS)), [])
    return write_batches(output, "_replicas", (pa.RecordBatch.from_pylist(each, REPLICAS) for each in chunks), REPLICAS)


def read_task(task: TaskSpec[S], number: int) -> TaskResult[S]:
    """Read the ranges of a task. A partition of one range is finished, unless the job needs facts.

    Raises ``OSError``, and ``UnseenFileError`` in a process that does not see the output location of the run.
    """
    attempt = _Attempt(task)
    return attempt.result([attempt.read(each) for each in _planned(task, number)])


def merge_task(task: TaskSpec[S], number: int) -> TaskResult[S]:
    """Merge the ranges of the partitions of a task. A partition is finished, unless the job needs facts.

    Raises the errors of ``read_task``.
    """
    attempt = _Attempt(task)
    by_log = groupby(_planned(task, number), key=lambda each: (each.topic, each.partition))
    return attempt.result([attempt.merge(list(ranges)) for _, ranges in by_log])


def finish_task(task: TaskSpec[S], number: int) -> TaskResult[S]:
    """Write the tables of the partitions of a task from their states. Raises the errors of ``read_task``."""
    attempt = _Attempt(task)
    return attempt.result([attempt.finish(each) for each in _planned(task, number)])


def _planned(task: TaskSpec[Any], number: int) -> list[PlannedRange]:
    return [PlannedRange.from_row(row) for row in read_batch(task.storage, task.plan, number).to_pylist()]


@lru_cache(maxsize=1)
def _read_facts(storage: Storage, path: str) -> ClusterFacts:
    """Return the facts in a file, read once in each process."""
    return ClusterFacts.of_replicas(pa.Table.from_batches([read_batch(storage, path, 0)]))


class _Attempt(Generic[S]):
    """One attempt of a task. A task may have several concurrent attempts, so each one writes its own files."""

    def __init__(self, task: TaskSpec[S]) -> None:
        self._task = task
        self._job = task.job
        self._output = TaskOutput.start(task.storage, task.token)
        self._states = StateWriter(self._output, STATE)
        self._parts = StateWriter(self._output, RANGES)
        self._reports: list[S] = []
        self._schemas = state_schemas(task.job)
        self._problems = 0
        self._first: dict[tuple[str, int], pa.Table] = {}

    def result(self, ranges: Sequence[RangeResult]) -> TaskResult[S]:
        """Complete the files, and return the result."""
        self._states.close()
        self._parts.close()
        self._output.close()
        return TaskResult(
            ranges=tuple(ranges),
            files={name: tuple(found.values()) for name, found in self._output.files.items() if name != RANGES},
            report=self._job.merge(self._reports) if self._reports else None,
            problems=self._problems,
            first_problems=self._first,
        )

    def read(self, planned: PlannedRange) -> RangeResult:
        """Read a range."""
        segments = self._segments(planned)
        try:
            return self._end(self._read(planned, segments), _shape(segments))
        except LogRewrittenError as difference:
            if planned.count > 1:
                return RangeResult(planned=planned, read=None, reread_reason=str(difference))
            return self._end(self._read(evolve(planned, state=None), segments), _shape(segments), str(difference))

    def merge(self, ranges: Sequence[PlannedRange]) -> RangeResult:
        """Merge the states of the ranges of a partition, or read it again if a range or a record is missing."""
        planned = evolve(ranges[0], count=1, start=None, end=None, state=None)
        reason = None
        if all(each.state is not None for each in ranges):
            saved = [self._load(each) for each in ranges]
            shape, (found, *later) = saved[0][1], [state for state, _ in saved]
            try:
                check_no_gaps([found, *later])
            except LogRewrittenError as difference:
                reason = str(difference)
            else:
                for each in later:
                    found.merge(each)
                return self._end(evolve(found, planned=planned), shape)
        segments = self._segments(planned)
        return self._end(self._read(planned, segments), _shape(segments), reason)

    def finish(self, planned: PlannedRange) -> RangeResult:
        """Write the tables of a partition from its state."""
        found, _ = self._load(planned)
        self._finish(found)
        return RangeResult(planned=planned, read=found.range)

    def _end(self, found: PartitionPass[S], shape: Sequence[tuple[int, int]], reason: str | None = None) -> RangeResult:
        planned, saved = found.planned, found.checkpoint(shape)
        state = (self._parts if planned.count > 1 else self._states).add(saved)
        if planned.count == 1 and not self._job.needs_facts:
            self._finish(found)
        return RangeResult(
            planned=planned, read=found.range, numbers=saved.state.numbers, state=state, reread_reason=reason
        )

    def _finish(self, found: PartitionPass[S]) -> None:
        found.problems.finish()
        task = self._task
        facts = _read_facts(task.storage, task.facts) if task.facts else ClusterFacts()
        facts = evolve(facts, totals=task.totals, is_placement_known=task.is_placement_known)
        self._reports.append(found.reducer.finish(facts))
        self._problems += found.problems.total
        if found.problems.total and sum(each.num_rows for each in self._first.values()) < REPORT_ROWS:
            self._first[found.range.topic, found.range.number] = found.problems.shown.combine_chunks()

    def _segments(self, planned: PlannedRange) -> list[LogFile]:
        return segments_in(self._task.inputs.roots[planned.root], planned.directory)

    def _read(self, planned: PlannedRange, segments: Sequence[LogFile]) -> PartitionPass[S]:
        """Return the state after the records of a range, or after the new records since its checkpoint."""
        shape = _shape(segments)
        if planned.state is None:
            found = PartitionPass.start(self._job, self._output, planned, self._range(planned, shape, 0))
        else:
            # Later ranges need only the end of the earlier run, not its tables.
            saved = load_checkpoint(self._task.storage, planned.state, {} if planned.sequence else self._schemas)
            of = self._range(planned, shape, 0 if saved.tip is None else saved.tip.offset + 1)
            if planned.sequence:
                found = PartitionPass.start(self._job, self._output, planned, of)
            else:
                saved.check(planned.topic_id, shape, exact=self._job.exact)
                saved.check_lineage(_epochs(segments))
                saved.check_position(segments, exact=self._job.exact)
                found = PartitionPass.start(self._job, self._output, planned, of, saved)
                found.problems.drop_tail()
        found.read(segments)
        return found

    def _load(self, planned: PlannedRange) -> tuple[PartitionPass[S], Sequence[tuple[int, int]]]:
        """Return a saved state, and the base offset and size of each segment that it describes."""
        assert planned.state is not None
        saved = load_checkpoint(self._task.storage, planned.state, self._schemas)
        of = self._range(planned, saved.segments, saved.state.numbers[START])
        return PartitionPass.start(self._job, self._output, planned, of, saved), saved.segments

    def _range(self, planned: PlannedRange, shape: Sequence[tuple[int, int]], start: int) -> LogRange:
        return LogRange(
            topic=planned.topic,
            number=planned.partition,
            start=start,
            sequence=planned.sequence,
            bases=tuple(base for base, _ in shape),
            partitions=self._task.partitions.get(planned.topic, 0),
        )


def _shape(segments: Sequence[LogFile]) -> list[tuple[int, int]]:
    return [(each.first, each.size) for each in segments]


def _epochs(segments: Sequence[LogFile]) -> list[tuple[int, int]]:
    """Return the leader epochs of a replica and their start offsets, none if unknown."""
    with suppress(KafkaMsgsError, OSError):
        found = segments[0].read_sibling(LEADER_EPOCHS, read_leader_epochs) or ()
        return [(each.epoch, each.start_offset) for each in found]
    return []
