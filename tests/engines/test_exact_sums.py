"""Sums in reports and metrics are exact, although tables and plots show only the largest rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_msgs.analysis import group_offsets_job, group_offsets_report, profile_job
from kafka_msgs.analysis.hourly_stats import SUMMED
from kafka_msgs.analysis.profile_job import PARTITIONS as SUMS
from kafka_msgs.analysis.profile_job import ProfileSummary, merge_summaries
from kafka_msgs.analysis.topic_profile_report import topic_profile_report
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.log.metadata_log_state import MetadataLogState, Placement
from kafka_msgs.records import BatchBuilder
from kafka_msgs.report import Report, Table
from tests.support.committed_tables import committed_rows
from tests.support.offsets_topic import commit, write_items

MANY = 10_500
"""More rows than a report looks at."""
TOPICS = 2_200
PARTITIONS = 6


def samples(report: Report, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for metric in report.metrics
        if metric.name == name
        for sample in metric.samples
    }


def test_the_lag_of_groups_counts_all_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_offsets_job, "LOOKED_AT", 3)
    monkeypatch.setattr(group_offsets_report, "LOOKED_AT", 3)
    names = "abcdefghij"
    items = [commit(name, 0, group=group) for group in ("tea", "milk") for name in names]
    write_items(tmp_path / "logs", 0, items)
    ends = {(name, 0): 10 + number for number, name in enumerate(names)}
    job, inputs = group_offsets_job.group_offsets_job(), JobInputs.at([tmp_path / "logs"])
    found = run_job(job, inputs, str(tmp_path / "out"), local_engine(), ends=ends)
    report = group_offsets_report.group_offsets_report(found.report, found.first_problems, 0, found.cluster.times())
    total = float(sum(ends.values()))
    assert samples(report, "kafka_group_lag_records_sum") == {("tea",): total, ("milk",): total}
    assert samples(report, "kafka_group_lag_records_max") == {("tea",): 19, ("milk",): 19}
    assert samples(report, "kafka_group_topic_lag_records_sum") == {
        (group, name): 10.0 + number for group in ("tea", "milk") for number, name in enumerate(names)
    }
    assert len(samples(report, "kafka_group_lag_records")) == 3


def summary(topic: int, number: int) -> ProfileSummary:
    sums = {**{name: [0] for name in SUMMED}, "bytes": [10], "records": [1]}
    return ProfileSummary(partitions=pa.table({"topic": [f"t{topic}"], "partition": [number], **sums}, SUMS))


def test_the_bytes_of_topics_and_brokers_count_all_partitions() -> None:
    places = [(topic, number) for topic in range(TOPICS) for number in range(PARTITIONS)]
    placements = {(f"t{topic}", number): Placement(at % 4, (at % 4,)) for at, (topic, number) in enumerate(places)}
    state = MetadataLogState(configs={}, placements=placements)
    report = topic_profile_report(merge_summaries([summary(*place) for place in places]), [], 0, state)
    assert set(samples(report, "kafka_topic_bytes").values()) == {10.0 * PARTITIONS}
    assert len(samples(report, "kafka_topic_bytes")) == TOPICS
    share = 10.0 * TOPICS * PARTITIONS / 4
    assert samples(report, "kafka_broker_leader_bytes") == {(str(broker),): share for broker in range(4)}


def test_tables_reports_and_metrics_have_the_sums_of_more_offsets_than_a_report_shows(tmp_path: Path) -> None:
    items = [commit(f"t{number}", 0, group=f"g{number % 3}") for number in range(MANY)]
    write_items(tmp_path / "logs", 0, items)
    ends = {(f"t{number}", 0): number for number in range(MANY)}
    job, inputs = group_offsets_job.group_offsets_job(), JobInputs.at([tmp_path / "logs"])
    found = run_job(job, inputs, str(tmp_path / "out"), local_engine(), ends=ends, split_bytes=200_000)
    report = group_offsets_report.group_offsets_report(found.report, found.first_problems, 0, {})
    wanted = {(f"g{each}",): float(sum(range(each, MANY, 3))) for each in range(3)}
    groups = {(row["group"],): float(row["lag"]) for row in committed_rows(str(tmp_path / "out"), "groups")}
    offsets = Counter[tuple[str]]()
    for row in committed_rows(str(tmp_path / "out"), "offsets"):
        offsets[(row["group"],)] += row["lag"]
    assert wanted == groups == offsets == samples(report, "kafka_group_lag_records_sum")
    (shown,) = (each for each in report.sections if isinstance(each, Table) and each.title == "Groups")
    assert {(row[0],): row[shown.columns.index("lag")] for row in shown.rows} == wanted
    assert len(samples(report, "kafka_group_lag_records")) < MANY


def test_tables_reports_and_metrics_have_the_sums_of_more_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_job, "_SEGMENTS", 5)
    builder = BatchBuilder()
    builder.append(None, b"v", timestamp=1_767_225_600_000)
    batch = builder.build()
    for number in range(3):
        write_segments(tmp_path / "logs" / f"orders-{number}", batch, 20)
    found = run_job(profile_job.TOPIC_PROFILE, JobInputs.at([tmp_path / "logs"]), str(tmp_path / "out"), local_engine())
    report = topic_profile_report(found.report, [], 0, MetadataLogState())
    total = 3 * 20 * len(batch)
    assert sum(row["bytes"] for row in committed_rows(str(tmp_path / "out"), "profile")) == total
    assert samples(report, "kafka_topic_bytes") == {("orders",): float(total)}
    (topics,) = (each for each in report.sections if isinstance(each, Table) and each.title == "Topics")
    assert [row[topics.columns.index("bytes")] for row in topics.rows] == [total]


def write_segments(directory: Path, batch: bytes, count: int) -> None:
    """Write segments of one batch each. The base offset of a batch is not part of its checksum."""
    directory.mkdir(parents=True)
    for base in range(count):
        (directory / f"{base:020}.log").write_bytes(base.to_bytes(8) + batch[8:])


def test_rows_in_reports_do_not_include_stale_offsets(tmp_path: Path) -> None:
    groups = {name: partition_for_key(name, 2) for name in "abcdefghij"}
    for number in range(2):
        names = [name for name, place in groups.items() if place == number or name == "a"]
        write_items(tmp_path / "logs", number, [commit("t", 1, group=name) for name in names])
    job, inputs = group_offsets_job.group_offsets_job(), JobInputs.at([tmp_path / "logs"])
    found = run_job(job, inputs, str(tmp_path / "out"), local_engine(), ends={("t", 0): 10})
    assert found.report.rows["offsets"] == len(groups) + 1
    report = group_offsets_report.group_offsets_report(found.report, found.first_problems, 0, found.cluster.times())
    tables = {each.title: each for each in report.sections if isinstance(each, Table)}
    shown = tables["Committed offsets, the largest lags first"]
    assert (len(shown.rows), shown.total, shown.note) == (len(groups), len(groups), "")
