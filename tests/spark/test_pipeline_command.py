"""``kafka-msgs pipeline`` in the active session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_msgs.cli.command_group import command
from kafka_msgs.cli.spark_session import one_sentence
from tests.support.recordings import END_OFFSETS, GROUP_LOGS, LOGS
from tests.support.table_readers import read_table


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
    assert said.splitlines()[-6:] == [
        str(out / name)
        for name in ("report.html", "report.json", "report.prom", "lag.svg", "lag-time.svg", "commits.svg")
    ]
    offsets = out / "current" / "offsets"
    assert {path.name for path in offsets.parent.iterdir()} == {"offsets", "pending", "groups", "problems"}
    before = sorted(path.read_bytes() for path in offsets.iterdir())
    status, again = run("group-offsets", str(GROUP_LOGS), "--end-offsets", str(END_OFFSETS), "--out", str(out))
    assert (status, again) == (0, said)
    assert sorted(path.read_bytes() for path in offsets.iterdir()) == before
    status, said = run("group-offsets", str(GROUP_LOGS), "--history", "--out", str(out))
    assert (status, said) == (1, f"Error: {out}: it holds a run with other history (no); nothing is overwritten\n")


@pytest.mark.usefixtures("spark")
def test_wire_compat_runs_over_the_messages_asked_for(tmp_path: Path) -> None:
    status, said = run("wire-compat", "--seeds", "1", "--message", "OffsetCommitKey", "--out", str(tmp_path / "out"))
    assert status == 0, said
    assert "Mismatches" not in said
    assert "Compared with the reference" in said


def test_topic_profile_writes_tables_by_topic_and_a_report(tmp_path: Path, spark: SparkSession) -> None:
    out, other = tmp_path / "out", tmp_path / "iceberg"
    status, said = run("topic-profile", str(GROUP_LOGS / "orders-0"), "--out", str(out))
    assert status == 0, said
    assert {path.name for path in (out / "current" / "profile").iterdir() if path.is_dir()} == {"topic=orders"}
    assert said.splitlines()[-5:] == [
        str(out / name) for name in ("report.html", "report.json", "report.prom", "bytes.svg", "records.svg")
    ]
    status, said = run("topic-profile", str(GROUP_LOGS / "orders-0"), "--format", "iceberg", "--out", str(other))
    assert status == 0, said
    for table in ("batches", "profile", "problems"):
        expected = spark.read.parquet(str(out / "current" / table)).toArrow().to_pylist()
        found = read_table("iceberg", str(other / table)).to_pylist()
        plain = [{name: row[name] for name in each} for row, each in zip(found, expected, strict=True)]
        assert sorted(plain, key=str) == sorted(expected, key=str)


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["capture-report", "nowhere.pcap", "--out", "{new}"], "nowhere.pcap: there is no capture"),
        (["group-state", "nowhere", "--out", "{new}"], "nowhere: is not a directory"),
        (
            ["group-offsets", "{orders}", "--out", "{new}"],
            "{orders}: there is no partition of __consumer_offsets in it",
        ),
        (
            ["topic-profile", "{orders}", "--out", "{groups}"],
            "{groups}: it exists and is not an empty directory; nothing is overwritten",
        ),
        (
            ["topic-profile", "{orders}", "--format", "delta", "--out", "hdfs://x/y", "--report", "{new}"],
            "hdfs://x/y: tables of delta are written to a directory, or to s3, s3a, s3n, abfs, abfss, gs, gcs without ",
        ),
        (
            ["topic-profile", "{orders}", "--format", "iceberg", "--out", "{groups}"],
            "{groups}: it exists and is not an empty directory; nothing is overwritten",
        ),
        (
            ["group-offsets", "{groups}", "--end-offsets", "{wrong}", "--out", "{new}"],
            "{wrong}, line 1: expected topic:partition:offset",
        ),
        (["topic-profile", "{orders}", "--out", "{new}", "--master", "nowhere"], "nowhere: local, local[4], "),
        (["wire-compat", "--message", "OffsetComit", "--out", "{new}"], "'OffsetComit'"),
        (["group-state", "{groups}", "--out", "{new}", "--conf", "spark.x"], "spark.x: NAME=VALUE was expected"),
    ],
)
def test_arguments_are_checked_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    def started(*_: object) -> None:
        raise AssertionError("Spark was started")

    for module in ("commands.pipeline", "log_job"):
        monkeypatch.setattr(f"kafka_msgs.cli.{module}.session_for", started)
    (tmp_path / "wrong").write_text("orders 0 1")
    places = {
        "new": tmp_path / "new",
        "groups": GROUP_LOGS,
        "orders": GROUP_LOGS / "orders-0",
        "wrong": tmp_path / "wrong",
    }
    status, said = run(*(argument.format(**places) for argument in arguments))
    assert status in (1, 2), said
    assert sentence.format(**places) in said
    assert said.count("Error: ") == 1


def pipeline(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process, without a Spark session."""
    return subprocess.run(
        [sys.executable, "-m", "kafka_msgs", "pipeline", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_without_java_there_is_one_sentence(tmp_path: Path) -> None:
    done = pipeline(
        "topic-profile", str(GROUP_LOGS), "--out", str(tmp_path / "out"), "--engine", "spark",
        PATH=str(tmp_path), JAVA_HOME=str(tmp_path),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: kafka-msgs pipeline needs Java 17 or later: set JAVA_HOME, or put java on the PATH\n"
    )


@pytest.mark.usefixtures("spark")
def test_an_error_of_a_worker_is_one_sentence(tmp_path: Path, spark: SparkSession) -> None:
    segment = tmp_path / f"{0:020}.log"
    data = bytearray((LOGS / "codecs-0" / segment.name).read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    frame = spark.read.format("kafka-log").options(mode="FAILFAST").load(str(tmp_path))
    with pytest.raises(click.ClickException) as raised, one_sentence():
        frame.collect()
    assert raised.value.message.startswith(f"{segment} at byte 0: the checksum is ")
    assert "\n" not in raised.value.message


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    status, said = run("group-state", str(GROUP_LOGS), "--out", str(tmp_path / "out"), "--engine", "spark")
    assert status == 1
    assert said == "Error: kafka-msgs pipeline needs pyspark: pip install 'kafka-msgs[pipeline]'\n"
