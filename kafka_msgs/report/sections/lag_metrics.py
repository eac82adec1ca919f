"""The metrics of committed offsets: lag per partition, and exact totals per group and per topic of a group.

``kafka-msgs lag``, its exporter and the reports use the same functions. An offset beyond the end counts as ``ahead``,
which is never deducted from the lag of other partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka_msgs.report.metric_definitions import LagStatus
from kafka_msgs.report.model import Metric
from kafka_msgs.report.sections.table_building import Row, Rows, grouped, metrics_of

__all__ = ["group_totals", "lag_metrics", "topic_totals", "worst_status"]

_OWNED: Final = {
    "kafka_group_lag_records": "lag",
    "kafka_group_lag_seconds": "lagSeconds",
    "kafka_group_ahead_records": "ahead",
    "kafka_group_committed_offset": "committedOffset",
    "kafka_group_end_offset": "endOffset",
    "kafka_group_partition_status": "statusNumber",
}
_RATES: Final = {
    "kafka_group_consumed_per_hour": "consumedPerHour",
    "kafka_group_produced_per_hour": "producedPerHour",
    "kafka_group_catch_up_seconds": "catchUpSeconds",
    "kafka_group_streams_partition_time_seconds": "partitionSeconds",
}
_TOTALS: Final = {
    "lag_records_sum": "lag",
    "lag_records_max": "largestLag",
    "ahead_records_sum": "ahead",
    "partitions": "partitions",
    "unknown_lag_partitions": "unknown",
}
_OF_TOPICS: Final = {f"kafka_group_topic_{name}": column for name, column in _TOTALS.items()}
_OF_GROUPS: Final = {f"kafka_group_{name}": column for name, column in _TOTALS.items()}


def lag_metrics(rows: Rows, totals: Rows = (), *, partition: str = "partition") -> tuple[Metric, ...]:
    """Return the metrics of partitions, topics and groups.

    A row has ``group``, ``topic``, and any of ``lag``, ``ahead``, ``lagSeconds``, ``committedOffset``, ``endOffset``,
    ``status``, ``clientId``, ``clientHost`` and the rates of ``lag_part``. ``partition`` is the column of the partition
    number. ``totals`` has the rows of ``topic_totals`` for all partitions, if ``rows`` is only a subset.
    """
    totals = totals or topic_totals(rows)
    rows = _latest(rows, partition)
    numbered = [{**row, "statusNumber": _number(row.get("status"))} for row in rows]
    labels = {"client_id": "clientId", "member_host": "clientHost", "partition": partition}
    statuses = [{"group": name, "statusNumber": _number(found)} for name, found in worst_status(rows).items()]
    return (
        *metrics_of(numbered, _OWNED, **labels),
        *metrics_of(rows, _RATES, partition=partition),
        *metrics_of(statuses, {"kafka_group_status": "statusNumber"}),
        *metrics_of(group_totals(totals), _OF_GROUPS),
        *metrics_of(totals, _OF_TOPICS),
    )


def _latest(rows: Rows, partition: str) -> Rows:
    """Return the row with the latest commit of each group in each partition: a series has one value.

    There may be several if the number of partitions of ``__consumer_offsets`` is unknown, because none is stale then.
    """
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        place = row["group"], row["topic"], row[partition]
        found[place] = max(found.get(place, row), row, key=_commit_time)
    return list(found.values())


def _commit_time(row: Row) -> int:
    found = row.get("commitTimestamp", row.get("commitTimestampMs"))
    return -1 if found is None else int(found)


def topic_totals(rows: Rows) -> list[dict[str, Any]]:
    """Return one row per group and topic: ``partitions``, ``unknown`` lags, sum and largest ``lag``, and ``ahead``."""
    parts = [
        {
            **{name: row.get(name) for name in ("group", "topic", "lag", "ahead")},
            "largestLag": row.get("lag"),
            "partitions": 1,
            "unknown": int(row.get("lag") is None),
        }
        for row in rows
    ]
    return [
        {"group": group, "topic": topic, **_sum(each)}
        for (group, topic), each in grouped(parts, "group", "topic").items()
    ]


def group_totals(totals: Rows) -> list[dict[str, Any]]:
    """Return one row per group from the rows of ``topic_totals``, with the same columns."""
    return [{"group": group, **_sum(each)} for (group,), each in grouped(totals, "group").items()]


def _sum(rows: Rows) -> dict[str, Any]:
    known = {name: [row[name] for row in rows if row[name] is not None] for name in _TOTALS.values()}
    return {name: (max if name == "largestLag" else sum)(each) if each else None for name, each in known.items()}


def worst_status(rows: Iterable[Row]) -> Mapping[str, str]:
    """Return the worst ``status`` of each group, for the rows that have one."""
    worst: dict[str, str] = {}
    for row in rows:
        if (status := row.get("status")) is not None:
            group = row["group"]
            worst[group] = max(worst.get(group, status), status, key=LagStatus.__getitem__)
    return worst


def _number(status: str | None) -> int | None:
    return None if status is None else int(LagStatus[status])
