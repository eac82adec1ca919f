"""Spark jobs and single-process functions return the same numbers for the same recorded directories."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_msgs.analysis.groups import GroupsRead, read_groups
from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC
from kafka_msgs.analysis.topic_profile import read_profile
from kafka_msgs.analysis.topic_stats import TopicStats
from kafka_msgs.engines import log_directories
from kafka_msgs.engines.group_offsets import group_offsets_run
from kafka_msgs.engines.group_state import group_state_run
from kafka_msgs.engines.job import local_engine, run_job
from kafka_msgs.engines.local_inputs import LocalInputs
from kafka_msgs.engines.spark import RemoteInputs, spark_engine
from kafka_msgs.engines.topic_profile import topic_profile_run
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.spark.jobs.group_offsets import group_offsets
from kafka_msgs.spark.jobs.group_state import group_state
from kafka_msgs.spark.jobs.topic_profile import topic_profile
from tests.support.offsets_topic import OffsetsTopic
from tests.support.random_topic import RandomTopic
from tests.support.recordings import GROUP_LOGS, LOGS

Rows = list[dict[str, Any]]


def rows_of(table: DataFrame) -> Rows:
    return [row.asDict() for row in table.collect()]


def in_process() -> GroupsRead:
    partitions = partitions_in([GROUP_LOGS])
    return read_groups(partitions)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, Rows]:
    every = log_directories.partitions_in([GROUP_LOGS])
    records = log_directories.log_frame(spark, [GROUP_LOGS], OFFSETS_TOPIC)
    found = group_offsets(records, partitions=log_directories.partitions_frame(spark, every))
    return {name: rows_of(found[name]) for name in ("groups", "offsets", "problems")}


def test_groups(tables: dict[str, Rows]) -> None:
    expected = {
        row["group"]: (
            row["kind"], row["state"], row["epoch"] or 0, row["members"], row["partitions"], row["lag"],
            row["lastCommitMs"],
        )
        for row in tables["groups"]
    }  # fmt: skip
    found = {
        each.description.group_id: (
            each.description.kind, each.description.state, each.description.epoch, len(each.description.members),
            len(each.offsets), each.lag, each.last_commit,
        )
        for each in in_process().groups
    }  # fmt: skip
    assert found == expected
    assert not tables["problems"]


def test_offsets(tables: dict[str, Rows]) -> None:
    expected = {
        (row["group"], row["topic"], row["topicPartition"]): (
            row["committedOffset"], row["metadata"], row["commitTimestampMs"], row["endOffset"], row["lag"],
        )
        for row in tables["offsets"]
    }  # fmt: skip
    found = {
        (group.description.group_id, each.topic, each.partition): (
            each.offset, each.metadata, each.commit_timestamp, each.end_offset, each.lag,
        )
        for group in in_process().groups
        for each in group.offsets
    }  # fmt: skip
    assert found == expected


COLUMNS = {
    "records": "records", "batches": "batches", "bytes": "bytes", "contentBytes": "content_bytes", "ratio": "ratio",
    "meanKeySize": "mean_key_size", "maxKeySize": "max_key_size", "meanValueSize": "mean_value_size",
    "maxValueSize": "max_value_size", "withoutKey": "without_key", "tombstones": "tombstones",
    "transactions": "transactions", "abortedTransactions": "aborted_transactions",
    "abortedRecords": "aborted_records", "outOfOrder": "out_of_order", "firstOffset": "first_offset",
    "lastOffset": "last_offset",
}  # fmt: skip


def facts(figures: TopicStats) -> dict[str, Any]:
    named = {column: getattr(figures, name) for column, name in COLUMNS.items()}
    return named | {"codecs": sorted(figures.codecs), "producers": len(figures.producers)}


@pytest.mark.parametrize("directory", [LOGS, GROUP_LOGS], ids=lambda path: path.name)
def test_profiles(spark: SparkSession, directory: Path) -> None:
    records = log_directories.log_frame(spark, [directory])
    expected = {
        (row["topic"], row["partition"], row["hourMs"]): {name: row[name] for name in (*COLUMNS, "codecs", "producers")}
        for row in rows_of(topic_profile(records)["profile"])
    }
    found = {place: facts(figures) for place, figures in read_profile(partitions_in([directory])).figures.items()}
    assert found == expected
    assert len(found) >= 4


def kafka_times(rows: Rows) -> Rows:
    """Convert rows for comparison: timestamps as numbers, in a fixed order."""
    plain = [{name: str(value) if "imestamp" in name else value for name, value in row.items()} for row in rows]
    return sorted(plain, key=repr)


def test_one_process_and_the_function_over_data_frames_agree_on_logs_made_by_chance(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(3):
        topic = OffsetsTopic(tmp_path / "logs", Random(number), number=number)
        topic.grow(300)
        topic.write()
    run_job(
        group_offsets_run(LocalInputs([str(tmp_path / "logs")]), history=True), str(tmp_path / "out"), local_engine()
    )
    every = log_directories.partitions_in([tmp_path / "logs"])
    records = log_directories.log_frame(spark, [tmp_path / "logs"], OFFSETS_TOPIC)
    expected = group_offsets(records, partitions=log_directories.partitions_frame(spark, every))
    for name in ("offsets", "pending", "groups", "problems", "history"):
        # Spark reads the written output, so that types are equal.
        found = spark.read.parquet(str(tmp_path / "out" / "current" / name)).select(*expected[name].columns)
        assert found.dtypes == expected[name].dtypes, name
        assert kafka_times(rows_of(found)) == kafka_times(rows_of(expected[name])), name


def test_one_process_and_the_function_over_data_frames_have_the_same_profile(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(2):
        topic = RandomTopic(tmp_path / "logs", Random(number), number=number, damage=True, far=False)
        topic.grow(100)
        topic.write()
    shutil.copytree(LOGS / "codecs-0", tmp_path / "logs" / "codecs-0")
    asked = topic_profile_run(LocalInputs([str(tmp_path / "logs")]))
    run_job(asked, str(tmp_path / "out"), local_engine())
    run_job(topic_profile_run(RemoteInputs([tmp_path / "logs"])), str(tmp_path / "by spark"), spark_engine(spark))
    expected = topic_profile(log_directories.log_frame(spark, [tmp_path / "logs"]))
    expected["batches"] = expected["batches"].where("problem IS NULL").drop("problem")
    for name, table in asked.job.tables.items():
        for out in ("out", "by spark"):
            found = spark.read.parquet(str(tmp_path / out / "current" / name)).select(*expected[name].columns)
            assert found.dtypes == expected[name].dtypes, name
            assert kafka_times(rows_of(found)) == kafka_times(rows_of(expected[name])), name
        assert set(expected[name].columns) == set(table.schema.names)


def test_one_process_and_the_function_over_data_frames_have_the_same_groups(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(2):
        topic = OffsetsTopic(tmp_path / "chance", Random(number), number=number)
        topic.grow(300)
        topic.write()
    for logs in (GROUP_LOGS, tmp_path / "chance"):
        out = tmp_path / f"out of {logs.name}"
        run_job(group_state_run(LocalInputs([str(logs)])), str(out), local_engine())
        every = log_directories.partitions_in([logs])
        records = log_directories.log_frame(spark, [logs], OFFSETS_TOPIC)
        expected = group_state(records, partitions=log_directories.partitions_frame(spark, every))
        for name in ("descriptions", "groups", "members", "assignments", "topology", "problems"):
            found = spark.read.parquet(str(out / "current" / name)).select(*expected[name].columns)
            assert kafka_times(rows_of(found)) == kafka_times(rows_of(expected[name])), name
            assert [field.dataType for field in found.schema] == [field.dataType for field in expected[name].schema]
