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
from kafka_msgs.filesystems.settings import NO_SETTINGS, Settings
from kafka_msgs.log.partition import Partition
from kafka_msgs.offline.directories import Progress
from kafka_msgs.offline.times import LogTimes
from kafka_msgs.pipeline.logs import Log
from kafka_msgs.pipeline.output import Place, TableForm
from kafka_msgs.pipeline.partition import Done, Reading, Task, run_partition
from kafka_msgs.pipeline.state import STATE

__all__ = ["Each", "Inputs", "Job", "Run", "check_out", "in_this_process", "run_job"]

S = TypeVar("S")
F = TypeVar("F", covariant=True)

_JOB: Final = "job.json"
_NOTHING: Final = "none.parquet"

Each: TypeAlias = Callable[[Callable[[Log], Done[Any]], Sequence[Log]], Iterable[Done[Any]]]
"""An engine: it calls a function for each partition, wherever that is, and gives the results in any order."""

Grown: TypeAlias = "Callable[[Place, Sequence[S]], Iterable[str]]"
"""Tells which files of a table that runs add to are replaced, by their paths in it."""


class Inputs(Protocol):
    """What the inputs of a run hold. ``named`` is how they were named; the other things are looked up when asked for.

    All methods raise ``JobPathError``, for a path without partitions and for two copies of one, and ``OSError``.
    """

    named: tuple[str, ...]

    def logs(self, topic: str | None = None) -> tuple[Log, ...]:
        """Return the partitions, or those of a topic, of which there must be one."""

    def places(self) -> Mapping[tuple[str, int], Partition]:
        """Return the partitions that are on this machine."""

    def times(self) -> Mapping[tuple[str, int], LogTimes]:
        """Return the logs of all partitions, wherever they are, to be asked for times."""

    def ends(self) -> Mapping[tuple[str, int], int]:
        """Return the offsets after the last records, where they are known."""

    def names(self) -> Mapping[str, str]:
        """Return the names of topics by their ids, where these are known."""


@frozen(kw_only=True)
class Job(Generic[S, F]):
    """A job over partitions: what it reads, the tables that it writes, and what it finds.

    ``options`` are those that an earlier run must have had, too. Every run writes all rows of ``tables``, and adds to
    the tables of ``grown``. ``found`` writes what takes all partitions together, and returns what the report needs.
    """

    name: str
    options: Mapping[str, object] = field(factory=dict)
    reading: Reading[S]
    tables: Mapping[str, TableForm]
    grown: Mapping[str, Grown[S]] = field(factory=dict)
    found: Callable[[Sequence[S], Place], F]


@frozen(kw_only=True)
class Run(Generic[S, F]):
    """What is asked for: a job, the inputs as they were named, and the partitions in them that it reads."""

    job: Job[S, F]
    inputs: tuple[str, ...]
    logs: tuple[Log, ...]


def in_this_process(progress: Progress | None = None) -> Each:
    """Return the engine that reads one partition after another in this process, and tells a progress how far it is."""

    def each(function: Callable[[Log], Done[Any]], logs: Sequence[Log]) -> Iterator[Done[Any]]:
        return (function(log, progress) for log in logs)  # type: ignore[call-arg]

    return each


def check_out(
    out: str, inputs: Sequence[str], name: str, options: Mapping[str, object], settings: Settings = NO_SETTINGS
) -> bool:
    """Return whether a directory holds an earlier run of a job over the same inputs, to go on from.

    Raises ``JobPathError`` if it holds something else.
    """
    place, is_file = Place.of(out, settings), "://" not in out and Path(out).is_file()
    if not is_file and place.is_unused():
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
    run: Run[S, F],
    out: str,
    each: Each,
    settings: Settings = NO_SETTINGS,
    say: Callable[[str], None] = lambda _: None,
) -> F:
    """Run a job and return what it found; the tables are in ``out`` then. ``settings`` are those of filesystems.

    ``say`` is called with a sentence about each partition that had to be read from its start again. Raises
    ``JobPathError`` for a place that holds something else, and ``OSError``.
    """
    job = run.job
    appends = check_out(out, run.inputs, job.name, job.options, settings)
    place = Place.of(out, settings)
    place.begin()
    task = Task(run=uuid4().hex, place=place, reading=job.reading, appends=appends)
    done = sorted(each(partial(run_partition, task), run.logs), key=lambda one: (one.topic, one.number))
    for one in done:
        if one.again:
            say(f"{one.topic}-{one.number} was read from its start again: {one.again}")
    summaries = [one.summary for one in done]
    found = job.found(summaries, place.new)
    place.new.write(json.dumps(_identity(run.inputs, job.name, job.options)).encode(), STATE, _JOB)
    _put(job, place, summaries, [one.attempt for one in done])
    return found


def _put(job: Job[S, F], place: Place, summaries: Sequence[S], attempts: Sequence[str]) -> None:
    """Put the tables into their places. One without a row has a file, too, which has the columns."""
    written, extended = place.written(attempts), dict[str, set[str]]()
    for name, table in job.tables.items():
        there = set(place.inside(name).files())
        replaced = set(job.grown[name](place, summaries)) if name in job.grown else there
        if name not in written and not there - replaced:
            place.new.writer(table.schema, name, _NOTHING).close()
        if name in job.grown:
            extended[name] = replaced
    place.publish([name for name in (*job.tables, STATE) if name not in extended], extended, attempts)


def _identity(inputs: Sequence[str], name: str, options: Mapping[str, object]) -> dict[str, object]:
    paths = [each if "://" in each else str(Path(each).absolute()) for each in inputs]
    return {"job": name, "inputs": sorted(paths), **options}


def _identity_in(place: Place) -> dict[str, object] | None:
    # A run that was killed while it put its tables in place has left its state where it was written.
    content = place.read(STATE, _JOB) or (place.new.read(STATE, _JOB) if place.plan() is not None else None)
    try:
        found = json.loads(content or b"")
    except ValueError:
        return None
    return found if isinstance(found, dict) and "job" in found else None


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "yes" if value else "no"
