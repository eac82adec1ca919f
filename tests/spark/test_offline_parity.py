"""Spark jobs and single-process functions return the same numbers for the same recorded directories."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.analysis.groups import GroupsRead, read_groups
from kafka_msgs.analysis.job import Job
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.engines.frames import group_offsets, group_state, topic_profile
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.engines.spark import spark_engine
from kafka_msgs.log.partition_discovery import partitions_in
from tests.engines.test_replicas import PLACED, write_group
from tests.support.committed_tables import committed_tables
from tests.support.offsets_topic import OffsetsTopic
from tests.support.profile_walk import STATISTICS, profile_by_walk
from tests.support.random_topic import RandomTopic
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.share_topic import SHARE_GROUPS, ShareTopic, write_share_inputs

Rows = list[dict[str, Any]]


def rows_of(table: DataFrame) -> Rows:
    return [row.asDict() for row in table.collect()]


def in_process() -> GroupsRead:
    partitions = partitions_in([GROUP_LOGS])
    return read_groups(partitions)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, Rows]:
    found = group_offsets(spark, [GROUP_LOGS])
    return {name: rows_of(found[name]) for name in ("groups", "offsets", "problems")}


def test_groups(tables: dict[str, Rows]) -> None:
    expected = {
        row["group"]: (
            row["kind"], row["state"], row["epoch"], row["members"], row["partitions"], row["lag"],
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


@pytest.mark.parametrize("directory", [LOGS, GROUP_LOGS], ids=lambda path: path.name)
def test_profiles(spark: SparkSession, directory: Path) -> None:
    expected = {
        (row["topic"], row["partition"], row["hourMs"]): {name: row[name] for name in STATISTICS}
        for row in rows_of(topic_profile(spark, [directory])["profile"])
    }
    found = profile_by_walk(partitions_in([directory]))
    assert found == expected
    assert len(found) >= 4


def kafka_times(rows: Rows) -> Rows:
    """Convert rows for comparison: timestamps as numbers, in a fixed order."""
    plain = [{name: str(value) if "imestamp" in name else value for name, value in row.items()} for row in rows]
    return sorted(plain, key=repr)


Frames = Callable[[SparkSession, list[Path]], dict[str, DataFrame]]
JOBS: dict[str, tuple[Job[Any], Frames]] = {
    "offsets": (group_offsets_job(history=True), partial(group_offsets, history=True)),
    "groups": (GROUP_STATE, group_state),
    "profile": (TOPIC_PROFILE, topic_profile),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random partitions of ``__consumer_offsets``, ``__share_group_state`` and a topic, and the recorded codecs."""
    home = tmp_path_factory.mktemp("chance")
    for number in range(3):
        topic = OffsetsTopic(home, Random(number), number=number)
        topic.grow(300)
        topic.write()
    write_share_inputs(home, number=3)
    for number in range(2):
        states = ShareTopic(home, Random(number), number=number)
        states.grow(100)
        states.write()
        events = RandomTopic(home, Random(number), number=number, damage=True, far=False)
        events.grow(100)
        events.write()
    shutil.copytree(LOGS / "codecs-0", home / "codecs-0")
    return home


@pytest.mark.parametrize("name", JOBS)
def test_one_process_and_spark_and_data_frames_have_the_same_tables(
    spark: SparkSession, logs: Path, tmp_path: Path, name: str
) -> None:
    job, function = JOBS[name]
    run_job(job, JobInputs.at([logs]), str(tmp_path / "local"), local_engine())
    run_job(job, JobInputs.at([logs]), str(tmp_path / "spark"), spark_engine(spark), split_bytes=4000)
    expected = function(spark, [logs])
    for table, spec in job.tables.items():
        wanted = kafka_times(rows_of(expected[table]))
        assert expected[table].columns == spec.schema.names
        for out in ("local", "spark"):
            # Spark reads the written output, so that types are equal.
            found = spark.read.parquet(str(tmp_path / out / "current" / table)).select(*expected[table].columns)
            assert found.dtypes == expected[table].dtypes, table
            assert kafka_times(rows_of(found)) == wanted, (out, table)


@pytest.mark.parametrize("is_complete", [True, False])
def test_data_frames_mark_the_same_offsets_as_stale(spark: SparkSession, tmp_path: Path, is_complete: bool) -> None:
    logs = tmp_path / "logs"
    for number, name in PLACED.items():
        groups = {name(n): 1 for n in range(4)} if is_complete else {PLACED[1 - number](n): 1 for n in range(4)}
        write_group(logs, number, {**groups, "tea": 5 + number})
    run_job(group_offsets_job(), JobInputs.at([logs]), str(tmp_path / "out"), local_engine())
    frames = group_offsets(spark, [logs])
    wanted = committed_tables(str(tmp_path / "out"))
    for table, columns in {"offsets": ("group", "logPartition", "stale"), "groups": ("group", "partitions")}.items():
        found = {tuple(row[each] for each in columns) for row in rows_of(frames[table])}
        assert found == {tuple(row[each] for each in columns) for row in wanted[table]}
    assert any(row["stale"] for row in wanted["offsets"]) == is_complete


def test_share_groups_have_the_offsets_of_the_command(spark: SparkSession, logs: Path) -> None:
    tables = group_offsets(spark, [logs])
    found = {
        group.description.group_id: (
            len(group.offsets), group.lag, group.ahead,
            {(each.topic, each.partition, each.offset, each.end_offset, each.lag, each.log_partition)
             for each in group.offsets},
        )
        for group in read_groups(partitions_in([logs])).groups
        if group.description.kind == "share"
    }  # fmt: skip
    offsets = rows_of(tables["offsets"])
    columns = ("topic", "topicPartition", "committedOffset", "endOffset", "lag", "logPartition")
    assert found == {
        row["group"]: (
            row["partitions"], row["lag"], row["ahead"],
            {tuple(each[name] for name in columns) for each in offsets if each["group"] == row["group"]},
        )
        for row in rows_of(tables["groups"])
        if row["kind"] == "share"
    }  # fmt: skip
    assert found.keys() == set(SHARE_GROUPS)
    assert all(partitions for partitions, *_ in found.values())
