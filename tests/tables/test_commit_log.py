"""The commit log: readers see one complete run, whatever kills a writer, and of overlapping runs one is committed."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from attrs import evolve, field, frozen
from pyarrow.fs import FileSelector

from kafka_msgs.errors import ConcurrentRunError, JobPathError, StorageError, UnseenFileError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.storage import Storage, StoredFile
from kafka_msgs.tables.commit_log import CommitLog, RunToken, WrittenFile
from kafka_msgs.tables.current_link import finish_commit, link_current
from kafka_msgs.tables.task_output import TaskOutput
from tests.support.committed_tables import committed_tables
from tests.support.s3_server import s3_process
from tests.support.table_readers import read_table
from tests.tables import commit_app

SECONDS = 100
KILLED = -signal.SIGKILL
PROCESSES = get_context("forkserver")
# The processes are forked from one that has imported everything, and started no thread.
PROCESSES.set_forkserver_preload([commit_app.__name__])


@frozen
class Place:
    """An output location, with the settings of its filesystem."""

    location: str
    settings: dict[str, str] = field(factory=dict)
    form: str = "parquet"

    @property
    def log(self) -> CommitLog:
        """The commit log there."""
        return CommitLog(Storage.at(self.location, FilesystemOptions.from_mapping(self.settings)))

    def start(self, run: str, change: int = -1, directory: str = "") -> BaseProcess:
        """Start a run that kills itself before a change."""
        arguments = (self.location, self.form, self.settings, run, change, directory)
        process = PROCESSES.Process(target=commit_app.main, args=arguments)
        process.start()
        return process

    def run(self, run: str, change: int = -1) -> int | None:
        """Run once, and return the exit status."""
        process = self.start(run, change)
        process.join(SECONDS)
        assert process.exitcode in (0, KILLED)
        return process.exitcode

    def run_seen(self) -> str:
        """Return the run whose rows a reader of the head sees, after checking that it sees all of them."""
        tables = committed_tables(self.location, self.settings)
        (run,) = {run_in(name, rows) for name, rows in tables.items()}
        return run

    def versions_seen(self) -> set[str]:
        """Return the runs whose rows readers see. The versions of the tables appear successively."""
        if self.form == "parquet":
            return {self.run_seen()}
        read = {name: read_table(self.form, f"{self.location}/{name}", self.settings) for name in ("offsets", "groups")}
        return {run_in(name, rows.to_pylist()) for name, rows in read.items()}


def run_in(table: str, rows: list[dict[str, Any]]) -> str:
    """Return the run in the rows of a table, after checking that it has all rows of one run."""
    if table == "offsets":
        assert sorted((row["n"], row["part"]) for row in rows) == [(n, n // 100) for n in range(300)]
    else:
        assert len(rows) == 3
    (run,) = {row["run"] for row in rows}
    return str(run)


@pytest.fixture(params=["disk", "s3", "delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty location."""
    if request.param != "s3":
        yield Place(str(tmp_path / "out"), form="parquet" if request.param == "disk" else request.param)
        return
    with s3_process() as server:
        server.store().create_dir("bucket")
        yield Place("s3a://bucket/out", server.settings)


def test_a_run_that_is_killed_at_any_change_is_seen_completely_or_not_at_all(place: Place) -> None:
    assert place.run("first") == 0
    before, change, seen = "first", 0, set()
    while place.run(f"killed {change}", change) == KILLED:
        now = place.run_seen()
        assert now in (before, f"killed {change}")
        # A run that is killed before its own commit has applied the one before.
        assert place.versions_seen() <= {before, now}
        seen.add((now == before, place.versions_seen() == {now}))
        before, change = now, change + 1
    assert {place.run_seen()} == place.versions_seen() == {f"killed {change}"}
    assert seen >= {(False, True), (True, True)}
    assert ((False, False) in seen) == (place.form != "parquet")
    assert change > 12
    log = evolve(place.log, grace=timedelta(0))
    log.expire()
    listed = {file.path for number in log.numbers() for file in log.snapshot(number).files()}
    if place.form == "parquet":
        assert {each.path for each in log.storage.list_files("data")} == listed
    assert len(log.numbers()) == 2
    assert place.run_seen() == f"killed {change}"


