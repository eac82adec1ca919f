"""``kafka-msgs pipeline`` in one process: continued runs, in every format, and the output."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.cli.command_group import command
from kafka_msgs.engines.job import job_tables
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog, RunToken, Snapshot
from kafka_msgs.tables.job_tables import JobTables
from tests.support.random_topic import RandomTopic
from tests.support.recordings import GROUP_LOGS
from tests.support.table_readers import read_table
from tests.support.truncated_logs import copy_of_earlier

TABLES = {
    "group-state": ("descriptions", "groups", "members", "assignments", "topology", "problems"),
    "topic-profile": ("batches", "profile", "problems"),
}


def run(job: str, logs: Path, out: Path, *options: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(command, ["pipeline", job, str(logs), "--out", str(out), "--engine", "local", *options])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(params=TABLES)
def job(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
    # pyiceberg reads a null list of structs as an empty list.
    plain = ({name: value or None for name, value in row.items()} for row in rows)
    return sorted(str(sorted(row.items())) for row in plain)


def parquet(job: str, out: Path) -> dict[str, list[str]]:
    return {
        name: sorted_rows(ds.dataset(out / "current" / name, partitioning="hive").to_table().to_pylist())
        for name in TABLES[job]
    }


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_a_second_run_adds_what_is_new(tmp_path: Path, job: str, form: str) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    status, said, _ = run(job, copy_of_earlier(GROUP_LOGS, logs, 0.9), out, "--format", form)
    assert status == 0, said
    status, said, errors = run(job, copy_of_earlier(GROUP_LOGS, logs, 1), out, "--format", form)
    assert (status, errors) == (0, "")
    assert run(job, logs, tmp_path / "fresh")[:2] == (0, said.replace(str(out), str(tmp_path / "fresh")))
    fresh = parquet(job, tmp_path / "fresh")
    if form == "parquet":
        assert parquet(job, out) == fresh
    else:
        found = {name: read_table(form, str(out / name)).to_pylist() for name in TABLES[job]}
        assert {name: sorted_rows(rows) for name, rows in found.items()} == fresh
    assert sum(map(len, fresh.values())) > 20


def test_a_report_has_a_place_of_its_own(tmp_path: Path, job: str) -> None:
    status, said, _ = run(job, GROUP_LOGS, tmp_path / "out", "--report", str(tmp_path / "report"))
    assert status == 0
    assert str(tmp_path / "report" / "report.html") in said.splitlines()
    data = json.loads((tmp_path / "report" / "report.json").read_text())
    assert data["facts"]["input"] == str(GROUP_LOGS)
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_partition_that_is_read_from_its_start_again_is_named(tmp_path: Path) -> None:
    topic = RandomTopic(tmp_path / "logs", Random(1), far=False)
    topic.grow(20)
    run("topic-profile", topic.write(), tmp_path / "out")
    topic.recreate()
    topic.grow(20)
    status, _, errors = run("topic-profile", topic.write(), tmp_path / "out")
    assert (status, errors) == (0, "events-0 was read from its start again: the topic was made anew\n")


def refusals(tmp_path: Path) -> Iterator[tuple[list[str], str]]:
    """Yield rejected commands and their messages, after a run of group-state over the same logs."""
    nothing = "it exists and is not an empty directory; nothing is overwritten"
    state = tmp_path / "state"
    yield ["topic-profile", str(GROUP_LOGS), "--out", str(state)], f"{state}: {nothing}"
    yield ["group-offsets", str(GROUP_LOGS), "--out", str(state)], f"{state}: {nothing}"
    yield ["group-state", str(tmp_path / "copy"), "--out", str(state)], f"{state}: it holds a run with other inputs"
    yield (
        ["group-state", str(GROUP_LOGS), "--out", str(state), "--format", "delta"],
        f"{state}: it holds a run with other format",
    )
    yield (
        ["group-state", str(GROUP_LOGS / "orders-0"), "--out", str(tmp_path / "new")],
        "there is no partition of __consumer_offsets in it",
    )
    yield ["topic-profile", "s3://a/b", "--out", str(tmp_path / "new")], "the local engine reads directories of this"
    yield ["topic-profile", str(GROUP_LOGS), "--out", "x", "--master", "local"], "--master and --conf are for --engine"


def test_what_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    shutil.copytree(GROUP_LOGS, tmp_path / "copy")
    assert run("group-state", GROUP_LOGS, tmp_path / "state")[0] == 0
    for arguments, sentence in refusals(tmp_path):
        done = CliRunner().invoke(command, ["pipeline", *arguments, "--engine", "local"])
        assert done.exit_code in (1, 2)
        assert sentence in done.output
        assert "Error: " in done.output
    assert not (tmp_path / "new").exists()


def broken_outputs(home: Path) -> Iterator[tuple[list[str], str]]:
    """Yield arguments that name an output which cannot be written, with the reason."""
    (home / "file").touch()
    (home / "dangling").symlink_to("nowhere")
    yield ["--out", str(home / "file" / "x")], f"{home / 'file' / 'x'}/_runs"
    yield ["--out", str(home / "dangling")], f"{home / 'dangling'}: File exists"
    yield ["--out", "s3:/x"], "s3:///x: there is no bucket or container in it"
    yield ["--out", str(home / "new"), "--report", str(home / "file")], "is a file"


@pytest.mark.parametrize("number", range(4))
def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path, number: int) -> None:
    arguments, sentence = [*broken_outputs(tmp_path)][number]
    done = CliRunner().invoke(command, ["pipeline", "group-state", str(GROUP_LOGS), "--engine", "local", *arguments])
    assert done.exit_code == (2 if "--report" in arguments else 1)
    assert isinstance(done.exception, SystemExit)
    assert sentence in done.output
    assert not (tmp_path / "new").exists()


def test_the_tables_of_a_commit_are_listed_with_their_files(tmp_path: Path) -> None:
    assert run("group-state", GROUP_LOGS, tmp_path / "out")[0] == 0
    done = CliRunner().invoke(command, ["tables", str(tmp_path / "out")])
    words = [line.split()[0] for line in done.output.splitlines() if line.split()]
    assert sorted(words[-6:]) == sorted(TABLES["group-state"])
    done = CliRunner().invoke(command, ["tables", str(tmp_path / "out"), "--files", "groups"])
    files = ds.dataset(done.output.splitlines(), format="parquet")
    assert files.count_rows() == ds.dataset(tmp_path / "out" / "current" / "groups").count_rows() > 0
    for arguments, reason in (([str(tmp_path)], "no commit"), ([str(tmp_path / "out"), "--files", "x"], "no table x")):
        done = CliRunner().invoke(command, ["tables", *arguments])
        assert done.exit_code == 1
        assert reason in done.output


def test_a_run_that_another_one_overtakes_has_status_3_or_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["pipeline", "group-state", str(GROUP_LOGS), "--out", str(tmp_path / "out"), "--engine", "local"]
    commit, overtaken = CommitLog.commit, list[bool]()

    def late(log: CommitLog, token: RunToken, tables: Any) -> Snapshot:
        if not overtaken:
            overtaken.append(True)
            assert CliRunner().invoke(command, arguments).exit_code == 0
        return commit(log, token, tables)

    monkeypatch.setattr(CommitLog, "commit", late)
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 3
    assert "another run has committed since it began" in done.output
    overtaken.clear()
    done = CliRunner().invoke(command, [*arguments, "--wait"])
    assert done.exit_code == 0
    assert "it is repeated" in done.output
    assert CommitLog(Storage.at(str(tmp_path / "out"))).numbers() == [1, 2, 3]


def test_nothing_that_a_run_saves_or_prints_has_the_keys_of_a_uri(tmp_path: Path) -> None:
    def tables(*paths: str) -> JobTables:
        return job_tables(GROUP_STATE, JobInputs(paths, (), ()), str(tmp_path))

    made = tables("s3a://AKID:hush@logs/x?session_token=hush", "file:/a")
    assert made.find_base() is None
    assert made.identity["inputs"] == ["/a", "s3://logs/x"]
    made.commit(made.begin(None), {})
    assert tables("s3://logs/x", "/a").find_base() is not None
    assert not any(b"hush" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
