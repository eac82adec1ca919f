"""The job ``group-offsets`` returns the start offsets of share groups that the command ``lag`` returns."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow.dataset as ds
import pytest

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.groups import GroupWithOffsets, read_groups
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.plan import NO_SPLIT
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.log.partition_discovery import partitions_in
from tests.support.offsets_topic import OffsetsTopic
from tests.support.recordings import GROUP_LOGS
from tests.support.share_topic import SHARE_GROUPS, ShareTopic, write_share_inputs

Rows = list[dict[str, Any]]

FIELDS: Final = {
    "topic": "topic", "topicPartition": "partition", "committedOffset": "offset", "leaderEpoch": "leader_epoch",
    "endOffset": "end_offset", "lag": "lag", "ahead": "ahead", "stale": "stale", "logPartition": "log_partition",
}  # fmt: skip
"""The columns of offsets, and the attributes of the command."""


def run(logs: Path, out: Path, split_bytes: int = NO_SPLIT) -> dict[str, Rows]:
    run_job(group_offsets_job(), JobInputs.at([logs]), str(out), local_engine(), split_bytes=split_bytes)
    found = {
        name: ds.dataset(out / "current" / name, partitioning="hive").to_table().to_pylist()
        for name in ("offsets", "groups", "problems")
    }
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def share_groups(logs: Path) -> list[GroupWithOffsets]:
    found = read_groups(partitions_in([logs])).groups
    return [each for each in found if each.description.kind == "share"]


def check_against_the_command(logs: Path, tables: dict[str, Rows]) -> None:
    groups = {row["group"]: row for row in tables["groups"] if row["kind"] == "share"}
    for each in share_groups(logs):
        name = each.description.group_id
        offsets = {tuple(row[column] for column in FIELDS) for row in tables["offsets"] if row["group"] == name}
        assert offsets == {tuple(getattr(offset, field) for field in FIELDS.values()) for offset in each.offsets}
        row = groups.pop(name)
        assert (row["state"], row["epoch"]) == (each.description.state, each.description.epoch)
        assert (row["partitions"], row["lag"], row["ahead"]) == (len(each.offsets), each.lag, each.ahead)
    assert not groups


def test_share_groups_of_a_broker_have_the_offsets_of_the_command_also_in_a_second_run(tmp_path: Path) -> None:
    for _ in range(2):
        check_against_the_command(GROUP_LOGS, run(GROUP_LOGS, tmp_path))
    (packing,) = share_groups(GROUP_LOGS)
    assert len(packing.offsets) == 2


def nothing(topic: OffsetsTopic) -> None:
    pass


HAPPENINGS: Final[dict[str, Callable[[OffsetsTopic], None]]] = {
    "nothing": nothing,
    "deleted segment": OffsetsTopic.delete_first,
    "truncated tail": OffsetsTopic.truncate,
    "recreated topic": OffsetsTopic.recreate,
}


@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("seed", range(2))
def test_any_cut_of_the_states_gives_what_one_run_and_the_command_give(
    tmp_path: Path, happening: str, seed: int
) -> None:
    dice, logs = Random(f"{happening} {seed}"), tmp_path / "logs"
    write_share_inputs(logs)
    topic = ShareTopic(logs, dice, problems=seed == 0)
    for _ in range(3):
        topic.grow(dice.randrange(1, 80))
        HAPPENINGS[happening](topic)
        topic.grow(dice.randrange(3))
        # Ranges are cut at segments, which have a few records each.
        found = run(topic.write(), tmp_path / "out", dice.choice((1, 2000, NO_SPLIT)))
        shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
        assert found == run(logs, tmp_path / "fresh")
        check_against_the_command(logs, found)
    assert {each.description.group_id for each in share_groups(logs)} == set(SHARE_GROUPS)


def test_a_second_run_reads_only_new_states(tmp_path: Path) -> None:
    write_share_inputs(tmp_path / "logs")
    inputs = JobInputs.at([tmp_path / "logs"])
    topic = ShareTopic(tmp_path / "logs", Random(1))
    for from_start in (True, False):
        topic.grow(40)
        topic.write()
        found = run_job(group_offsets_job(), inputs, str(tmp_path / "out"), local_engine())
        assert {each.from_start for each in found.partitions if each.topic == topic.topic} == {from_start}


def test_states_of_groups_that_the_inputs_do_not_describe_count_in_no_group(tmp_path: Path) -> None:
    write_share_inputs(tmp_path / "logs", groups=["crates"])
    topic = ShareTopic(tmp_path / "logs", Random(2))
    topic.grow(100)
    tables = run(topic.write(), tmp_path / "out")
    assert [row["group"] for row in tables["groups"]] == ["crates"]
    assert {row["group"] for row in tables["offsets"]} == {"crates", "labels", "deleted"}
    check_against_the_command(tmp_path / "logs", tables)
