"""``kafka-msgs pipeline``, in the session that is there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_msgs.cli.group import command
from tests.support.recordings import END_OFFSETS, GROUP_LOGS


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, ["pipeline", *arguments])
    return done.exit_code, done.output


@pytest.mark.usefixtures("spark")
def test_group_offsets_prints_lags_of_empty_groups_and_where_the_report_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, said = run("group-offsets", str(GROUP_LOGS), "--end-offsets", str(END_OFFSETS), "--out", str(out))
    assert status == 0, said
    lines = [line.split() for line in said.splitlines()]
    assert ["audit", "classic", "Empty", "2", "0", "2", "12"] in [words[:7] for words in lines]
    assert said.splitlines()[-3:] == [str(out / name) for name in ("report.html", "lag.png", "commits.png")]
    assert {path.name for path in out.iterdir() if path.is_dir()} == {
        "log", "history", "offsets", "pending", "groups", "problems",
    }  # fmt: skip
    status, said = run("group-offsets", str(GROUP_LOGS), "--out", str(out))
    assert (status, said) == (1, f"Error: {out}: is there already, and nothing is written over\n")


@pytest.mark.usefixtures("spark")
def test_wire_compat_runs_over_the_messages_asked_for(tmp_path: Path) -> None:
    status, said = run("wire-compat", "--seeds", "1", "--message", "OffsetCommitKey", "--out", str(tmp_path / "out"))
    assert status == 0, said
    assert "Mismatches" not in said
    assert "Compared with the reference" in said


@pytest.mark.usefixtures("spark")
def test_topic_profile_writes_tables_by_topic_and_a_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, said = run("topic-profile", str(GROUP_LOGS / "orders-0"), "--out", str(out))
    assert status == 0, said
    assert {path.name for path in (out / "profile").iterdir() if path.is_dir()} == {"topic=orders"}
    assert said.splitlines()[-3:] == [str(out / name) for name in ("report.html", "bytes.png", "records.png")]


@pytest.mark.usefixtures("spark")
def test_capture_report_tells_what_was_asked(tmp_path: Path) -> None:
    capture = GROUP_LOGS.parents[1] / "packets" / "shop.pcapng"
    report = tmp_path / "report"
    status, said = run(
        "capture-report", str(capture), "--any-port", "--out", str(tmp_path / "out"), "--report", str(report)
    )
    assert status == 0, said
    assert "Fetch" in said
    assert (report / "report.html").is_file()


@pytest.mark.usefixtures("spark")
def test_capture_that_is_not_there_is_named(tmp_path: Path) -> None:
    status, said = run("capture-report", "nowhere.pcap", "--out", str(tmp_path / "out"))
    assert (status, said) == (1, "Error: nowhere.pcap: is not there\n")


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    status, said = run("group-state", str(GROUP_LOGS), "--out", str(tmp_path / "out"))
    assert status == 1
    assert said == "Error: kafka-msgs pipeline needs pyspark: pip install 'kafka-msgs[pipeline]'\n"


def test_settings_of_spark_have_a_name_and_a_value(tmp_path: Path) -> None:
    status, said = run("group-state", str(GROUP_LOGS), "--out", str(tmp_path / "out"), "--conf", "spark.x")
    assert status == 2
    assert "spark.x: NAME=VALUE was expected" in said


@pytest.mark.usefixtures("spark")
def test_input_without_the_offsets_topic_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    status, said = run("group-state", str(GROUP_LOGS / "orders-0"), "--out", str(tmp_path / "out"))
    assert status == 1
    assert said.endswith("there is no partition of __consumer_offsets in it\n")
