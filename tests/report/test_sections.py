"""Report sections built from rows: lag and trend, skew, retention, slow clients."""

from __future__ import annotations

import struct
from base64 import b64encode
from typing import Any

import pytest

from kafka_msgs.report import BarPlot, Report, ReportPart, Table, report_of
from kafka_msgs.report.html_page import render_page
from kafka_msgs.report.json_report import to_dict
from kafka_msgs.report.prometheus import exposition
from kafka_msgs.report.sections.clients import client_part
from kafka_msgs.report.sections.lag import lag_part, with_times
from kafka_msgs.report.sections.lag_metrics import lag_metrics
from kafka_msgs.report.sections.retention import retention_part
from kafka_msgs.report.sections.skew import broker_part, member_part, partition_part

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 1_767_225_600_000


def table(part: ReportPart, title: str) -> list[dict[str, Any]]:
    (found,) = (each for each in part.sections if isinstance(each, Table) and each.title.startswith(title))
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def samples(part: ReportPart, name: str) -> dict[tuple[str, ...], float]:
    (found,) = (each for each in part.metrics if each.name == name)
    return {tuple(sample.labels.values()): sample.value for sample in found.samples}


def commit(**known: Any) -> dict[str, Any]:
    return {"group": "billing", "topic": "orders", "topicPartition": 0, "metadata": "", **known}


FALLING_BEHIND = commit(
    committedOffset=1000,
    endOffset=4000,
    lag=3000,
    commitTimestampMs=NOW - HOUR,
    unreadMs=NOW - 5 * HOUR,
    firstCommitMs=NOW - 3 * HOUR,
    firstCommitOffset=800,
    firstEndOffset=2500,
)


def test_lag_in_time_is_the_age_of_the_oldest_record_that_is_not_consumed() -> None:
    part = lag_part([FALLING_BEHIND], NOW)
    (row,) = table(part, "Lag in time")
    assert row["lagSeconds"] == 5 * 3600
    assert row["unreadSince"] == NOW - 5 * HOUR
    assert samples(part, "kafka_group_lag_seconds") == {("billing", "orders", "0"): 5 * 3600}
    assert samples(part, "kafka_group_lag_records") == {("billing", "orders", "0"): 3000}


def test_a_lag_that_grows_has_a_trend_above_0_and_is_never_caught_up() -> None:
    row = with_times(FALLING_BEHIND, NOW)
    assert (row["consumedPerHour"], row["producedPerHour"], row["trendPerHour"]) == (100, 500, 400)
    assert row["catchUpSeconds"] is None


def test_a_lag_that_shrinks_is_caught_up_after_a_time_that_follows_from_both_rates() -> None:
    row = with_times({**FALLING_BEHIND, "firstCommitOffset": -1000, "lag": 1000}, NOW)
    assert row["trendPerHour"] == -500
    assert row["catchUpSeconds"] == 2 * 3600


@pytest.mark.parametrize(
    ("change", "lag_seconds"),
    [
        ({"unreadMs": None}, None),
        ({"unreadMs": -1}, None),
        ({"lag": None, "endOffset": None, "unreadMs": None}, None),
        ({"lag": 0, "unreadMs": None}, 0),
        ({"lag": -5, "unreadMs": None}, 0),
        ({"unreadMs": NOW + HOUR}, 0),
    ],
)
def test_what_is_not_known_is_not_a_number(change: dict[str, Any], lag_seconds: float | None) -> None:
    row = with_times({**FALLING_BEHIND, **change}, NOW)
    assert row["lagSeconds"] == lag_seconds


def test_one_commit_only_has_no_rate() -> None:
    row = with_times({**FALLING_BEHIND, "firstCommitMs": NOW - HOUR}, NOW)
    assert (row["consumedPerHour"], row["trendPerHour"], row["catchUpSeconds"]) == (None, None, None)


def test_a_group_has_the_sum_of_lags_the_longest_time_and_how_many_are_unknown() -> None:
    rows = [
        FALLING_BEHIND,
        commit(topicPartition=1, committedOffset=5, endOffset=7, lag=2, unreadMs=NOW - 1000),
        commit(topicPartition=2, committedOffset=5, endOffset=None, lag=None),
    ]
    (group,) = table(lag_part(rows, NOW), "Lag and trend of each group")
    assert (group["partitions"], group["unknown"], group["lag"], group["lagSeconds"]) == (3, 1, 3002, 5 * 3600)
    assert (group["trendPerHour"], group["catchUpSeconds"]) == (400, None)