@pytest.mark.parametrize("count", [2, 4])
def test_one_of_overlapping_runs_is_committed_and_the_others_are_refused(
    place: Place, tmp_path: Path, count: int
) -> None:
    assert place.run("first") == 0
    directory = tmp_path / "waiting"
    directory.mkdir()
    processes = {f"run {number}": place.start(f"run {number}", directory=str(directory)) for number in range(count)}
    end = time.monotonic() + SECONDS
    while len(list(directory.iterdir())) < count and time.monotonic() < end:
        time.sleep(0.01)
    (directory / "go").touch()
    for process in processes.values():
        process.join(SECONDS)
    statuses = {run: process.exitcode for run, process in processes.items()}
    assert Counter(statuses.values()) == {0: 1, 3: count - 1}
    assert statuses[place.run_seen()] == 0
    assert place.versions_seen() == {place.run_seen()}
    assert place.log.numbers() == [1, 2]
    refusals = [(directory / run).read_text() for run, status in statuses.items() if status]
    assert all("another run has committed since it began" in text for text in refusals)


def files_of(output: TaskOutput) -> dict[str, list[WrittenFile]]:
    return {table: list(found.values()) for table, found in output.files.items()}


def written(log: CommitLog, *values: int) -> tuple[RunToken, dict[str, list[WrittenFile]]]:
    token = log.begin({"job": "test"}, log.head())
    output = TaskOutput.start(log.storage, token)
    output.append("rows", pa.table({"n": list(values)}))
    output.close()
    return token, files_of(output)


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    """An empty commit log on disk."""
    return CommitLog(Storage.at(str(tmp_path / "out")))


def test_a_run_that_is_slower_than_others_is_refused(log: CommitLog) -> None:
    slow = written(log, 0)
    for value in range(1, 6):
        log.commit(*written(log, value))
        evolve(log, grace=timedelta(0)).expire()
    assert log.numbers() == [4, 5]
    with pytest.raises(ConcurrentRunError, match="another run has committed since it began"):
        log.commit(*slow)
    assert committed_tables(str(log.storage)) == {"rows": [{"n": 5}]}


def test_a_run_that_takes_longer_than_the_grace_period_is_refused(log: CommitLog) -> None:
    late = written(log, 0)
    with pytest.raises(ConcurrentRunError, match="it took longer than the grace period"):
        evolve(log, grace=timedelta(0)).commit(*late)
    assert log.head() is None


def test_a_commit_whose_response_was_lost_is_a_success(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    token, files = written(log, 1)
    create = Storage.create

    def twice(storage: Storage, path: str, content: bytes) -> bool:
        create(storage, path, content)
        return create(storage, path, content)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "create", twice)
        assert log.commit(token, files).number == 1
    assert log.head() == log.snapshot(1)


