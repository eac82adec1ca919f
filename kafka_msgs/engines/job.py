"""The course of a run, for all jobs and engines.

A run starts fresh, resumes an earlier run, or is refused. Tasks list the inputs, read the ranges of the chosen
replicas, and finish the partitions. One commit then makes the new tables visible. The engine only decides where tasks
run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

import pyarrow as pa
from attrs import evolve, frozen

from kafka_msgs.analysis.job import PROBLEMS_TABLE, REPORT_ROWS, Job, LogRange
from kafka_msgs.engines.checkpoint import STATE, saved_places
from kafka_msgs.engines.cluster import Cluster
from kafka_msgs.engines.partition_task import (
    RangeResult,
    TaskResult,
    TaskSpec,
    finish_task,
    list_task,
    merge_task,
    read_task,
)
from kafka_msgs.engines.plan import (
    NO_SPLIT,
    PLAN,
    SPLIT_BYTES,
    PlannedRange,
    pack_ranges,
    plan_tasks,
    read_batch,
    write_batches,
)
from kafka_msgs.engines.replicas import REPLICAS, JobInputs
from kafka_msgs.errors import JobPathError, UnseenFileError
from kafka_msgs.filesystems.location import Location, mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.log.metadata_log_state import METADATA_TOPIC
from kafka_msgs.tables.commit_log import Snapshot, WrittenFile
from kafka_msgs.tables.job_tables import JobTables
from kafka_msgs.tables.task_output import TaskOutput

__all__ = ["Engine", "RunResult", "job_tables", "run_job"]

S = TypeVar("S")

_EMPTY: Final = "empty.parquet"
_MERGE_BYTES: Final = 16 << 20
"""The assumed size of the state of a range, which limits the number of states in a task."""

Engine: TypeAlias = Callable[[Callable[[int], Any], int], Iterable[Any]]
"""An engine calls a function for each task number below a count, in any process, and returns results in any order."""


@frozen(kw_only=True)
class RunResult(Generic[S]):
    """The result of a run: the report data, the problems, the partitions as they were read, and the cluster.

    ``problems`` counts the rows of the table ``problems`` that reading found, and ``first_problems`` are the first.
    """

    report: S
    problems: int
    first_problems: pa.Table
    partitions: tuple[LogRange, ...]
    cluster: Cluster


def job_tables(
    job: Job[S],
    inputs: JobInputs,
    out: str,
    fs_options: FilesystemOptions = NO_OPTIONS,
    table_format: str = "parquet",
) -> JobTables:
    """Return the tables of a job in an output directory. A run resumes only a run with the same inputs and options.

    Raises ``OptionError``, ``JobPathError`` and ``MissingExtraError``.
    """
    # The identity is saved, so it contains no credentials.
    places = sorted(Location.parse(each).identity for each in inputs.paths)
    identity = {"job": job.name, "inputs": places, **job.options}
    return JobTables.at(out, job.tables, identity, table_format, fs_options)


def run_job(
    job: Job[S],
    inputs: JobInputs,
    out: str,
    engine: Engine,
    fs_options: FilesystemOptions = NO_OPTIONS,
    say: Callable[[str], None] = lambda _: None,
    *,
    ends: Mapping[tuple[str, int], int] | None = None,
    split_bytes: int = SPLIT_BYTES,
    table_format: str = "parquet",
) -> RunResult[S]:
    """Run a job, commit its tables to ``out``, and return its result. ``fs_options`` are filesystem options.

    ``ends`` are the log end offsets, by default the end offsets of the inputs, which are read after the records.
    ``say`` is called with a sentence about each partition that had to be reread from its start, and about each log left
    out. Partitions of more than ``split_bytes`` bytes are read in several ranges. With the ``table_format`` ``delta``
    or ``iceberg``, each table is a directory in ``out``, whose next version refers to the committed files.

    Raises ``JobPathError`` if ``out`` contains anything else than an earlier run, or an input has no partition;
    ``ConcurrentRunError`` if another run has committed in between; ``UnseenFileError`` if the processes of the run do
    not share ``out``; ``OSError``, and the errors of ``JobTables.commit``.
    """
    tables = job_tables(job, inputs, out, fs_options, table_format)
    base = tables.find_base()
    inputs.check(job.topics)
    token = tables.begin(base)
    task = TaskSpec(storage=tables.log.storage, token=token, inputs=inputs, job=job, split_bytes=split_bytes)
    return _Run(tables, base, task, engine, say, ends).result()


@frozen
class _Run(Generic[S]):
    """A run in progress."""

    tables: JobTables
    base: Snapshot | None
    task: TaskSpec[S]
    engine: Engine
    say: Callable[[str], None]
    ends: Mapping[tuple[str, int], int] | None

    def result(self) -> RunResult[S]:
        """Read, finish and commit all partitions."""
        output = TaskOutput.start(self.task.storage, self.task.token)
        cluster = self._choose(self.task.job.read_topics)
        task = evolve(self.task, partitions=cluster.counts, is_placement_known=cluster.is_placement_known)
        read = self._read(task, cluster.replicas)
        merged = self._over_states(task, merge_task, (each for each in _ranges(read) if each.planned.count > 1))
        finished: list[TaskResult[S]] = []
        if task.job.needs_facts:
            cluster = self._choose(None, cluster)
            (batch,) = cluster.facts(self.ends).combine_chunks().to_batches()
            facts, _ = write_batches(output, "_facts", [batch], batch.schema)
            states = [each for each in _ranges([*read, *merged]) if each.planned.count == 1]
            finished = self._over_states(evolve(task, facts=facts, totals=_totals(states)), finish_task, states)
        return self._commit(read, [*merged, *finished], output, cluster)

    def _choose(self, topics: tuple[str, ...] | None, before: Cluster | None = None) -> Cluster:
        """List the inputs, and return the cluster with the chosen replicas of some topics, None for all."""
        inputs, task = self.task.inputs, evolve(self.task, topics=None)
        if topics is not None:
            task = evolve(self.task, topics=(*topics, METADATA_TOPIC))
        if before is not None:
            # The ranges have been read, so that no segment needs to be split.
            task = evolve(task, split_bytes=NO_SPLIT)
        listed = list(self.engine(partial(list_task, task), len(inputs.directories)))
        say, metadata = (self.say, None) if before is None else (lambda _: None, before.metadata)
        cluster = Cluster.of(inputs, _replicas(self.task.storage, listed), topics, say, metadata)
        if not cluster.replicas.num_rows:
            raise JobPathError(path=", ".join(map(mask_uri, inputs.paths)), reason="there is no segment in it")
        return cluster

    def _read(self, task: TaskSpec[S], replicas: pa.Table) -> list[TaskResult[S]]:
        saved = saved_places(task.storage, self.base, self.say)
        return self._tasks(task, read_task, plan_tasks(replicas, saved, task.split_bytes))

    def _over_states(
        self, task: TaskSpec[S], function: Callable[..., TaskResult[S]], ranges: Iterable[RangeResult]
    ) -> list[TaskResult[S]]:
        """Run tasks over the saved states of ranges, if there are any."""
        found = list(ranges)
        return self._tasks(task, function, _state_tasks(found)) if found else []

    def _tasks(
        self, task: TaskSpec[S], function: Callable[..., TaskResult[S]], batches: Iterable[pa.RecordBatch]
    ) -> list[TaskResult[S]]:
        """Write a plan, run its tasks, and return the results of one attempt of each."""
        output = TaskOutput.start(task.storage, task.token)
        plan, count = write_batches(output, "_plan", batches, PLAN)
        # Only listings need the directories, which may be many.
        inputs = evolve(task.inputs, paths=(), directories=())
        task = evolve(task, plan=plan, inputs=inputs)
        found: dict[Any, TaskResult[S]] = {}
        for result in self.engine(partial(function, task), count):
            first = result.ranges[0].planned
            found.setdefault((first.topic, first.partition, first.sequence), result)
        if len(found) < count:
            reason = f"{count - len(found)} of {count} tasks have no result"
            raise UnseenFileError(path=str(task.storage), reason=reason)
        return [found[key] for key in sorted(found)]

    def _commit(
        self, read: Sequence[TaskResult[S]], finished: Sequence[TaskResult[S]], output: TaskOutput, cluster: Cluster
    ) -> RunResult[S]:
        job, results = self.task.job, [*read, *finished]
        report = job.combine(job.merge([each.report for each in results if each.report is not None]), output)
        output.close()
        last = _last_reads(results)
        for each in last:
            if each.reread_reason:
                place = f"{each.planned.topic}-{each.planned.partition}"
                self.say(f"{place} was read from its start again: {each.reread_reason}")
        partitions = tuple(each.read for each in last if each.read is not None)
        new = [*_files(read, without=_read_again(read, finished)), *_files(finished, without=frozenset())]
        self.tables.commit(self.task.token, _committed_tables(job, self.base, new, partitions, output))
        shown = _first_problems(results, job.tables[PROBLEMS_TABLE].schema)
        problems = sum(each.problems for each in results)
        return RunResult(report=report, problems=problems, first_problems=shown, partitions=partitions, cluster=cluster)


def _replicas(storage: Storage, listed: Iterable[tuple[str, int]]) -> pa.Table:
    batches = [read_batch(storage, path, number) for path, count in listed for number in range(count)]
    return pa.Table.from_batches(batches, REPLICAS)


def _first_problems(results: Iterable[TaskResult[Any]], schema: pa.Schema) -> pa.Table:
    """Return the first problems in the order of the partitions, whatever tasks found them."""
    found = {place: rows for each in results for place, rows in each.first_problems.items()}
    return pa.concat_tables([schema.empty_table(), *(found[place] for place in sorted(found))]).slice(0, REPORT_ROWS)


def _ranges(results: Iterable[TaskResult[S]]) -> Iterator[RangeResult]:
    return (each for result in results for each in result.ranges)


def _totals(ranges: Iterable[RangeResult]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in ranges:
        found.update({name: count for name, count in each.numbers.items() if not name.startswith("_")})
    return dict(found)


def _state_tasks(ranges: Iterable[RangeResult]) -> Iterator[pa.RecordBatch]:
    """Return the ranges of each task over states. All ranges of a partition are in one task.

    Tasks are in the order of partitions, so that reports do not depend on the ranges.
    """
    by_log: dict[tuple[str, int], list[PlannedRange]] = {}
    for each in ranges:
        planned = evolve(each.planned, state=each.state)
        by_log.setdefault((planned.topic, planned.partition), []).append(planned)
    logs = (sorted(by_log[place], key=lambda each: each.sequence) for place in sorted(by_log))
    return pack_ranges((log, len(log) * _MERGE_BYTES) for log in logs)


def _last_reads(results: Iterable[TaskResult[Any]]) -> list[RangeResult]:
    """Return how each partition was read at last, with the reason of its first range that was read again."""
    found: dict[tuple[str, int], RangeResult] = {}
    for each in _ranges(results):
        place = each.planned.topic, each.planned.partition
        reason = found[place].reread_reason if place in found else None
        found[place] = evolve(each, reread_reason=reason or each.reread_reason)
    return [found[place] for place in sorted(found)]


def _read_again(read: Iterable[TaskResult[Any]], finished: Iterable[TaskResult[Any]]) -> frozenset[str]:
    """Return the logs that the task that merges their ranges has read again."""
    lost = [each.planned for each in _ranges(read) if each.read is None]
    lost += [each.planned for each in _ranges(finished) if each.reread_reason]
    return frozenset(LogRange(topic=each.topic, number=each.partition).log for each in lost)


def _files(results: Iterable[TaskResult[Any]], without: frozenset[str]) -> Iterator[tuple[str, WrittenFile]]:
    """Yield the files of results with their tables, except the files of some logs."""
    for result in results:
        for table, files in result.files.items():
            yield from ((table, each) for each in files if each.log not in without)


def _committed_tables(
    job: Job[S],
    base: Snapshot | None,
    new: Iterable[tuple[str, WrittenFile]],
    partitions: Sequence[LogRange],
    output: TaskOutput,
) -> dict[str, list[WrittenFile]]:
    """Return the files of each table: the remaining earlier files, and the new ones."""
    known = {each.log: each for each in partitions}
    tables: dict[str, list[WrittenFile]] = {name: [] for name in (*job.tables, STATE)}
    for name, earlier in base.tables.items() if base is not None else ():
        if name in job.appended:
            tables[name] += [each for each in earlier.values() if _remains(each, known.get(each.log))]
    for name, file in new:
        tables[name].append(file)
    for name, files in tables.items():
        if name in job.tables and not (files or output.files.get(name)):
            # An empty table also has a file, which defines the columns.
            output.writer(job.tables[name].schema, name, _EMPTY).close()
        files += output.files.get(name, {}).values()
    return tables


def _remains(file: WrittenFile, of: LogRange | None) -> bool:
    """Return whether an earlier file of an appended table is still part of it.

    Each run rewrites files with open rows, and all files of a partition that it reads from its start. Files of deleted
    segments and partitions are dropped.
    """
    if of is None or file.is_open or of.from_start:
        return False
    return file.segment < 0 or file.segment in of.bases
