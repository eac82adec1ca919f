"""Job tables in formats other than Parquet: one version per run, and no output of a failed run."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafka_msgs.report import Report
from kafka_msgs.spark.jobs.job import DataFrameJob, Tables, TableStep, run
from tests.support.table_readers import read_table


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
        TableStep("numbers", numbers, partition_by=("name",)),
        TableStep("times", lambda tables: tables["numbers"].drop("all")),
    ),
    report=lambda tables: Report(str(tables["times"].count()), ()),
)


def rows(spark: SparkSession, first: int, last: int, renamed: int) -> dict[str, DataFrame]:
    name = sf.when(sf.col("id") == renamed, "new").otherwise("old").alias("name")
    return {"rows": spark.range(first, last).select("id", name)}


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_later_run_adds_a_version(spark: SparkSession, tmp_path: Path, form: str) -> None:
    for bounds in ((0, 10, -1), (2, 12, 5)):
        assert run(JOB, rows(spark, *bounds), str(tmp_path), table_format=form).report.title == "10"
    found = read_table(form, str(tmp_path / "numbers")).sort_by("id").to_pylist()
    assert [(row["id"], row["name"], row["all"]) for row in found] == [
        (number, "new" if number == 5 else "old", [{"id": number}]) for number in range(2, 12)
    ]
    times = read_table(form, str(tmp_path / "times")).sort_by("id").to_pylist()
    assert [row["time"].timestamp() for row in times] == [number * 40_000 for number in range(2, 12)]


def test_a_run_that_fails_leaves_the_last_versions(spark: SparkSession, tmp_path: Path) -> None:
    run(JOB, rows(spark, 0, 3, -1), str(tmp_path), table_format="delta")
    failing = DataFrameJob(name=JOB.name, summary=JOB.summary, steps=JOB.steps, report=refused)
    with pytest.raises(ZeroDivisionError):
        run(failing, rows(spark, 0, 9, -1), str(tmp_path), table_format="delta")
    assert [DeltaTable(tmp_path / name).version() for name in ("numbers", "times")] == [0, 0]
    run(JOB, rows(spark, 0, 4, -1), str(tmp_path), table_format="delta")
    assert read_table("delta", str(tmp_path / "times")).num_rows == 4
