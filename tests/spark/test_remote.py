"""Spark sources and jobs on an S3 server with keys: session settings, byte ranges, and vanishing objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyiceberg.catalog
import pytest
from click.testing import CliRunner
from pyarrow import fs
from pyiceberg.utils.config import Config
from pyspark.sql import SparkSession

from kafka_msgs.cli.command_group import command
from kafka_msgs.spark import count_records, register
from kafka_msgs.spark.session import session_settings
from tests.support.committed_tables import committed_rows, committed_tables
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.s3_server import KEYS, S3Server, s3_process, s3_server
from tests.support.table_readers import read_table

NAME = f"{0:020}.log"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server whose bucket ``logs`` contains the log directory of groups and one partition."""
    with s3_server() as made:
        store = made.store()
        store.create_dir("logs")
        fs.copy_files(str(GROUP_LOGS), "logs/groups", fs.LocalFileSystem(), store)
        fs.copy_files(str(LOGS / "codecs-0"), "logs/codecs/codecs-0", fs.LocalFileSystem(), store)
        yield made


@pytest.fixture
def with_settings(spark: SparkSession, server: S3Server) -> Iterator[SparkSession]:
    """The session, configured with the server's settings."""
    for name, value in server.settings.items():
        spark.conf.set(f"spark.hadoop.{name}", value)
    register(spark)
    yield spark
    for name in server.settings:
        spark.conf.unset(f"spark.hadoop.{name}")
    register(spark)
    server.vanished.clear()


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server in a separate process with an empty bucket, known to the session and pyiceberg's default catalog."""
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    with s3_process() as made:
        made.store().create_dir("tables")
        for name, value in made.settings.items():
            spark.conf.set(f"spark.hadoop.{name}", value)
        yield made
        for name in made.settings:
            spark.conf.unset(f"spark.hadoop.{name}")


