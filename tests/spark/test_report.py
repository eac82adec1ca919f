"""Reports of DataFrames, and of runs of jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_msgs import __version__
from kafka_msgs.report import Report, Table
from kafka_msgs.spark.jobs.job import Job, run
from kafka_msgs.spark.reporting import time_of

TABLE = Table("Lags", ("group", "lag"), (("tea", 1234567), ("café", None)))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_in_tables_are_in_utc_whatever_the_zone_of_the_session(spark: SparkSession, zone: str) -> None:
    """One of the moments is, in UTC, at an hour that clocks in New York skip."""
    moments = {
        datetime(2026, 1, 2, 3, 4, 5): "2026-01-02 03:04:05",
        datetime(2026, 3, 8, 2, 30): "2026-03-08 02:30:00",
        datetime(2026, 7, 1, 23, 59, 59, 999_000): "2026-07-01 23:59:59",
        datetime(1969, 12, 31, 23, 59, 59, 999_000): "1969-12-31 23:59:59",
    }
    rows = [(round(each.replace(tzinfo=UTC).timestamp() * 1000),) for each in moments]
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        shown = (
            spark.createDataFrame([*rows, (None,), (2**63 - 1,), (-(2**63) + 1,)], "at bigint")
            .select(time_of("at"))
            .collect()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [row["at"] for row in shown] == [*moments.values(), None, None, None]


def test_a_run_shows_what_it_read_when_and_by_which_version(tmp_path: Path) -> None:
    job = Job(name="none", summary="Nothing.", steps=(), report=lambda _: Report("Nothing", (TABLE,)))
    outcome = run(job, {}, str(tmp_path / "out"), facts={"input": "logs", "cluster": "abc"})
    facts = dict(outcome.report.facts)
    assert facts.pop("made").endswith(" UTC")
    assert facts == {"input": "logs", "cluster": "abc", "times": "UTC", "kafka-msgs": __version__}
    assert "<dt>cluster</dt><dd>abc</dd>" in outcome.files[0].read_text(encoding="utf-8")
