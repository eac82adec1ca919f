"""Runs of a job in processes that kill themselves before one of their changes to a filesystem.

``check_steps`` kills a run before every change that it makes: readers see the tables of the run before, or all new
ones, and the next run succeeds and leaves no file that no manifest lists.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import wraps
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Final

from attrs import evolve, field, frozen

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog
from kafka_msgs.tables.delta import OpenDeltaTable
from kafka_msgs.tables.iceberg import OpenIcebergTable
from kafka_msgs.tables.task_output import TableWriter
from tests.support.offsets_topic import OffsetsTopic
from tests.support.table_readers import read_table

__all__ = ["Output", "check_steps"]

_KILLED: Final = -signal.SIGKILL
_SECONDS: Final = 120
_SPLIT: Final = 1500
_JOB: Final = group_offsets_job(history=True)
_EVENTS: Final = frozenset(["os.link", "os.remove", "os.rename", "os.rmdir", "os.symlink"])
"""The audit events of changes to a local disk besides those through ``Storage``."""
_CHANGES: Final[Mapping[type, Sequence[str]]] = {
    Storage: ("create", "write", "output", "delete", "delete_directories"),
    TableWriter: ("write", "close"),
}
_CONTEXT: Final = get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])

Tables = dict[str, list[str]]


@frozen
class Output:
    """The output location of runs, with the options of its filesystem, and the format of its tables."""

    location: str
    settings: Mapping[str, str] = field(factory=dict)
    form: str = "parquet"

    @property
    def options(self) -> FilesystemOptions:
        """The options of the filesystem."""
        return FilesystemOptions.from_mapping(self.settings)

    @property
    def log(self) -> CommitLog:
        """The commits of the runs."""
        return CommitLog(Storage.at(self.location, self.options))

    def copy(self, location: str) -> Output:
        """Replace another directory of the filesystem by a copy of this one, and return it."""
        made = evolve(self, location=location)
        if "://" not in location:
            shutil.rmtree(location, ignore_errors=True)
            shutil.copytree(self.location, location, symlinks=True)
            return made
        here, there = (Storage.at(each.location, self.options) for each in (self, made))
        there.delete([each.path for each in there.list_files()])
        for path in [each.path for each in here.list_files()]:
            there.write(path, here.read(path) or b"")
        return made

    def run(self, logs: Path) -> None:
        """Run the job."""
        run_job(
            _JOB,
            JobInputs.at([logs]),
            self.log.storage.location.shown,
            local_engine(),
            self.options,
            split_bytes=_SPLIT,
            table_format=self.form,
        )

    def tables(self) -> Tables:
        """Return the rows that a reader sees."""
        found = {name: read_table(self.form, f"{self.location}/{name}", self.settings) for name in _JOB.tables}
        return {name: sorted(map(_text, rows.to_pylist())) for name, rows in found.items()}

    def orphans(self) -> set[str]:
        """Remove what no manifest lists any more, and return the remaining files that none lists, and missing ones.

        Old files of other formats than Parquet are for the vacuum of their tables.
        """
        log = evolve(self.log, grace=timedelta(0))
        log.expire()
        listed = {file.path for number in log.numbers() for file in log.snapshot(number).files()}
        there = {each.path for each in log.storage.list_files()}
        return {path for path in there - listed if path.startswith("data/")} | listed - there


def _text(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if name != "day"))


def check_steps(home: Path, output: Output, steps: range | None = None) -> Iterator[str]:
    """Kill runs before changes, all of them without ``steps``; yield what each kill left: the state of the tables."""
    topic = OffsetsTopic(home / "logs", Random(11))
    topic.grow(60)
    output.run(topic.write())
    before = output.tables()
    topic.grow(40)
    fresh = evolve(output, location=f"{output.location}-fresh")
    fresh.run(topic.write())
    after = fresh.tables()
    assert before != after
    saved = output.copy(f"{output.location}-saved")
    for step in count() if steps is None else steps:
        # Iceberg refers to a table by its whole path.
        killed = saved.copy(output.location)
        if _run_killed(killed, topic.home, step) != _KILLED:
            assert killed.tables() == after
            return
        seen = killed.tables()
        states = {name: _state(rows, before[name], after[name]) for name, rows in seen.items()}
        # Tables in another format are committed one by one.
        assert "other" not in states.values(), (step, states)
        assert output.form != "parquet" or len(set(states.values()) - {"both"}) <= 1, (step, states)
        killed.run(topic.home)
        assert killed.tables() == after, step
        assert not killed.orphans(), step
        yield "new" if "new" in states.values() else "old"


def _state(rows: list[str], before: list[str], after: list[str]) -> str:
    if before == after == rows:
        return "both"
    return "new" if rows == after else "old" if rows == before else "other"


def _run_killed(output: Output, logs: Path, step: int) -> int | None:
    process = _CONTEXT.Process(target=_run, args=(output, logs, step))
    process.start()
    process.join(_SECONDS)
    return process.exitcode


def _run(output: Output, logs: Path, step: int) -> None:
    left = count(step, -1)

    def change() -> None:
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    changes = {**_CHANGES, OpenDeltaTable: ("commit",), OpenIcebergTable: ("commit",)}
    for of, names in changes.items():
        for name in names:
            setattr(of, name, _announced(getattr(of, name), change))
    sys.addaudithook(lambda event, _: change() if event in _EVENTS else None)
    output.run(logs)


def _announced(function: Callable[..., Any], change: Callable[[], None]) -> Callable[..., Any]:
    @wraps(function)
    def announced(*arguments: Any, **options: Any) -> Any:
        change()
        return function(*arguments, **options)

    return announced
