"""Job tables in formats other than Parquet: one version per run, and no output of a failed run."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafka_msgs.report import Report
from kafka_msgs.spark.jobs.job import DataFrameJob, Tables, TableStep, run
from kafka_msgs.tables import get_format


def numbers(tables: Tables) -> DataFrame:
    return tables["rows"].select(
        "id",
        "name",
        sf.timestamp_millis(sf.col("id") * 40_000_000).alias("time"),
        sf.array(sf.struct("id")).alias("all"),
    )


def refused(tables: Tables) -> Report:
    raise ZeroDivisionError


JOB = DataFrameJob(
    name="numbers",
    summary="Numbers.",
    steps=(
        TableStep("numbers", numbers, partition_by=("name",), keys=("id",)),
        TableStep("times", lambda tables: tables["numbers"].drop("all"), time="time"),
    ),
    report=lambda tables: Report(str(tables["times"].count()), ()),
)


def rows(spark: SparkSession, first: int, last: int, renamed: int) -> dict[str, DataFrame]:
    name = sf.when(sf.col("id") == renamed, "new").otherwise("old").alias("name")
    return {"rows": spark.range(first, last).select("id", name)}


def test_a_later_run_merges_by_key(spark: SparkSession, tmp_path: Path) -> None:
    for bounds in ((0, 10, -1), (2, 12, 5)):
        assert run(JOB, rows(spark, *bounds), str(tmp_path), table_format="delta").report.title == "10"
    found = get_format("delta").read(str(tmp_path / "numbers")).read_all().sort_by("id").to_pylist()
    assert [(row["id"], row["name"], row["all"]) for row in found] == [
        (number, "new" if number == 5 else "old", [{"id": number}]) for number in range(2, 12)
    ]
    merged = DeltaTable(tmp_path / "numbers").history(1)[0]["operationMetrics"]
    assert [merged[f"num_target_rows_{what}"] for what in ("inserted", "updated", "deleted")] == [2, 1, 2]
    times = get_format("delta").read(str(tmp_path / "times")).read_all().to_pylist()
    assert len(times) == 10
    assert all(row["day"] == row["time"].date() for row in times)
    assert DeltaTable(tmp_path / "times").metadata().partition_columns == ["day"]


def test_a_run_that_fails_leaves_the_last_versions(spark: SparkSession, tmp_path: Path) -> None:
    run(JOB, rows(spark, 0, 3, -1), str(tmp_path), table_format="delta")
    failing = DataFrameJob(name=JOB.name, summary=JOB.summary, steps=JOB.steps, report=refused)
    with pytest.raises(ZeroDivisionError):
        run(failing, rows(spark, 0, 9, -1), str(tmp_path), table_format="delta")
    assert [DeltaTable(tmp_path / name).version() for name in ("numbers", "times")] == [0, 0]
    run(JOB, rows(spark, 0, 4, -1), str(tmp_path), table_format="delta")
    assert get_format("delta").read(str(tmp_path / "times")).read_all().num_rows == 4
