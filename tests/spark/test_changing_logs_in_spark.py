"""Random logs that change between runs, and replicas on three brokers: Spark tasks give the answers of one process."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.engines.spark import spark_engine
from tests.engines.test_replicas import REPLICAS_OF
from tests.support.committed_tables import committed_tables
from tests.support.job_answers import JOBS, comparable, differences
from tests.support.offsets_topic import OffsetsTopic


@pytest.mark.parametrize("seed", range(3))
def test_answers_about_random_logs_are_the_same(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    assert list(differences(tmp_path, seed, [local_engine(), spark_engine(spark)])) == []


@pytest.mark.parametrize("kind", REPLICAS_OF)
def test_spark_reads_the_replicas_that_one_process_reads(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    topic = OffsetsTopic(tmp_path, Random(9))
    topic.grow(40)
    REPLICAS_OF[kind](tmp_path, topic)
    tables = []
    for number, engine in enumerate((local_engine(), spark_engine(spark))):
        out = str(tmp_path / f"out-{number}")
        run_job(JOBS["offsets"], JobInputs.at([str(tmp_path / "broker-*")]), out, engine)
        tables.append(comparable(committed_tables(out)))
    assert tables[0] == tables[1]
    assert tables[0]["offsets"]