def test_partition_times_of_streams_are_shown_and_other_metadata_is_not_taken_for_them() -> None:
    text = b64encode(struct.pack(">bq", 2, NOW - 1500)).decode()
    rows = [commit(metadata=text, lag=0), commit(topicPartition=1, metadata="by hand", lag=0)]
    part = lag_part(rows, NOW)
    (row,) = table(part, "Partition times")
    assert (row["topicPartition"], row["partitionTime"], row["behindSeconds"]) == (0, NOW - 1500, 1.5)
    name = "kafka_group_streams_partition_time_seconds"
    assert samples(part, name) == {("billing", "orders", "0"): (NOW - 1500) / 1000}


def test_skew_between_partitions_is_the_largest_by_the_mean() -> None:
    rows = [
        {"topic": "even", "partition": 0, "bytes": 5, "records": 1},
        {"topic": "even", "partition": 1, "bytes": 5, "records": 1},
        {"topic": "skewed", "partition": 0, "bytes": 0, "records": 0},
        {"topic": "skewed", "partition": 1, "bytes": 30, "records": 3},
        {"topic": "skewed", "partition": 2, "bytes": 0, "records": 9},
        {"topic": "empty", "partition": 0, "bytes": 0, "records": 0},
    ]
    part = partition_part(rows)
    found = {row["topic"]: row for row in table(part, "Skew")}
    assert list(found) == ["skewed", "even", "empty"]
    assert (found["skewed"]["skew"], found["skewed"]["largestPartition"], found["skewed"]["recordSkew"]) == (3, 1, 2.25)
    assert found["skewed"]["variation"] == pytest.approx(2**0.5)
    assert (found["even"]["skew"], found["even"]["variation"]) == (1, 0)
    assert found["empty"]["skew"] is None
    assert samples(part, "kafka_topic_skew_ratio") == {("skewed",): 3, ("even",): 1}


def test_brokers_have_the_bytes_of_what_they_lead_and_of_all_their_replicas() -> None:
    rows = [{"topic": "a", "partition": number, "bytes": 10 * (number + 1), "records": 1} for number in range(3)]
    placements = {("a", 0): (1, [1, 2]), ("a", 1): (1, (1, 3)), ("a", 2): (-1, (3,)), ("b", 0): (2, (2,))}
    part = broker_part(rows, placements)
    found = {row["broker"]: row for row in table(part, "Skew between brokers")}
    assert {number: (row["leaders"], row["preferred"], row["replicas"]) for number, row in found.items()} == {
        1: (2, 2, 2), 2: (1, 1, 2), 3: (0, 1, 2),
    }  # fmt: skip
    sizes = ("leaderBytes", "preferredBytes", "replicaBytes")
    assert {number: tuple(row[name] for name in sizes) for number, row in found.items()} == {
        1: (30, 30, 30), 2: (0, 0, 10), 3: (0, 30, 50),
    }  # fmt: skip
    assert samples(part, "kafka_broker_replica_bytes") == {("1",): 30, ("2",): 10, ("3",): 50}
    assert broker_part(rows, {}) == ReportPart()


def test_members_without_anything_count_for_the_skew() -> None:
    rows = [{"group": "g", "memberId": str(number), "assigned": number} for number in (0, 0, 6)]
    part = member_part([*rows, {"group": "idle", "memberId": "m", "assigned": 0}])
    found = {row["group"]: row for row in table(part, "Skew")}
    assert (found["g"]["skew"], found["g"]["idle"], found["g"]["fewest"], found["g"]["most"]) == (3, 2, 0, 6)
    assert found["idle"]["skew"] is None


def segment(partition: int, name: str, size: int, oldest: int | None, newest: int | None) -> dict[str, Any]:
    place = {"topic": "orders", "partition": partition}
    return {**place, "segment": name, "bytes": size, "oldestMs": oldest, "newestMs": newest}


SEGMENTS = [
    segment(0, "00.log", 100, NOW - 10 * DAY, NOW - 9 * DAY),
    segment(0, "10.log", 100, NOW - 9 * DAY, NOW - 5 * DAY),
    segment(0, "20.log", 50, NOW - 5 * DAY, NOW),
    segment(1, "00.log", 30, None, None),
]


