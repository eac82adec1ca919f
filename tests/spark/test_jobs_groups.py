"""Offsets and groups of a real broker's log directory, compared with that broker's responses about them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from kafka_msgs import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
    Message,
    MetadataResponse,
    OffsetFetchResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
)
from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.group_offsets_report import group_offsets_report
from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.analysis.group_state_report import group_state_report
from kafka_msgs.analysis.groups import read_groups
from kafka_msgs.analysis.reports import groups_report
from kafka_msgs.engines.frames import group_offsets
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.engines.spark import spark_engine
from kafka_msgs.errors import JobPathError
from kafka_msgs.log import partition_discovery
from kafka_msgs.log.partition_discovery import end_offsets_in
from kafka_msgs.report import Report, write_report
from kafka_msgs.spark.jobs import capture_report
from kafka_msgs.spark.jobs.job import run
from tests.support.recorded_answers import answers
from tests.support.recorded_groups import state
from tests.support.recordings import END_OFFSETS, GROUP_LOGS

OFFSETS = "__consumer_offsets"

M = TypeVar("M", bound=Message)
Rows = list[dict[str, Any]]


class Ran:
    """A completed job: its tables, read by another Parquet reader, and its report files."""

    def __init__(self, out: Path, report: Report, files: Sequence[Path]) -> None:
        self.out = out
        self.report = report
        self.files = files

    def rows(self, table: str) -> Rows:
        rows: Rows = ds.dataset(self.out / "current" / table, partitioning="hive").to_table().to_pylist()
        return rows


@pytest.fixture(scope="module")
def offsets(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    out = tmp_path_factory.mktemp("jobs") / "offsets"
    job = group_offsets_job(history=True, status=True)
    found = run_job(job, JobInputs.at([GROUP_LOGS]), str(out), spark_engine(spark), split_bytes=2000)
    report = group_offsets_report(found.report, found.first_problems, found.problems, found.cluster.times())
    return Ran(out, report, write_report(report, out))


@pytest.fixture(scope="module")
def groups(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    out = tmp_path_factory.mktemp("jobs") / "groups"
    found = run_job(GROUP_STATE, JobInputs.at([GROUP_LOGS]), str(out), spark_engine(spark))
    report = group_state_report(found.report, found.first_problems.to_pylist(), found.problems)
    return Ran(out, report, write_report(report, out))


def answer(cls: type[M]) -> M:
    return next(iter(answers(cls)))


def described(cls: type[Message]) -> dict[str, Any]:
    """Return the broker's description of each group of one type."""
    return {each.group_id: each for each in getattr(answer(cls), "groups") if each.error_code == 0}  # noqa: B009


def none_for(number: int) -> int | None:
    """Return Kafka's number, None for -1."""
    return None if number == -1 else number


def commits(offsets: Ran) -> list[dict[str, Any]]:
    """Return the rows of committed offsets, without the start offsets of share groups."""
    shares = {row["group"] for row in offsets.rows("groups") if row["kind"] == "share"}
    return [row for row in offsets.rows("offsets") if row["group"] not in shares]


def test_committed_offsets_are_those_that_the_broker_fetches(offsets: Ran) -> None:
    fetched = {
        (group.group_id, topic.name, each.partition_index): (
            each.committed_offset, none_for(each.committed_leader_epoch), each.metadata,
        )
        for group in answer(OffsetFetchResponse).groups
        for topic in group.topics
        for each in topic.partitions
    }  # fmt: skip
    found = {
        (row["group"], row["topic"], row["topicPartition"]): (
            row["committedOffset"], row["leaderEpoch"], row["metadata"],
        )
        for row in commits(offsets)
    }  # fmt: skip
    assert found == fetched


def test_lags_are_the_distances_to_the_ends_that_kafkas_tool_printed(offsets: Ran) -> None:
    ends = end_offsets_in(END_OFFSETS)
    rows = commits(offsets)
    assert {row["lag"] for row in rows if row["group"] == "audit"} == {6}
    assert all(
        row["lag"]
        == ends[row["topic"], row["topicPartition"]] - row["committedOffset"]
        == row["endOffset"] - row["committedOffset"]
        for row in rows
    )


def test_groups_are_those_that_the_broker_lists_with_their_kinds_and_states(offsets: Ran) -> None:
    listed = {each.group_id: (each.group_type, each.group_state) for each in answer(ListGroupsResponse).groups}
    assert {row["group"]: (row["kind"], row["state"]) for row in offsets.rows("groups")} == listed
    assert sum(state == "Empty" for _, state in listed.values()) >= 4


