"""Start offsets of share groups in the job ``group-offsets``, which are those of the command ``lag``."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.groups import read_groups
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.log.partition_discovery import partitions_in
from tests.support.recordings import GROUP_LOGS


def test_share_groups_have_their_partitions_and_lag_also_in_a_second_run(tmp_path: Path) -> None:
    (packing,) = (
        each for each in read_groups(partitions_in([GROUP_LOGS])).groups if each.description.group_id == "packing"
    )
    for _ in range(2):
        run = run_job(group_offsets_job(), JobInputs.at([GROUP_LOGS]), str(tmp_path), local_engine())
        groups = {row["group"]: row for row in run.report.groups.to_pylist()}
        assert (groups["packing"]["partitions"], groups["packing"]["lag"]) == (len(packing.offsets), packing.lag)
        rows = ds.dataset(tmp_path / "current" / "offsets", partitioning="hive").to_table().to_pylist()
        assert {
            (
                row["topic"],
                row["topicPartition"],
                row["committedOffset"],
                row["leaderEpoch"],
                row["endOffset"],
                row["lag"],
            )
            for row in rows
            if row["group"] == "packing"
        } == {
            (each.topic, each.partition, each.offset, each.leader_epoch, each.end_offset, each.lag)
            for each in packing.offsets
        }