def test_a_closed_segment_past_its_retention_is_overdue_and_the_active_one_never_is() -> None:
    settings = {"retention.ms": str(7 * DAY), "retention.bytes": "120", "cleanup.policy": "delete"}
    (topic,) = table(retention_part(SEGMENTS, {"orders": settings}, NOW), "Size and retention of topics")
    assert (topic["partitions"], topic["segments"], topic["bytes"]) == (2, 4, 280)
    assert (topic["oldest"], topic["newest"], topic["bytesPerDay"]) == (NOW - 10 * DAY, NOW, 28)
    assert (topic["retentionSeconds"], topic["retention.bytes"]) == (7 * DAY / 1000, 120)
    assert (topic["overdueSeconds"], topic["overdueBytes"]) == (2 * DAY / 1000, 100)
    later = retention_part(SEGMENTS, {"orders": settings}, NOW + 100 * DAY)
    assert table(later, "Size and retention")[0]["overdueSeconds"] == 102 * DAY / 1000
    only_active = retention_part(SEGMENTS[3:], {"orders": settings}, NOW)
    assert table(only_active, "Size and retention")[0]["overdueSeconds"] is None


@pytest.mark.parametrize(
    "settings", [{}, {"retention.ms": "-1", "retention.bytes": "-1"}, {"retention.ms": "soon"},
                 {"retention.ms": "1", "retention.bytes": "1", "cleanup.policy": "compact"}]
)  # fmt: skip
def test_nothing_is_overdue_without_a_limit(settings: dict[str, str]) -> None:
    (topic,) = table(retention_part(SEGMENTS, {"orders": settings}, NOW), "Size and retention of topics")
    assert (topic["overdueSeconds"], topic["overdueBytes"]) == (None, None)


def test_growth_is_not_said_of_less_than_an_hour() -> None:
    rows = [segment(0, "00.log", 100, NOW - HOUR + 1, NOW)]
    part = retention_part(rows, {}, NOW)
    assert table(part, "Size of partitions")[0]["bytesPerDay"] is None
    assert samples(part, "kafka_partition_bytes") == {("orders", "0"): 100}


CLIENT = {
    "clientId": "shop", "software": "rdkafka 2", "hosts": 1, "connections": 2, "exchanges": 120, "answered": 119,
    "measured": 100, "p50Us": 1000.0, "p90Us": 2000.0, "p99Us": 3000.0, "maxUs": 4000, "throttled": 1,
    "throttleMs": 250, "errors": 2, "problems": 0,
}  # fmt: skip


def test_clients_have_latencies_throttle_times_and_their_oldest_versions() -> None:
    versions = [
        {"clientId": "shop", "api": "Fetch", "version": 4},
        {"clientId": "shop", "api": "Fetch", "version": 12},
        {"clientId": "shop", "api": "Produce", "version": 9},
        {"clientId": "shop", "api": "Metadata", "version": 13},
    ]
    few = {**CLIENT, "clientId": None, "software": None, "measured": 9, "maxUs": 9_000_000}
    part = client_part([CLIENT, few], versions, [], {"Fetch": 18, "Produce": 13, "Metadata": 13})
    first, second = table(part, "Clients")
    assert (first["clientId"], first["p50"], first["p99"], first["max"]) == (None, None, None, 9)
    assert (second["p50"], second["p99"], second["max"], second["throttle"]) == (0.001, 0.003, 0.004, 0.25)
    assert second["oldVersions"] == "Fetch v4 of v18, Produce v9 of v13"
    assert samples(part, "kafka_client_latency_p99_seconds") == {("shop", "rdkafka 2"): 0.003}
    assert samples(part, "kafka_client_throttle_seconds") == {("shop", "rdkafka 2"): 0.25, ("", ""): 0.25}
    (bars,) = (each for each in part.sections if isinstance(each, BarPlot))
    assert bars.series["max"] == [9000, 4]


@pytest.mark.parametrize(
    "part",
    [
        lag_part([], None),
        partition_part([]),
        member_part([]),
        retention_part([], {}, None),
        client_part([], [], [], {}),
    ],
    ids=["lag", "partitions", "members", "retention", "clients"],
)
def test_no_rows_give_empty_tables_and_no_plot(part: ReportPart) -> None:
    assert all(isinstance(each, Table) and not each.rows for each in part.sections)
    assert "kafka_msgs_report_rows" in exposition(Report("Empty", part.sections, metrics=part.metrics))


