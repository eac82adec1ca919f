"""The course of a run, for all jobs and engines.

A run starts fresh, resumes an earlier run, or is refused. An engine processes the partitions. The new tables then
replace the tables of the earlier run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from uuid import uuid4

from attrs import field, frozen

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.offline.log_timestamps import LogTimestamps
from kafka_msgs.offline.partition_discovery import Progress
from kafka_msgs.pipeline.checkpoint import STATE
from kafka_msgs.pipeline.partition_reader import PartitionInput
from kafka_msgs.pipeline.partition_task import ReadSpec, TaskResult, TaskSpec, run_partition
from kafka_msgs.pipeline.table_output import OutputDirectory, TableSpec

__all__ = ["Engine", "Job", "JobInputs", "JobRun", "find_earlier_run", "local_engine", "run_job"]

S = TypeVar("S")
F = TypeVar("F", covariant=True)

_JOB: Final = "job.json"
_NOTHING: Final = "none.parquet"

Engine: TypeAlias = Callable[
    [Callable[[PartitionInput], TaskResult[Any]], Sequence[PartitionInput]], Iterable[TaskResult[Any]]
]
"""An engine calls a function for each partition, in any process, and returns the results in any order."""

ReplacedFiles: TypeAlias = "Callable[[OutputDirectory, Sequence[S]], Iterable[str]]"
"""Returns the files of an appended table that are replaced, by their paths in the table."""


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
    combine: Callable[[Sequence[S], OutputDirectory], F]


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
    out: str,
    inputs: Sequence[str],
    name: str,
    options: Mapping[str, object],
    fs_options: FilesystemOptions = NO_OPTIONS,
) -> bool:
    """Return whether a directory contains an earlier run of a job over the same inputs, to resume from.

    Raises ``JobPathError`` if it contains anything else.
    """
    place, is_file = OutputDirectory.of(out, fs_options), "://" not in out and Path(out).is_file()
    if not is_file and place.is_empty():
        return False
    wanted = _identity(inputs, name, options)
    found = None if is_file else _identity_in(place)
    if found is None or found.keys() != wanted.keys() or found["job"] != name:
        raise JobPathError(path=out, reason="it exists and is not an empty directory; nothing is overwritten")
    for what in wanted:
        if found[what] != wanted[what]:
            reason = f"it holds a run with other {what} ({_said(found[what])}); nothing is overwritten"
            raise JobPathError(path=out, reason=reason)
    return True


def run_job(
    run: JobRun[S, F],
    out: str,
    each: Engine,
    fs_options: FilesystemOptions = NO_OPTIONS,
    say: Callable[[str], None] = lambda _: None,
) -> F:
    """Run a job, write its tables to ``out``, and return its result. ``fs_options`` are filesystem options.

    ``say`` is called with a sentence about each partition that had to be reread from its start. Raises
    ``JobPathError`` if ``out`` contains anything else than an earlier run, and ``OSError``.
    """
    job = run.job
    appends = find_earlier_run(out, run.inputs, job.name, job.options, fs_options)
    place = OutputDirectory.of(out, fs_options)
    place.begin()
    task = TaskSpec(run=uuid4().hex, place=place, reading=job.reading, resumes=appends)
    done = sorted(each(partial(run_partition, task), run.logs), key=lambda one: (one.topic, one.number))
    for one in done:
        if one.reread_reason:
            say(f"{one.topic}-{one.number} was read from its start again: {one.reread_reason}")
    summaries = [one.summary for one in done]
    found = job.combine(summaries, place.staging)
    place.staging.write(json.dumps(_identity(run.inputs, job.name, job.options)).encode(), STATE, _JOB)
    _put(job, place, summaries, [one.attempt for one in done])
    return found


def _put(job: Job[S, F], place: OutputDirectory, summaries: Sequence[S], attempts: Sequence[str]) -> None:
    """Publish the tables. An empty table also gets a file, which defines the columns."""
    written, extended = place.written(attempts), dict[str, set[str]]()
    for name, table in job.tables.items():
        there = set(place.subdirectory(name).files())
        replaced = set(job.appended_tables[name](place, summaries)) if name in job.appended_tables else there
        if name not in written and not there - replaced:
            place.staging.writer(table.schema, name, _NOTHING).close()
        if name in job.appended_tables:
            extended[name] = replaced
    place.publish([name for name in (*job.tables, STATE) if name not in extended], extended, attempts)


def _identity(inputs: Sequence[str], name: str, options: Mapping[str, object]) -> dict[str, object]:
    paths = [each if "://" in each else str(Path(each).absolute()) for each in inputs]
    return {"job": name, "inputs": sorted(paths), **options}


def _identity_in(place: OutputDirectory) -> dict[str, object] | None:
    # If a run was killed while it published its tables, its state is still in the staging directory.
    content = place.read(STATE, _JOB) or (place.staging.read(STATE, _JOB) if place.plan() is not None else None)
    try:
        found = json.loads(content or b"")
    except ValueError:
        return None
    return found if isinstance(found, dict) and "job" in found else None


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "yes" if value else "no"