def test_what_open_transactions_would_commit_is_what_a_coordinator_holds_back(offsets: Ran) -> None:
    held_back = {
        (producer, key.group, key.topic, key.partition): record.value.offset  # type: ignore[attr-defined, union-attr]
        for producer, records in state().pending.items()
        for key, record in records.items()
    }
    found = {
        (row["producerId"], row["group"], row["topic"], row["topicPartition"]): row["committedOffset"]
        for row in offsets.rows("pending")
    }
    assert found == held_back != {}


def test_history_keeps_what_was_deleted_later(offsets: Ran) -> None:
    history = offsets.rows("history")
    live = {(row["group"], row["topic"], row["topicPartition"]) for row in offsets.rows("offsets")}
    deleted = {(row["group"], row["topic"], row["topicPartition"]) for row in history if row["tombstone"]}
    assert {group for group, _, _ in deleted} >= {"ledger", "retired", "seasonal"}
    assert not deleted & live
    assert {row["outcome"] for row in history} == {"none", "committed", "open"}


def test_reports_are_pages_with_plots(offsets: Ran, groups: Ran) -> None:
    for ran, plots in ((offsets, {"lag.svg", "lag-time.svg", "commits.svg"}), (groups, {"assignments.svg"})):
        page, data, metrics, *images = ran.files
        text = page.read_text(encoding="utf-8")
        assert [each.name for each in (page, data, metrics)] == ["report.html", "report.json", "report.prom"]
        assert {image.name for image in images} == plots
        contents = [image.read_bytes() for image in images]
        assert all(content.startswith(b"<svg") for content in contents)
        assert len(re.findall("<svg.*?</svg>", text, re.DOTALL)) == len(plots)
        assert "<td>audit</td>" in text


def assigned(rows: Rows, status: str, *names: str) -> dict[tuple[str, str], set[tuple[Any, ...]]]:
    """Return the assignments with a status, by group and member, in the form of these columns."""
    found: dict[tuple[str, str], set[tuple[Any, ...]]] = {}
    for row in rows:
        if row["status"] == status:
            found.setdefault((row["group"], row["memberId"]), set()).add(tuple(row[name] for name in names))
    return found


def partitions(assignment: Any) -> set[tuple[Any, ...]]:
    return {(each.topic_name, str(each.topic_id), n) for each in assignment.topic_partitions for n in each.partitions}


def tasks(assignment: Any) -> set[tuple[Any, ...]]:
    return {
        (role, each.subtopology_id, number)
        for role in ("active", "standby", "warmup")
        for each in getattr(assignment, f"{role}_tasks")
        for number in each.partitions
    }


def test_epochs_and_states_are_those_that_the_broker_describes(groups: Ran) -> None:
    rows = {row["group"]: row for row in groups.rows("groups")}
    for cls in (ConsumerGroupDescribeResponse, ShareGroupDescribeResponse, StreamsGroupDescribeResponse):
        for name, said in described(cls).items():
            row = rows[name]
            assert (row["epoch"], row["assignmentEpoch"], row["state"]) == (
                said.group_epoch,
                said.assignment_epoch,
                said.group_state,
            )


def test_tasks_of_a_streams_group_are_those_that_the_broker_describes(groups: Ran) -> None:
    (said,) = described(StreamsGroupDescribeResponse).values()
    columns = ("role", "subtopologyId", "partition")
    rows = groups.rows("assignments")
    for status, attribute in (("current", "assignment"), ("target", "target_assignment")):
        expected = {("totals", each.member_id): tasks(getattr(each, attribute)) for each in said.members}
        found = assigned(rows, status, *columns)
        assert {place: what for place, what in found.items() if place[0] == "totals"} == expected
    assert {role for _, what in expected.items() for role, _, _ in what} == {"active", "standby"}


def test_topology_of_a_streams_group_is_the_one_that_the_broker_describes(groups: Ran) -> None:
    (said,) = described(StreamsGroupDescribeResponse).values()
    rows = {row["subtopologyId"]: row for row in groups.rows("topology")}
    assert {row["topologyEpoch"] for row in rows.values()} == {said.topology.epoch}
    for each in said.topology.subtopologies:
        row = rows.pop(each.subtopology_id)
        assert row["sourceTopics"] == list(each.source_topics)
        assert row["repartitionSinkTopics"] == list(each.repartition_sink_topics)
        assert [topic["name"] for topic in row["stateChangelogTopics"]] == [t.name for t in each.state_changelog_topics]
    assert rows == {}


