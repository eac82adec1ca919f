"""Reports of job runs."""

from __future__ import annotations

from pathlib import Path

from kafka_msgs import __version__
from kafka_msgs.report import Report, Table
from kafka_msgs.spark.jobs.job import DataFrameJob, run

TABLE = Table("Lags", ("group", "lag"), (("tea", 1234567), ("café", None)))


def test_a_run_shows_what_it_read_when_and_by_which_version(tmp_path: Path) -> None:
    job = DataFrameJob(name="none", summary="Nothing.", steps=(), report=lambda _: Report("Nothing", (TABLE,)))
    outcome = run(job, {}, str(tmp_path / "out"), facts={"input": "logs", "cluster": "abc"})
    facts = dict(outcome.report.facts)
    assert facts.pop("made").endswith(" UTC")
    assert facts == {"input": "logs", "cluster": "abc", "times": "UTC", "kafka-msgs": __version__}
    assert "<dt>cluster</dt><dd>abc</dd>" in outcome.files[0].read_text(encoding="utf-8")
