"""The course of a run, whatever the job and whatever runs it.

A run is refused or goes on from an earlier one, the partitions are read one by one by an engine, and the tables take
the place of those of the earlier run.
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
"""An engine: it calls a function for each partition, wherever that is, and gives the results in any order."""

ReplacedFiles: TypeAlias = "Callable[[OutputDirectory, Sequence[S]], Iterable[str]]"
"""Tells which files of a table that runs add to are replaced, by their paths in it."""


class JobInputs(Protocol):
    """What the inputs of a run hold. ``paths`` is how they were named; the other things are looked up when asked for.

    All methods raise ``JobPathError``, for a path without partitions and for two copies of one, and ``OSError``.
    """

    paths: tuple[str, ...]

    def logs(self, topic: str | None = None) -> tuple[PartitionInput, ...]:
        """Return the partitions, or those of a topic, of which there must be one."""

    def local_partitions(self) -> Mapping[tuple[str, int], Partition]:
        """Return the partitions that are on this machine."""

    def times(self) -> Mapping[tuple[str, int], LogTimestamps]:
        """Return the logs of all partitions, wherever they are, to be asked for times."""

    def ends(self) -> Mapping[tuple[str, int], int]:
        """Return the offsets after the last records, where they are known."""

    def names(self) -> Mapping[str, str]:
        """Return the names of topics by their ids, where these are known."""


@frozen(kw_only=True)
class Job(Generic[S, F]):
    """A job over partitions: what it reads, the tables that it writes, and what it finds.

    ``options`` are those that an earlier run must have had, too. Every run writes all rows of ``tables``, and adds to
    the tables of ``appended_tables``. ``found`` writes what takes all partitions together, and returns what the report
    needs.
    """

    name: str
    options: Mapping[str, object] = field(factory=dict)
    reading: ReadSpec[S]
    tables: Mapping[str, TableSpec]
    appended_tables: Mapping[str, ReplacedFiles[S]] = field(factory=dict)
    combine: Callable[[Sequence[S], OutputDirectory], F]


@frozen(kw_only=True)
class JobRun(Generic[S, F]):
    """What is asked for: a job, the inputs as they were named, and the partitions in them that it reads."""

    job: Job[S, F]
    inputs: tuple[str, ...]
    logs: tuple[PartitionInput, ...]


def local_engine(progress: Progress | None = None) -> Engine:
    """Return the engine that reads one partition after another in this process, and tells a progress how far it is."""

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
    """Return whether a directory holds an earlier run of a job over the same inputs, to go on from.

    Raises ``JobPathError`` if it holds something else.
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
    """Run a job and return what it found; the tables are in ``out`` then. ``fs_options`` are those of filesystems.

    ``say`` is called with a sentence about each partition that had to be read from its start again. Raises
    ``JobPathError`` for a place that holds something else, and ``OSError``.
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
    """Put the tables into their places. One without a row has a file, too, which has the columns."""
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
    # A run that was killed while it put its tables in place has left its state where it was written.
    content = place.read(STATE, _JOB) or (place.staging.read(STATE, _JOB) if place.plan() is not None else None)
    try:
        found = json.loads(content or b"")
    except ValueError:
        return None
    return found if isinstance(found, dict) and "job" in found else None


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "yes" if value else "no"
