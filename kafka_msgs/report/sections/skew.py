"""Skew of data between partitions and brokers, and of partitions between group members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import pstdev
from typing import Any, Final

from kafka_msgs.report.model import ReportPart, Section
from kafka_msgs.report.sections.table_building import (
    Row,
    Rows,
    bars,
    grouped,
    largest_first,
    metrics_of,
    subset_note,
    table_from,
)

__all__ = ["broker_part", "member_part", "partition_part"]

_SHOWN_BROKERS: Final = 30
_TOPIC: Final = (
    "topic", "partitions", "bytes", "largestPartition", "largestBytes", "skew", "variation", "records",
    "recordSkew",
)  # fmt: skip
_BROKER: Final = ("broker", "leaders", "preferred", "replicas", "leaderBytes", "preferredBytes", "replicaBytes")
_BROKER_METRICS: Final = {
    "kafka_broker_leaders": "leaders",
    "kafka_broker_replicas": "replicas",
    "kafka_broker_leader_bytes": "leaderBytes",
    "kafka_broker_replica_bytes": "replicaBytes",
}
_MEMBERS: Final = ("group", "members", "assigned", "fewest", "most", "skew", "idle")
_MEMBER_METRICS: Final = {
    "kafka_group_members": "members",
    "kafka_group_idle_members": "idle",
    "kafka_group_assignment_skew_ratio": "skew",
}
_NOTE: Final = "skew: the largest by the mean, 1 where all are alike; variation: standard deviation by the mean"


def partition_part(rows: Rows, total: int | None = None) -> ReportPart:
    """Return the skew between the partitions of each topic.

    A row is a partition: ``topic``, ``partition``, ``bytes``, ``records``. ``total`` is the total number of partitions,
    if ``rows`` contains only the largest ones.
    """
    topics = largest_first([_topic(name, each) for (name,), each in grouped(rows, "topic").items()], "skew", "topic")
    note = subset_note(rows, total, "the most bytes", _NOTE)
    return ReportPart(
        (table_from("Skew between partitions of a topic, the largest first", topics, _TOPIC, note),),
        metrics_of(topics, {"kafka_topic_skew_ratio": "skew", "kafka_topic_bytes": "bytes"}),
    )


def _topic(name: str, rows: Rows) -> dict[str, Any]:
    sizes, records = [row["bytes"] for row in rows], [row["records"] for row in rows]
    largest = max(rows, key=lambda row: (row["bytes"], -row["partition"]))
    return {
        "topic": name,
        "partitions": len(rows),
        "bytes": sum(sizes),
        "largestPartition": largest["partition"],
        "largestBytes": largest["bytes"],
        "skew": _skew(sizes),
        "variation": _variation(sizes),
        "records": sum(records),
        "recordSkew": _skew(records),
    }


def _skew(values: Sequence[float]) -> float | None:
    """Return the maximum divided by the mean: 1 means perfectly even. None for a mean of 0."""
    return max(values) * len(values) / sum(values) if any(values) else None


def _variation(values: Sequence[float]) -> float | None:
    """Return the standard deviation divided by the mean: 0 means perfectly even. None for a mean of 0."""
    return pstdev(values) * len(values) / sum(values) if any(values) else None


def broker_part(rows: Rows, placements: Mapping[tuple[str, int], tuple[int, Sequence[int]]]) -> ReportPart:
    """Return the part about the data on each broker, empty if no placement is known.

    The rows are the same as in ``partition_part``. ``placements`` contains the leader, -1 for none, and the replicas of
    partitions. The first replica is the preferred leader, which is used because no partition has a leader after a
    shutdown. Partitions without a row count with 0 bytes.
    """
    sizes = {(row["topic"], row["partition"]): row["bytes"] for row in rows}
    brokers: defaultdict[int, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(_BROKER, 0))
    for place, (leader, replicas) in placements.items():
        for broker in replicas:
            _count(brokers[broker], "replicas", "replicaBytes", sizes.get(place, 0))
        for broker in replicas[:1]:
            _count(brokers[broker], "preferred", "preferredBytes", sizes.get(place, 0))
        if leader >= 0:
            _count(brokers[leader], "leaders", "leaderBytes", sizes.get(place, 0))
    found: list[Row] = [{**each, "broker": broker} for broker, each in sorted(brokers.items())]
    return ReportPart(tuple(_broker_sections(found)), metrics_of(found, _BROKER_METRICS)) if found else ReportPart()


def _count(broker: dict[str, Any], number: str, size: str, value: int) -> None:
    broker[number] += 1
    broker[size] += value


def _broker_sections(brokers: Rows) -> list[Section]:
    skew = _skew([row["preferredBytes"] for row in brokers])
    note = "as the metadata log has it; preferred: the first replica, which leads where it can"
    known = "" if skew is None else f"; preferredBytes of the largest broker by the mean: {skew:.2f}"
    table = table_from("Skew between brokers", brokers, _BROKER, note + known)
    plot = bars(
        "Bytes of each broker",
        "brokers.svg",
        largest_first(brokers, "replicaBytes", "broker"),
        lambda row: f"broker {row['broker']}",
        {"preferred leader": "preferredBytes", "replica": "replicaBytes"},
        "bytes",
        most=_SHOWN_BROKERS,
    )
    return [table, *plot]


def member_part(rows: Rows, total: int | None = None) -> ReportPart:
    """Return the skew of partitions and active tasks between the members of each group.

    A row is a member: ``group``, ``memberId``, and ``assigned``, its number of partitions and tasks, which may be 0.
    ``total`` is the total number of members, if ``rows`` contains only the members with the most assignments.
    """
    groups = [_members(name, each) for (name,), each in grouped(rows, "group").items()]
    shown = largest_first(groups, "skew", "group")
    note = subset_note(rows, total, "the most partitions", _NOTE.partition(";")[0])
    return ReportPart(
        (table_from("Skew between members of a group", shown, _MEMBERS, note),),
        metrics_of(shown, _MEMBER_METRICS),
    )


def _members(name: str, rows: Rows) -> dict[str, Any]:
    counts = [row["assigned"] for row in rows]
    return {
        "group": name,
        "members": len(rows),
        "assigned": sum(counts),
        "fewest": min(counts),
        "most": max(counts),
        "skew": _skew(counts),
        "idle": counts.count(0),
    }
