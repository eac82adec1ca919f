"""Sums in reports and metrics are exact, although tables and plots show only the largest rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.analysis.hourly_stats import SUMMED
from kafka_msgs.engines import group_offsets, group_offsets_report, topic_profile_report
from kafka_msgs.engines.group_offsets import group_offsets_run
from kafka_msgs.engines.job import local_engine, run_job
from kafka_msgs.engines.local_inputs import LocalInputs
from kafka_msgs.engines.topic_profile import ProfileSummary
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import MetadataLogState, Placement
from kafka_msgs.report import Report
from tests.support.offsets_topic import commit, write_items

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
    monkeypatch.setattr(group_offsets, "LOOKED_AT", 3)
    monkeypatch.setattr(group_offsets_report, "LOOKED_AT", 3)
    names = "abcdefghij"
    items = [commit(name, 0, group=group) for group in ("tea", "milk") for name in names]
    write_items(tmp_path / "logs", 0, items)
    inputs = LocalInputs([str(tmp_path / "logs")])
    ends = {(name, 0): 10 + number for number, name in enumerate(names)}
    found = run_job(group_offsets_run(inputs, ends), str(tmp_path / "out"), local_engine())
    report = group_offsets_report.group_offsets_report(found, inputs.times())
    total = float(sum(ends.values()))
    assert samples(report, "kafka_group_lag_records_sum") == {("tea",): total, ("milk",): total}
    assert samples(report, "kafka_group_lag_records_max") == {("tea",): 19, ("milk",): 19}
    assert samples(report, "kafka_group_topic_lag_records_sum") == {
        (group, name): 10.0 + number for group in ("tea", "milk") for number, name in enumerate(names)
    }
    assert len(samples(report, "kafka_group_lag_records")) == 3


def summary(topic: int, number: int) -> ProfileSummary:
    sums = {**dict.fromkeys(SUMMED, 0), "bytes": 10, "records": 1}
    return ProfileSummary(
        topic=f"t{topic}", number=number, start=0, bases=frozenset(), sums=sums, rows=0, largest=[], codecs=[],
        segments=[], segment_count=0, hours={}, known=0, problems=[], problem_count=0,
    )  # fmt: skip


def test_the_bytes_of_topics_and_brokers_count_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [summary(topic, number) for topic in range(TOPICS) for number in range(PARTITIONS)]
    placements = {(each.topic, each.number): Placement(at % 4, (at % 4,)) for at, each in enumerate(found)}

    def state(_: object) -> MetadataLogState:
        return MetadataLogState(configs={}, placements=placements)

    monkeypatch.setattr(topic_profile_report, "read_metadata_log_state", state)
    none: dict[tuple[str, int], Partition] = {}
    report = topic_profile_report.topic_profile_report(found, none)
    assert set(samples(report, "kafka_topic_bytes").values()) == {10.0 * PARTITIONS}
    assert len(samples(report, "kafka_topic_bytes")) == TOPICS
    share = 10.0 * TOPICS * PARTITIONS / 4
    assert samples(report, "kafka_broker_leader_bytes") == {(str(broker),): share for broker in range(4)}
