"""Runs over random logs that change in between, runs from the start and commands give the same answers.

``python -m tests.campaigns.job_answers`` compares more random logs, also in Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.groups import read_groups
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.plan import NO_SPLIT
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from tests.support.committed_tables import committed_rows
from tests.support.job_answers import differences
from tests.support.offsets_topic import TOPIC, Item, commit, write_items, write_segments

NAMES = [f"g{number}" for number in range(40)]


@pytest.mark.parametrize("seed", range(6))
def test_answers_about_random_logs_are_the_same(tmp_path: Path, seed: int) -> None:
    assert list(differences(tmp_path, seed)) == []


def names_in(number: int) -> list[str]:
    """Return groups that partition ``number`` of two serves."""
    return [name for name in NAMES if partition_for_key(name, 2) == number]


@pytest.mark.parametrize("split_bytes", [1, NO_SPLIT])
def test_deleted_groups_and_ranges_do_not_change_what_is_stale(tmp_path: Path, split_bytes: int) -> None:
    logs, (lost, *deleted) = tmp_path / "logs", names_in(0)[:8]
    items: list[Item] = [commit("a", 1, group=name) for name in (*names_in(1)[:4], lost, *deleted)]
    segments: list[dict[int, Item]] = [
        dict(enumerate(items)),
        {100 + at: commit("a", None, group=name) for at, name in enumerate(deleted)},
    ]
    write_segments(logs, 1, segments)
    write_items(logs, 0, [commit("b", 1, group=name) for name in names_in(0)[8:12]])
    run_job(
        group_offsets_job(), JobInputs.at([logs]), str(tmp_path / "out"), local_engine(), split_bytes=split_bytes
    )  # fmt: skip
    rows = committed_rows(str(tmp_path / "out"), "offsets")
    stale = {(group.description.group_id, each.stale) for group in read_groups(partitions_in([logs])).groups
             for each in group.offsets}  # fmt: skip
    assert {(row["group"], row["stale"]) for row in rows} == stale
    assert {name for name, is_stale in stale if is_stale} == {lost}


def test_the_partition_of_the_latest_commit_describes_a_group(tmp_path: Path) -> None:
    described = TopicRecord(
        topic=TOPIC, key=GroupMetadataKey(group="tea"), value=GroupMetadataValue(generation=3), version=3
    )
    write_items(tmp_path / "logs", 0, [described, commit("a", 1)])
    write_items(tmp_path / "logs", 1, [commit("a", 2)])
    run_job(group_offsets_job(), JobInputs.at([tmp_path / "logs"]), str(tmp_path / "out"), local_engine())
    (row,) = committed_rows(str(tmp_path / "out"), "groups")
    (group,) = read_groups(partitions_in([tmp_path / "logs"])).groups
    assert (row["epoch"], row["partitions"]) == (group.description.epoch, len(group.served)) == (None, 2)