def test_a_commit_whose_response_was_an_error_is_a_success_if_it_was_made(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Storage.create

    def broken(storage: Storage, path: str, content: bytes) -> bool:
        create(storage, path, content)
        raise StorageError(path=path, reason="the connection was closed")

    with monkeypatch.context() as patched:
        token, files = written(log, 1)
        patched.setattr(Storage, "create", broken)
        assert log.commit(token, files).number == 1
    late = written(log, 2)
    log.commit(*written(log, 3))
    with monkeypatch.context() as patched:
        patched.setattr(CommitLog, "_check_head", lambda *_: None)
        patched.setattr(Storage, "create", broken)
        with pytest.raises(StorageError, match="the connection was closed"):
            log.commit(*late)
    assert committed_tables(str(log.storage)) == {"rows": [{"n": 3}]}


def test_a_worker_with_another_disk_fails_in_its_first_task(log: CommitLog, tmp_path: Path) -> None:
    log.commit(*written(log, 1))
    token = log.begin({"job": "test"}, log.head())
    with pytest.raises(UnseenFileError, match="driver and workers do not share this location"):
        TaskOutput.start(Storage.at(str(tmp_path / "other")), token)
    # A worker may see an equal path on its own disk, with the token of an earlier run.
    shutil.copytree(tmp_path / "out", tmp_path / "copy", symlinks=True)
    other = log.begin({"job": "test"}, log.head())
    with pytest.raises(UnseenFileError):
        TaskOutput.start(Storage.at(str(tmp_path / "copy")), other)


@pytest.mark.parametrize("damage", ["missing", "shorter"])
def test_a_file_that_the_driver_does_not_see_as_written_is_refused(log: CommitLog, damage: str) -> None:
    log.commit(*written(log, 1))
    token, files = written(log, 2)
    (file,) = files["rows"]
    path = Path(log.storage.full_path(file.path))
    path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UnseenFileError, match="do not share this location"):
        log.commit(token, files)
    assert committed_tables(str(log.storage)) == {"rows": [{"n": 1}]}


def test_earlier_files_stay_if_the_next_commit_lists_them(log: CommitLog) -> None:
    first = log.commit(*written(log, 1))
    token, files = written(log, 2)
    (new,) = files["rows"]
    log.commit(token, {"rows": [*first.tables["rows"].values(), evolve(new, name="1.parquet")]})
    for value in range(3):
        log.commit(*written(log, value))
    assert evolve(log, grace=timedelta(0)).expire() == 3
    assert len(list(log.storage.list_files("data"))) == 2


def test_expiry_spares_runs_within_the_grace_period(log: CommitLog) -> None:
    token, files = written(log, 1)
    for value in range(4):
        log.commit(*written(log, value))
    # The first commit after this run began refuses it, but its files may still be written.
    assert log.expire() == 0
    assert log.numbers() == [1, 2, 3, 4]
    assert all(log.storage.read(each.path) for each in files["rows"])
    CommitLog(log.storage).check_visible(token)


@pytest.mark.parametrize("under", ["data", "_runs", "_commits"])
@pytest.mark.parametrize("is_late", [False, True])
def test_expiry_spares_a_run_that_begins_meanwhile(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch, under: str, is_late: bool
) -> None:
    for value in range(3):
        log.commit(*written(log, value))
    list_files = Storage.list_files
    begun: list[tuple[RunToken, dict[str, list[WrittenFile]]]] = []

    def listed(storage: Storage, path: str = "") -> Iterator[StoredFile]:
        found = list(list_files(storage, path))
        if path == under and not begun:
            # ``begin`` also lists the commits.
            with monkeypatch.context() as inner:
                inner.setattr(Storage, "list_files", list_files)
                begun.append(written(log, 3))
            found = found if is_late else list(list_files(storage, path))
        return iter(found)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "list_files", listed)
        log.expire()
    log.commit(*begun[0])
    assert committed_tables(str(log.storage)) == {"rows": [{"n": 3}]}


def test_expiry_spares_what_readers_of_a_replaced_commit_may_still_read(log: CommitLog) -> None:
    old = log.commit(*written(log, 0))
    for path in Path(str(log.storage)).rglob("*"):
        if path.is_file():
            os.utime(path, (1e9, 1e9))
    for value in (1, 2, 3):
        log.commit(*written(log, value))
    assert log.expire() == 0
    assert log.numbers() == [1, 2, 3, 4]
    log.check_files(old.files())


def test_expiry_by_two_runs_at_once_is_one_expiry(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in range(4):
        log.commit(*written(log, value))
    read, other = Storage.read, evolve(log, grace=timedelta(0))

    def raced(storage: Storage, path: str) -> bytes | None:
        with monkeypatch.context() as inner:
            inner.setattr(Storage, "read", read)
            other.expire()
        return read(storage, path)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "read", raced)
        log.expire()
    assert log.numbers() == [3, 4]
    assert committed_tables(str(log.storage)) == {"rows": [{"n": 3}]}