def test_figures_out_of_some_rows_say_so_on_the_page_and_in_json() -> None:
    members = [{"group": "g", "memberId": str(number), "assigned": 2} for number in range(3)]
    partitions = [{"topic": "t", "partition": 0, "bytes": 5, "records": 1}]
    parts = [
        lag_part([FALLING_BEHIND], NOW, 20_000),
        retention_part(SEGMENTS, {}, NOW, 20_000),
        partition_part(partitions, 20_000),
        member_part(members, 20_000),
    ]
    for part in parts:
        for shown in (each for each in part.sections if isinstance(each, Table)):
            assert " of 20,000 rows" in shown.note_text, shown.title
    for whole in (lag_part([FALLING_BEHIND], NOW), partition_part(partitions, 1), member_part(members)):
        assert not any(" rows" in each.note_text for each in whole.sections if isinstance(each, Table))


def test_the_number_of_all_rows_is_in_json_beside_those_that_are_shown() -> None:
    given = Table("Lags", ("lag",), ((9,), (5,)), "a note", total=12_345)
    (section,) = to_dict(report_of("Report", [given]))["sections"]
    assert (section["rows"], section["total"], section["note"]) == ([[9], [5]], 12_345, "2 of 12,345 rows; a note")
    assert "2 of 12,345 rows; a note" in render_page(report_of("Report", [given]), "")
    (section,) = to_dict(report_of("Report", [Table("Lags", ("lag",), ((9,),))]))["sections"]
    assert (section["total"], section["note"]) == (1, "")


def test_totals_count_each_partition_and_never_deduct_what_is_ahead() -> None:
    """Two partitions with 90 unread records together, and one that is 4,907 offsets ahead."""
    rows = [
        commit(lag=60, ahead=0),
        commit(topicPartition=1, lag=30, ahead=0),
        commit(topicPartition=2, lag=0, ahead=4907),
        commit(topicPartition=3, lag=None, ahead=None),
        commit(topic="payments", lag=5, ahead=0),
    ]
    part = lag_part(rows, NOW)
    assert samples(part, "kafka_group_lag_records_sum") == {("billing",): 95}
    assert samples(part, "kafka_group_lag_records_max") == {("billing",): 60}
    assert samples(part, "kafka_group_ahead_records_sum") == {("billing",): 4907}
    assert samples(part, "kafka_group_partitions") == {("billing",): 5}
    assert samples(part, "kafka_group_unknown_lag_partitions") == {("billing",): 1}
    topics = {("billing", "orders"): 90, ("billing", "payments"): 5}
    assert samples(part, "kafka_group_topic_lag_records_sum") == topics
    assert samples(part, "kafka_group_topic_lag_records_max") == {**topics, ("billing", "orders"): 60}


def test_a_group_without_a_known_end_has_no_sum() -> None:
    part = lag_part([commit(lag=None, ahead=None)], NOW)
    assert samples(part, "kafka_group_lag_records_sum") == {}
    assert samples(part, "kafka_group_unknown_lag_partitions") == {("billing",): 1}


def test_the_status_of_a_group_is_the_worst_of_its_partitions() -> None:
    rows = [
        {"group": "g", "topic": "t", "partition": n, "status": s} for n, s in enumerate(("OK", "STALLED", "WARNING"))
    ]
    found = {each.name: [sample.value for sample in each.samples] for each in lag_metrics(rows)}
    assert found["kafka_group_partition_status"] == [1, 4, 2]
    assert found["kafka_group_status"] == [4]


def test_labels_that_no_row_has_are_omitted_and_unknown_values_are_empty() -> None:
    (lag, *_) = lag_metrics([{"group": "g", "topic": "t", "partition": 0, "lag": 1}])
    assert lag.samples[0].labels == {"group": "g", "topic": "t", "partition": "0"}
    rows = [{"group": "g", "topic": "t", "partition": 0, "lag": 1, "clientId": None, "clientHost": "/::1"}]
    (lag, *_) = lag_metrics(rows)
    labels = {"group": "g", "topic": "t", "partition": "0", "client_id": "", "member_host": "/::1"}
    assert lag.samples[0].labels == labels


def test_a_series_has_the_value_of_the_latest_commit() -> None:
    """With an unknown number of partitions of __consumer_offsets, a group may have two commits for a partition."""
    place = {"group": "g", "topic": "t", "partition": 0}
    rows = [
        {**place, "lag": 9, "commitTimestamp": 5},
        {**place, "lag": 1, "commitTimestamp": 7},
        {**place, "lag": None, "commitTimestamp": None},
        {**place, "partition": 1, "lag": 4, "commitTimestamp": 1},
    ]
    (lag, *_) = lag_metrics(rows)
    assert [(sample.labels["partition"], sample.value) for sample in lag.samples] == [("0", 1), ("1", 4)]
