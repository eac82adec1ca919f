"""The course of a run, for all jobs and engines.

A run starts fresh, resumes an earlier run, or is refused. An engine processes the partitions. One commit then makes the
new tables visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from attrs import field, frozen

from kafka_msgs.engines.checkpoint import STATE
from kafka_msgs.engines.partition_reader import PartitionInput
from kafka_msgs.engines.partition_task import ReadSpec, TaskResult, TaskSpec, run_partition
from kafka_msgs.errors import JobPathError, UnseenFileError
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.log.timestamps import LogTimestamps
from kafka_msgs.tables.commit_log import NOT_EMPTY, CommitLog, Snapshot, WrittenFile
from kafka_msgs.tables.current_link import finish_commit
from kafka_msgs.tables.task_output import TableSpec, TaskOutput

__all__ = ["Engine", "Job", "JobInputs", "JobRun", "find_earlier_run", "identity_of", "local_engine", "run_job"]

S = TypeVar("S")
F = TypeVar("F", covariant=True)

_NOTHING: Final = "none.parquet"

Engine: TypeAlias = Callable[
    [Callable[[PartitionInput], TaskResult[Any]], Sequence[PartitionInput]], Iterable[TaskResult[Any]]
]
"""An engine calls a function for each partition, in any process, and returns the results in any order."""

ReplacedFiles: TypeAlias = "Callable[[Iterable[str], Sequence[S]], Iterable[str]]"
"""Returns the earlier files of an appended table that are replaced, by their paths in the table."""


class JobInputs(Protocol):
    """The inputs of a run. ``paths`` are the given paths; the methods read the inputs on each call.

    All methods raise ``JobPathError`` for a path without partitions and for two copies of a partition, and ``OSError``.
    """

    paths: tuple[str, ...]

    def logs(self, topic: str | None = None) -> tuple[PartitionInput, ...]:
        """Return the partitions, or the partitions of a topic, at least one."""

    def local_partitions(self) -> Mapping[tuple[str, int], Partition]:
        """Return the partitions on this machine."""

    def times(self) -> Mapping[tuple[str, int], LogTimestamps]:
        """Return the logs of all partitions on any filesystem, for timestamp lookups."""

    def ends(self) -> Mapping[tuple[str, int], int]:
        """Return the known log end offsets."""

    def names(self) -> Mapping[str, str]:
        """Return the known topic names by topic id."""


@frozen(kw_only=True)
class Job(Generic[S, F]):
    """A job over partitions: its read specification, its tables and its result.

    A run resumes an earlier run only if the ``options`` are equal. Every run writes all rows of ``tables``, but only
    adds to the tables of ``appended_tables``. ``combine`` writes the tables that depend on all partitions, and returns
    the report data.
    """

    name: str
    options: Mapping[str, object] = field(factory=dict)
    reading: ReadSpec[S]
    tables: Mapping[str, TableSpec]
    appended_tables: Mapping[str, ReplacedFiles[S]] = field(factory=dict)
    combine: Callable[[Sequence[S], TaskOutput], F]


@frozen(kw_only=True)
class JobRun(Generic[S, F]):
    """A requested run: a job, the given input paths, and the partitions to read."""

    job: Job[S, F]
    inputs: tuple[str, ...]
    logs: tuple[PartitionInput, ...]


def local_engine(progress: Progress | None = None) -> Engine:
    """Return the engine that reads the partitions sequentially in this process and reports its progress."""

    def each(
        function: Callable[[PartitionInput], TaskResult[Any]], logs: Sequence[PartitionInput]
    ) -> Iterator[TaskResult[Any]]:
        return (function(log, progress) for log in logs)  # type: ignore[call-arg]

    return each


def find_earlier_run(
    log: CommitLog, inputs: Sequence[str], name: str, options: Mapping[str, object]
) -> Snapshot | None:
    """Return the latest commit of an output directory, if it is a run of a job over the same inputs to resume from.

    Returns None for a directory that is empty, apart from the leftovers of runs that committed nothing. Raises
    ``JobPathError`` if it contains anything else.
    """
    out = str(log.storage)
    if log.is_unused():
        return None
    head = log.head()
    wanted, found = identity_of(inputs, name, options), head.identity if head else {}
    if found.keys() != wanted.keys() or found["job"] != name:
        raise JobPathError(path=out, reason=NOT_EMPTY)
    for what in wanted:
        if found[what] != wanted[what]:
            reason = f"it holds a run with other {what} ({_said(found[what])}); nothing is overwritten"
            raise JobPathError(path=out, reason=reason)
    return head


def run_job(
    run: JobRun[S, F],
    out: str,
    each: Engine,
    fs_options: FilesystemOptions = NO_OPTIONS,
    say: Callable[[str], None] = lambda _: None,
) -> F:
    """Run a job, commit its tables to ``out``, and return its result. ``fs_options`` are filesystem options.

    ``say`` is called with a sentence about each partition that had to be reread from its start. Raises
    ``JobPathError`` if ``out`` contains anything else than an earlier run, ``ConcurrentRunError`` if another run has
    committed in between, ``UnseenFileError`` if the processes of the run do not share ``out``, and ``OSError``.
    """
    job, log = run.job, CommitLog(Storage.at(out, fs_options))
    base = find_earlier_run(log, run.inputs, job.name, job.options)
    token = log.begin(identity_of(run.inputs, job.name, job.options), base)
    task = TaskSpec(storage=log.storage, token=token, reading=job.reading)
    results = _one_per_partition(log, run.logs, each(partial(run_partition, task), run.logs))
    for one in results:
        if one.reread_reason:
            say(f"{one.topic}-{one.number} was read from its start again: {one.reread_reason}")
    output = TaskOutput.start(log.storage, token)
    summaries = [one.summary for one in results]
    found = job.combine(summaries, output)
    log.commit(token, _committed_tables(job, base, results, summaries, output))
    finish_commit(log)
    return found


def _one_per_partition(
    log: CommitLog, partitions: Sequence[PartitionInput], results: Iterable[TaskResult[S]]
) -> list[TaskResult[S]]:
    """Return the result of one attempt for each partition. Raises ``UnseenFileError`` if one is missing."""
    found: dict[tuple[str, int], TaskResult[S]] = {}
    for one in results:
        found.setdefault((one.topic, one.number), one)
    missing = {(each.topic, each.number) for each in partitions} - found.keys()
    if missing:
        reason = f"{len(missing)} of {len(partitions)} partitions have no result"
        raise UnseenFileError(path=str(log.storage), reason=reason)
    return [found[key] for key in sorted(found)]


def _committed_tables(
    job: Job[S, F],
    base: Snapshot | None,
    results: Sequence[TaskResult[S]],
    summaries: Sequence[S],
    output: TaskOutput,
) -> dict[str, list[WrittenFile]]:
    """Return the files of each table: the remaining earlier files, and the new ones."""
    tables: dict[str, list[WrittenFile]] = {}
    for name in (*job.tables, STATE):
        earlier = base.tables.get(name, {}) if base and name in job.appended_tables else {}
        replaced = set(job.appended_tables[name](earlier, summaries)) if earlier else set()
        new = [file for one in results for file in one.files.get(name, ())]
        files = {each: file for each, file in earlier.items() if each not in replaced}
        if name in job.tables and not (files or new or output.files.get(name)):
            # An empty table also has a file, which defines the columns.
            output.writer(job.tables[name].schema, name, _NOTHING).close()
        own = output.files.get(name, {}).values()
        tables[name] = list({**files, **{file.name: file for file in (*new, *own)}}.values())
    return tables


def identity_of(inputs: Sequence[str], name: str, options: Mapping[str, object]) -> dict[str, object]:
    """Return the identity of a run, without credentials. A run resumes only a run with the same identity."""
    return {"job": name, "inputs": sorted(Location.parse(each).identity for each in inputs), **options}


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "yes" if value else "no"
