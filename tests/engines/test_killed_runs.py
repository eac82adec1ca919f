"""Killed and overlapping runs of jobs: tables are complete, and repeated task attempts leave no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.engines.job import Engine, run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.partition_task import finish_task, read_task
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.errors import ConcurrentRunError, UnseenFileError
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.task_output import TaskOutput
from tests.engines.test_append import from_nothing, run, tables
from tests.support.offsets_topic import OffsetsTopic

NAMES = ("offsets", "pending", "groups", "problems", "history")
Task = Callable[[int], Any]
Results = Iterator[Any]


class KilledError(Exception):
    """Ends a run here, in place of a signal."""


def grown_topic(home: Path) -> OffsetsTopic:
    """Return a topic of two partitions with a run in ``out``, and more records since."""
    other = OffsetsTopic(home / "logs", Random(8), number=1)
    other.grow(40)
    other.write()
    topic = OffsetsTopic(home / "logs", Random(7), problems=True)
    topic.grow(60)
    run(topic.write(), home / "out", history=True)
    topic.grow(30)
    topic.write()
    return topic


def run_with(engine: Engine, topic: OffsetsTopic, out: Path) -> None:
    run_job(group_offsets_job(history=True), JobInputs.at([topic.home]), str(out), engine, split_bytes=1)


def step_of(function: Task) -> Any:
    """Return the step of a run that an engine executes."""
    assert isinstance(function, partial)
    return function.func


def test_what_another_attempt_of_a_task_writes_is_in_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = grown_topic(tmp_path)
    wanted = from_nothing(topic.home, tmp_path / "fresh", history=True)

    def killed(output: TaskOutput, table: str, rows: pa.Table, directory: str = "") -> None:
        output.writer(rows.schema, table, f"{directory}/0.parquet".lstrip("/")).abandon()
        raise KilledError

    def each(function: Task, count: int) -> Results:
        for number in range(count):
            function(number)
            yield function(number)
            if step_of(function) is finish_task:
                with monkeypatch.context() as patched:
                    patched.setattr(TaskOutput, "append", killed)
                    with pytest.raises(KilledError):
                        function(number)

    run_with(each, topic, tmp_path / "out")
    assert tables(tmp_path / "out", *NAMES) == wanted


def test_what_a_first_run_left_that_was_killed_is_in_no_way(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(3))
    topic.grow(60)
    topic.write()

    def killed(function: Task, count: int) -> Results:
        yield from local_engine()(function, count)
        if step_of(function) is finish_task:
            raise KilledError

    with pytest.raises(KilledError):
        run_job(group_offsets_job(), JobInputs.at([topic.home]), str(tmp_path / "out"), killed)
    assert {each.name for each in (tmp_path / "out").iterdir()} == {"_runs", "data"}
    run(topic.home, tmp_path / "out")
    assert tables(tmp_path / "out") == from_nothing(topic.home, tmp_path / "fresh")


def test_of_two_overlapping_runs_the_later_is_refused_and_no_row_is_lost(tmp_path: Path) -> None:
    topic = grown_topic(tmp_path)

    def overtaken(function: Task, count: int) -> Results:
        yield from local_engine()(function, count)
        if step_of(function) is finish_task:
            run(topic.home, tmp_path / "out", history=True)

    with pytest.raises(ConcurrentRunError, match="another run has committed since it began"):
        run_with(overtaken, topic, tmp_path / "out")
    assert tables(tmp_path / "out", *NAMES) == from_nothing(topic.home, tmp_path / "fresh", history=True)


def test_workers_that_do_not_share_the_disk_fail_and_leave_the_tables(tmp_path: Path) -> None:
    topic = grown_topic(tmp_path)
    before = tables(tmp_path / "out", *NAMES)

    def elsewhere(function: Task, count: int) -> Results:
        assert isinstance(function, partial)
        (task,) = function.args
        other = evolve(task, storage=Storage.at(str(tmp_path / "another disk" / "out")))
        return map(partial(function.func, other), range(count))

    with pytest.raises(UnseenFileError, match="driver and workers do not share this location"):
        run_with(elsewhere, topic, tmp_path / "out")
    assert tables(tmp_path / "out", *NAMES) == before


@pytest.mark.parametrize("results", [0, 1])
def test_an_engine_that_loses_results_fails_and_leaves_the_tables(tmp_path: Path, results: int) -> None:
    topic = grown_topic(tmp_path)
    before = tables(tmp_path / "out", *NAMES)

    def losing(function: Task, count: int) -> Results:
        found = list(local_engine()(function, count))
        return iter(found[:results] if step_of(function) is read_task else found)

    with pytest.raises(UnseenFileError, match="tasks have no result"):
        run_with(losing, topic, tmp_path / "out")
    assert tables(tmp_path / "out", *NAMES) == before