def pipeline(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(command, ["pipeline", *arguments])
    assert done.exit_code == status, done.output
    return done.output


def test_settings_of_the_session_reach_tasks_and_are_not_shown(
    with_settings: SparkSession, server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.sent.clear()
    frame = with_settings.read.format("kafka-log").option("columns", "file").load("s3a://logs/codecs")
    rows = frame.collect()
    assert len(rows) == count_records(with_settings, str(LOGS / "codecs-0"))
    segments = [file for file in (LOGS / "codecs-0").glob("*.log") if file.stat().st_size]
    assert {name: size for name, size in server.sent.items() if name.endswith(".log")} == {
        f"/logs/codecs/codecs-0/{file.name}": file.stat().st_size for file in segments
    }
    frame.explain(extended=True)
    assert not any(secret in capsys.readouterr().out for secret in KEYS.values())
    assert not server.refused


def test_options_are_enough_and_a_registered_setting_is_replaced(spark: SparkSession, server: S3Server) -> None:
    frame = spark.read.format("kafka-log").options(columns="offset", **server.settings).load("s3a://logs/codecs")
    assert frame.count() == count_records(spark, "s3a://logs/codecs", **server.settings)
    register(spark, settings=server.settings)
    assert count_records(spark, "s3a://logs/codecs") == frame.count()
    register(spark)
    assert not server.refused


def test_settings_of_hadoop_count_unless_they_are_its_own_defaults(spark: SparkSession) -> None:
    conf: Any = spark.sparkContext._jsc
    conf.hadoopConfiguration().set("fs.s3a.endpoint.region", "eu-west-1")
    try:
        assert session_settings(spark).get("fs.s3a.endpoint.region") == "eu-west-1"
        assert session_settings(spark).get("fs.s3a.path.style.access") is None
    finally:
        conf.hadoopConfiguration().unset("fs.s3a.endpoint.region")


@pytest.mark.usefixtures("with_settings")
def test_a_job_reads_a_bucket_and_writes_to_it(server: S3Server, tmp_path: Path) -> None:
    local = pipeline("group-offsets", str(GROUP_LOGS), "--out", str(tmp_path / "out"))
    remote = pipeline("group-offsets", "s3a://logs/groups", "--out", "s3a://logs/out of groups")
    # The ages of unconsumed records are available only for local logs.
    groups, below = (shown.partition("Lag and trend of each group") for shown in (local, remote))
    assert groups[0] == below[0]
    named = [line for line in remote.splitlines() if line.startswith("s3a://logs/out of groups/report.")]
    assert [Path(line).name for line in named] == ["report.html", "report.json", "report.prom"]
    written = committed_rows("s3a://logs/out of groups", "offsets", server.settings)
    assert len(written) == ds.dataset(tmp_path / "out" / "current" / "offsets", format="parquet").count_rows() > 10
    page = server.store().open_input_file("logs/out of groups/report.html").read().decode()
    assert "s3a://logs/groups" in page
    assert not any(secret in page for secret in KEYS.values())


@pytest.mark.usefixtures("with_settings")
def test_a_segment_that_vanishes_is_a_row_of_problems(server: S3Server) -> None:
    server.vanished.add(f"/logs/groups/orders-0/{NAME}")
    pipeline("topic-profile", "s3a://logs/groups/orders-*", "--out", "s3a://logs/profile", status=1)
    (row,) = committed_rows("s3a://logs/profile", "problems", server.settings)
    assert "deleted after the read was planned" in str(row)
    assert f"s3://logs/groups/orders-0/{NAME}" in str(row)
    assert committed_rows("s3a://logs/profile", "profile", server.settings)


@pytest.mark.usefixtures("with_settings")
def test_a_job_goes_on_from_a_run_in_a_bucket(server: S3Server) -> None:
    def rows() -> dict[str, list[str]]:
        found = committed_tables("s3a://logs/again", server.settings)
        return {name: sorted(map(repr, each)) for name, each in found.items()}

    said = pipeline("topic-profile", "s3a://logs/groups", "--out", "s3a://logs/again")
    before = rows()
    assert len(before["batches"]) == 121
    assert pipeline("topic-profile", "s3a://logs/groups", "--out", "s3a://logs/again") == said
    assert rows() == before


def test_a_bucket_that_refuses_a_job_is_one_sentence(with_settings: SparkSession, tmp_path: Path) -> None:
    with_settings.conf.set("spark.hadoop.fs.s3a.secret.key", "another-one")
    done = CliRunner().invoke(command, ["pipeline", "group-state", "s3a://logs/groups", "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert done.output.startswith("Error: When getting information for key 'groups' in bucket 'logs'")
    assert done.output.count("\n") == 1
    assert "another-one" not in done.output


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_tables_of_a_format_are_in_a_bucket_and_a_second_run_goes_on(
    tables: S3Server, tmp_path: Path, form: str
) -> None:
    pipeline("group-state", str(GROUP_LOGS), "--out", str(tmp_path / "out"))
    asked = ("group-state", str(GROUP_LOGS), "--out", f"s3a://tables/{form}", "--format", form)
    for _ in range(2):
        pipeline(*asked)
        for name in ("groups", "members"):
            place = f"s3a://tables/{form}/{name}"
            found = read_table(form, place, tables.settings)
            wanted = ds.dataset(tmp_path / "out" / "current" / name, partitioning="hive").to_table(columns=["group"])
            assert sorted(found["group"].to_pylist()) == sorted(wanted["group"].to_pylist())
    names = {info.base_name for info in tables.store().get_file_info(fs.FileSelector(f"tables/{form}"))}
    assert {"groups", "members", "report.html", "_commits"} <= names


@pytest.mark.parametrize("out", ["s3a://tables/x?region=us-east-1", "hdfs://host/x", "webhdfs://host/x"])
def test_formats_are_for_stores_that_their_libraries_know(spark: SparkSession, out: str) -> None:
    done = CliRunner().invoke(
        command, ["pipeline", "group-offsets", str(GROUP_LOGS), "--out", out, "--format", "delta"]
    )
    assert done.exit_code == 1
    assert "tables of delta are written to a directory, or to s3, s3a, s3n, abfs, abfss, gs, gcs" in done.output
