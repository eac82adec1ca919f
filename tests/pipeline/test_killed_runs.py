"""Killed runs and tasks: the next run completes the output, and repeated task attempts leave no trace."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyarrow import fs

from kafka_msgs.filesystems.options import NO_OPTIONS
from kafka_msgs.pipeline import group_offsets_task
from kafka_msgs.pipeline.group_offsets import group_offsets_run
from kafka_msgs.pipeline.job import local_engine, run_job
from kafka_msgs.pipeline.local_inputs import LocalInputs
from kafka_msgs.pipeline.partition_reader import PartitionInput
from kafka_msgs.pipeline.partition_task import TaskResult
from kafka_msgs.pipeline.table_output import OutputDirectory
from tests.pipeline.test_append import from_nothing, run, tables
from tests.support.offsets_topic import OffsetsTopic

NAMES = ("offsets", "pending", "groups", "problems", "history")


class KilledError(Exception):
    """Ends a run here, in place of a signal."""


class Dying:
    """A filesystem on which a fixed number of changes succeed before one is killed."""

    left: int

    def move(self, *args: Any) -> None:
        """Move, or raise ``KilledError``."""
        self._live()
        super().move(*args)  # type: ignore[misc]

    def delete_file(self, *args: Any) -> None:
        """Delete a file, or raise ``KilledError``."""
        self._live()
        super().delete_file(*args)  # type: ignore[misc]

    def delete_dir(self, *args: Any) -> None:
        """Delete a directory, or raise ``KilledError``."""
        self._live()
        super().delete_dir(*args)  # type: ignore[misc]

    def _live(self) -> None:
        if self.left == 0:
            raise KilledError
        self.left -= 1


class Machine(Dying, fs.LocalFileSystem):  # type: ignore[misc]
    """A filesystem that renames directories."""


class Store(Dying, fs.SubTreeFileSystem):  # type: ignore[misc]
    """A filesystem that moves files one by one."""


def machine() -> Any:
    return Machine()


def store() -> Any:
    return Store("/", fs.LocalFileSystem())


@pytest.mark.parametrize("make", [machine, store])
def test_a_run_that_is_killed_at_any_step_is_completed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]
) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(7), problems=True)
    topic.grow(60)
    run(topic.write(), tmp_path / "first", history=True)
    topic.grow(30)
    topic.write()
    wanted = from_nothing(topic.home, tmp_path / "fresh", history=True)
    filesystem, steps, killed = make(), 0, True
    start = isinstance(filesystem, Store)  # Paths below the root of a store have no leading slash.
    monkeypatch.setattr(
        OutputDirectory, "of", lambda out, _=NO_OPTIONS: OutputDirectory(filesystem, str(Path(out).absolute())[start:])
    )
    while killed:
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(tmp_path / "first", out)
        filesystem.left = steps
        try:
            run(topic.home, out, history=True)
            killed = False
        except KilledError:
            steps += 1
        filesystem.left = -1
        run(topic.home, out, history=True)
        assert tables(out, *NAMES) == wanted, steps
        assert not {"_new", "_old"} & {each.name for each in out.iterdir()}
    assert steps > 8


def test_what_another_attempt_of_a_task_writes_is_in_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(3), problems=True)
    topic.grow(60)
    topic.write()
    wanted = from_nothing(topic.home, tmp_path / "fresh", history=True)

    def killed(name: str, _: Any, schema: Any, place: OutputDirectory, part: str) -> int:
        place.writer(schema, name, f"{part}.parquet").close()
        raise KilledError

    here = local_engine()

    def each(
        function: Callable[[PartitionInput], TaskResult[Any]], logs: Sequence[PartitionInput]
    ) -> Iterator[TaskResult[Any]]:
        for log in logs:
            list(here(function, [log]))
            yield from here(function, [log])
            with monkeypatch.context() as patched:
                patched.setattr(group_offsets_task, "write_table", killed)
                with pytest.raises(KilledError):
                    list(here(function, [log]))

    run_job(group_offsets_run(LocalInputs([str(topic.home)]), history=True), str(tmp_path / "out"), each)
    assert tables(tmp_path / "out", *NAMES) == wanted
    assert not (tmp_path / "out" / "_new").exists()


def test_what_a_first_run_left_that_was_killed_is_in_no_way(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(3))
    topic.grow(60)
    topic.write()

    def killed(
        function: Callable[[PartitionInput], TaskResult[Any]], logs: Sequence[PartitionInput]
    ) -> Iterator[TaskResult[Any]]:
        yield from local_engine()(function, logs)
        raise KilledError

    with pytest.raises(KilledError):
        run_job(group_offsets_run(LocalInputs([str(topic.home)])), str(tmp_path / "out"), killed)
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["_new"]
    run(topic.home, tmp_path / "out")
    assert tables(tmp_path / "out") == from_nothing(topic.home, tmp_path / "fresh")
