"""Spark, ``kafka_msgs.log`` and Kafka's own classes produce equal tables from the same files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.big_directory import CONTENTS, write_directory
from tests.support.digests import by_kafka, by_library, by_spark, records_in
from tests.support.recordings import GROUP_LOGS, LOGS

RECORDED = {"codecs": LOGS, "groups": GROUP_LOGS}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate files of each content, each with several segments."""
    directory = tmp_path_factory.mktemp("generated")
    for content in CONTENTS:
        write_directory(directory, 2_000_000, content, block_bytes=100_000, segment_bytes=300_000)
    return directory


@pytest.mark.oracle
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_files_give_equal_tables(spark: SparkSession, name: str) -> None:
    kafka = by_kafka(RECORDED[name])
    assert records_in(kafka) > 70
    assert by_library(RECORDED[name]) == kafka
    assert by_spark(spark, RECORDED[name]) == kafka


@pytest.mark.oracle
def test_generated_files_give_equal_tables(spark: SparkSession, generated: Path) -> None:
    kafka = by_kafka(generated)
    assert {codec for _, codec in kafka} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert by_library(generated) == kafka
    assert by_spark(spark, generated) == kafka


@pytest.mark.parametrize("split_bytes", [150_000, 777_777, 1 << 40])
def test_splits_of_any_size_give_equal_tables(spark: SparkSession, generated: Path, split_bytes: int) -> None:
    assert by_spark(spark, generated, splitBytes=split_bytes) == by_library(generated)