def test_expiry_leaves_no_directories_and_no_temporary_files(place: Place) -> None:
    log, filesystem = evolve(place.log, grace=timedelta(0)), place.log.storage.filesystem
    for value in range(3):
        log.storage.write(f"_commits/.{value}.json-of-a-killed-run", b"")
        place.log.commit(*written(place.log, value))
    time.sleep(1)
    place.log.commit(*written(place.log, 3))
    log.expire()
    runs = {log.snapshot(number).run for number in log.numbers()}
    for directory in ("_runs", "data"):
        inside = filesystem.get_file_info(FileSelector(log.storage.full_path(directory)))
        assert {info.base_name for info in inside} == runs
    assert [each.path for each in log.storage.list_files("_commits")] == [f"_commits/{n:020}.json" for n in (3, 4)]


def test_the_link_has_the_tables_of_the_head(log: CommitLog, tmp_path: Path) -> None:
    for value in (1, 2):
        log.commit(*written(log, value))
        link_current(log)
        assert ds.dataset(tmp_path / "out" / "current" / "rows").to_table().to_pylist() == [{"n": value}]


def test_a_link_in_a_directory_that_is_used_again_has_the_new_tables(log: CommitLog, tmp_path: Path) -> None:
    log.commit(*written(log, 1))
    link_current(log)
    for name in ("_commits", "_runs", "data"):
        shutil.rmtree(tmp_path / "out" / name)
    log.commit(*written(log, 2))
    link_current(log)
    assert ds.dataset(tmp_path / "out" / "current" / "rows").to_table().to_pylist() == [{"n": 2}]


def test_links_that_several_runs_make_at_once_are_complete(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.commit(*written(log, 1))
    symlink_to, rounds = Path.symlink_to, [2]

    def raced(path: Path, target: Path, **options: Any) -> None:
        symlink_to(path, target, **options)
        if rounds[0]:
            rounds[0] -= 1
            link_current(log)

    monkeypatch.setattr(Path, "symlink_to", raced)
    link_current(log)
    home = Path(str(log.storage))
    assert ds.dataset(home / "current" / "rows").to_table().to_pylist() == [{"n": 1}]
    assert not [each for each in (home / "snapshots").iterdir() if each.name.startswith(".")]


def test_the_link_of_a_later_commit_is_not_removed(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.commit(*written(log, 1))
    numbers = CommitLog.numbers

    def raced(own: CommitLog) -> list[int]:
        found = numbers(own)
        with monkeypatch.context() as inner:
            inner.setattr(CommitLog, "numbers", numbers)
            log.commit(*written(log, 2))
            link_current(log)
        return found

    link_current(log)
    with monkeypatch.context() as patched:
        patched.setattr(CommitLog, "numbers", raced)
        patched.setattr("kafka_msgs.tables.current_link.link_current", lambda _: None)
        finish_commit(log)
    assert ds.dataset(Path(str(log.storage)) / "current" / "rows").to_table().to_pylist() == [{"n": 2}]


def test_a_link_that_cannot_be_made_is_a_warning(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(1, "Operation not permitted")

    log.commit(*written(log, 1))
    monkeypatch.setattr(Path, "symlink_to", refused)
    link_current(log)
    assert "the link current was not updated" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"number": 1}',
        b'{"number": 1, "run": "a", "identity": {}, "tables": []}',
        b'{"number": 1, "run": "a", "identity": null, "tables": {}}',
        b'{"number": 1, "run": "a", "identity": {}, "tables": {"rows": [{"path": "a", "later": 1}]}}',
        b'{"number": 2, "run": "a", "identity": {}, "tables": {}}',
    ],
)
def test_a_damaged_manifest_is_an_error(log: CommitLog, content: bytes) -> None:
    log.commit(*written(log, 1))
    log.storage.write("_commits/00000000000000000001.json", content)
    with pytest.raises(JobPathError, match="it is not a manifest"):
        log.head()
