"""The job ``group-offsets`` whatever runs it: every committed offset of every group, and the lag, in Parquet tables.

Owns the course of a run: it is refused or goes on from an earlier one, the partitions are read one by one by an engine,
the groups of all are put together, and the tables take the place of those of the earlier run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.settings import NO_SETTINGS, Settings
from kafka_msgs.log.partition import Partition
from kafka_msgs.offline.directories import Progress
from kafka_msgs.pipeline.answers import GROUPS, OFFSETS, PENDING, PROBLEMS, Ends, time_of
from kafka_msgs.pipeline.history import HISTORY_TABLE, files_of
from kafka_msgs.pipeline.offsets_log import OWN_GROUPS, Log, Summary, Task, run_partition, summed_lags
from kafka_msgs.pipeline.output import Place, write_table
from kafka_msgs.pipeline.state import STATE

__all__ = ["Each", "Found", "Run", "check_out", "in_this_process", "run_job"]

NAME: Final = "group-offsets"
_JOB: Final = "job.json"
_TABLES: Final = {"offsets": OFFSETS, "pending": PENDING, "groups": GROUPS, "problems": PROBLEMS}

_JOINED: Final = ("group", "kind", "state", "epoch", "members", "partitions", "lag")
_ALONE: Final = {"kind": "classic", "state": "Empty", "members": 0, "partitions": 0}
"""A group that has offsets only is loaded by a coordinator as an empty classic one."""

Each: TypeAlias = Callable[[Callable[[Log], Summary], Sequence[Log]], Iterable[Summary]]
"""An engine: it calls a function for each partition, wherever that is, and gives the results in any order."""


@frozen(kw_only=True)
class Run:
    """What is asked for: the inputs as they were named, the partitions in them, and the ends of all partitions.

    ``places`` are the partitions that are on this machine, of all topics.
    """

    inputs: tuple[str, ...]
    logs: tuple[Log, ...]
    ends: Mapping[tuple[str, int], int]
    places: Mapping[tuple[str, int], Partition]
    history: bool = False


@frozen
class Found:
    """What a run found: the summaries of partitions by number, and the table of groups."""

    summaries: tuple[Summary, ...]
    groups: pa.Table


def in_this_process(progress: Progress | None = None) -> Each:
    """Return the engine that reads one partition after another in this process, and tells a progress how far it is."""

    def each(function: Callable[[Log], Summary], logs: Sequence[Log]) -> Iterator[Summary]:
        return (function(log, progress) for log in logs)  # type: ignore[call-arg]

    return each


def check_out(out: str, inputs: Sequence[str], *, history: bool = False, settings: Settings = NO_SETTINGS) -> bool:
    """Return whether a directory holds an earlier run of this job over the same inputs, to go on from.

    Raises ``JobPathError`` if it holds something else.
    """
    place, is_file = Place.of(out, settings), "://" not in out and Path(out).is_file()
    if not is_file and not place.names():
        return False
    wanted, found = _identity(inputs, history), None if is_file else _identity_in(place)
    if found is None or found["job"] != NAME:
        raise JobPathError(path=out, reason="it exists and is not an empty directory; nothing is overwritten")
    for what in ("inputs", "history"):
        if found[what] != wanted[what]:
            reason = f"it holds a run with other {what} ({_said(found[what])}); nothing is overwritten"
            raise JobPathError(path=out, reason=reason)
    return True


def run_job(run: Run, out: str, each: Each, settings: Settings = NO_SETTINGS) -> Found:
    """Run the job and return what it found; the tables are in ``out`` then. ``settings`` are those of filesystems.

    Raises ``JobPathError`` for a place that holds something else, and ``OSError``.
    """
    appends = check_out(out, run.inputs, history=run.history, settings=settings)
    place = Place.of(out, settings)
    place.begin()
    identity = json.dumps(_identity(run.inputs, run.history)).encode()
    task = Task(run=uuid4().hex, place=place, ends=Ends.of(run.ends), history=run.history, appends=appends)
    summaries = tuple(sorted(each(partial(run_partition, task), run.logs), key=lambda found: found.number))
    groups = _groups(summaries)
    _write_groups(groups, place.new)
    for name, schema in _TABLES.items():
        if not place.new.inside(name).files():
            place.new.writer(schema, name, "none.parquet").close()
        place.replace(name)
    if run.history:
        _put_history(place, summaries)
    place.new.write(identity, STATE, _JOB)
    place.replace(STATE)
    place.begin()
    return Found(summaries, groups)


def _identity(inputs: Sequence[str], history: bool) -> dict[str, object]:
    paths = [each if "://" in each else str(Path(each).absolute()) for each in inputs]
    return {"job": NAME, "inputs": sorted(paths), "history": history}


def _identity_in(place: Place) -> dict[str, object] | None:
    content = place.read(STATE, _JOB)
    try:
        found = json.loads(content or b"")
        return found if {"job", "inputs", "history"} <= set(found) else None
    except (TypeError, ValueError):
        return None


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "yes" if value else "no"


def _groups(summaries: Sequence[Summary]) -> pa.Table:
    """Return all groups: those with records of their own, and those that have offsets only."""
    own = pa.concat_tables([OWN_GROUPS.empty_table(), *(each.groups for each in summaries)])
    lags = summed_lags(pa.concat_tables([each.lags for each in summaries]))
    found = own.join(lags, "group", join_type="full outer")
    columns = {name: pc.fill_null(found[name], _ALONE[name]) if name in _ALONE else found[name] for name in _JOINED}
    columns["lastCommitMs"] = found["commitTimestampMs"].combine_chunks()
    columns["lastCommit"] = time_of(columns["lastCommitMs"])
    groups = pa.Table.from_arrays([columns[name] for name in GROUPS.names], names=GROUPS.names)
    return groups.cast(GROUPS).sort_by("group")


def _write_groups(groups: pa.Table, new: Place) -> None:
    for kind in pc.unique(groups["kind"]).to_pylist():
        rows = groups.filter(pc.equal(groups["kind"], kind)).drop_columns("kind")
        write_table("groups", rows.to_batches(), rows.schema, new, f"kind={kind}/0")


def _put_history(place: Place, summaries: Sequence[Summary]) -> None:
    """Add what is new of the history. What was read from its start again replaces all that was there."""
    replaced: list[str] = []
    for each in summaries:
        there = files_of(place, each.number)
        replaced += [name for name in there if each.from_start or name.endswith("/open.parquet")]
    place.extend(HISTORY_TABLE, replaced)