@pytest.mark.parametrize(
    ("cls", "statuses"),
    [
        (ConsumerGroupDescribeResponse, {"current": "assignment", "target": "target_assignment"}),
        (ShareGroupDescribeResponse, {"current": "assignment"}),
    ],
)
def test_partitions_of_members_are_those_that_the_broker_describes(
    groups: Ran, cls: type[Message], statuses: Mapping[str, str]
) -> None:
    said = described(cls)
    rows = [row for row in groups.rows("assignments") if row["group"] in said]
    for status, attribute in statuses.items():
        expected = {
            (name, each.member_id): partitions(getattr(each, attribute))
            for name, group in said.items()
            for each in group.members
        }
        assert assigned(rows, status, "topic", "topicId", "partition") == expected != {}


def test_members_are_those_that_the_broker_describes(groups: Ran) -> None:
    rows = {(row["group"], row["memberId"]): row for row in groups.rows("members")}
    count = 0
    for cls in (ConsumerGroupDescribeResponse, ShareGroupDescribeResponse, StreamsGroupDescribeResponse):
        for name, group in described(cls).items():
            for each in group.members:
                row = rows[name, each.member_id]
                count += 1
                assert (row["epoch"], row["clientId"], row["clientHost"]) == (
                    each.member_epoch,
                    each.client_id,
                    each.client_host,
                )
    classic = {name: each for name, each in described(DescribeGroupsResponse).items() if each.members}
    names = {(name, each.member_id) for name, group in classic.items() for each in group.members}
    assert names == {place for place, row in rows.items() if row["kind"] == "classic"}
    assert count + len(names) == len(rows)


def test_topic_ids_are_named_as_the_broker_names_them(groups: Ran) -> None:
    named = {str(each.topic_id): each.name for each in answer(MetadataResponse).topics}
    rows = [row for row in groups.rows("assignments") if row["topicId"]]
    assert {row["topicId"]: row["topic"] for row in rows}.items() <= named.items()
    assert rows


def test_damage_is_reported_and_the_rest_counts(spark: SparkSession, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(GROUP_LOGS / f"{OFFSETS}-2", tmp_path / f"{OFFSETS}-2"))
    log = max(path for path in copy.glob("*.log") if path.stat().st_size)
    data = bytearray(log.read_bytes())
    data[-1] ^= 0xFF
    log.write_bytes(data)
    tables = group_offsets(spark, [copy], ends={})
    (problem,) = tables["problems"].collect()
    assert problem["file"] == str(log)
    assert "checksum" in problem["problem"]
    live = {(row["topicPartition"], row["committedOffset"], row["lag"]) for row in tables["offsets"].collect()}
    assert live == {(0, 1, None), (1, 2, None)}


def test_paths_that_hold_no_partition_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(JobPathError, match="nowhere: is not a directory"):
        group_offsets(spark, [tmp_path / "nowhere"])
    with pytest.raises(JobPathError, match="there is no partition of __consumer_offsets in it"):
        group_offsets(spark, [GROUP_LOGS / "orders-0"])


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    with pytest.raises(JobPathError, match="nothing is overwritten"):
        run(capture_report.JOB, {}, str(tmp_path))


def test_tables_elsewhere_need_a_place_for_the_report() -> None:
    with pytest.raises(JobPathError, match="the report needs a local directory"):
        run(capture_report.JOB, {}, "s3a://bucket/tables")


def test_reports_have_the_lag_the_status_and_the_skew_that_the_files_give(offsets: Ran, groups: Ran) -> None:
    logs = partition_discovery.partitions_in([GROUP_LOGS])
    found = read_groups(logs, windows=True)
    expected = group_metrics(groups_report(found, found.groups, logs))
    assert {"kafka_group_lag_seconds", "kafka_group_idle_members", "kafka_group_status"} < expected.keys()
    assert {**group_metrics(groups.report), **group_metrics(offsets.report)} == expected


def group_metrics(report: Report) -> dict[str, Any]:
    return {
        each.name: {tuple(sample.labels.items()): sample.value for sample in each.samples} for each in report.metrics
    }
