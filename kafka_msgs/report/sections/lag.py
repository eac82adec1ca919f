"""Lag in records and in time, its trend, and the partition times written by Kafka Streams.

Time lag is the age of the oldest unconsumed record, relative to the newest known time of the input. The trend compares
the offsets that the group has committed with the records produced since its oldest commit in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka_msgs.internal_topics.streams_metadata import decode_streams_metadata
from kafka_msgs.report.model import ReportPart, Section
from kafka_msgs.report.sections.lag_metrics import group_totals, lag_metrics, topic_totals, worst_status
from kafka_msgs.report.sections.table_building import (
    Row,
    Rows,
    bars,
    grouped,
    largest_first,
    subset_note,
    table_from,
)

__all__ = ["lag_part", "with_times"]

_SECOND_MS: Final = 1000
_HOUR_MS: Final = 3_600_000
_SHOWN_GROUPS: Final = 20
_KEY: Final = ("group", "topic", "topicPartition")
_TIME: Final = (
    *_KEY, "lag", "status", "unreadSince", "lagSeconds", "historySince", "consumedPerHour", "producedPerHour",
    "trendPerHour", "catchUpSeconds",
)  # fmt: skip
_GROUPS: Final = (
    "group", "partitions", "unknown", "lag", "status", "lagSeconds", "consumedPerHour", "producedPerHour",
    "trendPerHour", "catchUpSeconds",
)  # fmt: skip
_STREAMS: Final = (*_KEY, "partitionTime", "behindSeconds", "processors")
_NOTE: Final = (
    "lagSeconds: age of the oldest record that is not consumed, at the newest time in the input; empty where the log "
    "of the partition is not in it; trendPerHour: produced less consumed since historySince, above 0 where a lag grows"
)


def lag_part(rows: Rows, as_of: int | None, total: int | None = None, totals: Rows = ()) -> ReportPart:
    """Return lag, trend and partition times of committed offsets.

    A row has ``group``, ``topic``, ``topicPartition``, ``committedOffset``, ``endOffset``, ``lag``, ``metadata`` and
    ``commitTimestampMs``. If known, it also has ``unreadMs``, the time of the oldest unconsumed record;
    ``firstCommitMs`` and ``firstCommitOffset``, the oldest commit in the history; ``firstEndOffset``, the end of the
    partition at that time; and the ``status`` of the group in the partition. ``as_of`` is the newest time of the input,
    in milliseconds since the epoch. ``total`` is the total number of rows, if ``rows`` contains only the rows with the
    largest lags. ``totals`` then has the rows of ``topic_totals`` for all partitions, including groups without a row.
    """
    known = [with_times(row, as_of) for row in rows]
    timed = any(row["lagSeconds"] is not None for row in known)
    worst = largest_first(known, *(("lagSeconds", "lag") if timed else ("lag",)), *_KEY)
    statuses = worst_status(rows)
    groups = [{**_group(name, each), "status": statuses.get(name)} for (name,), each in grouped(known, "group").items()]
    totals = totals or topic_totals(rows)
    exact = {
        row["group"]: {name: row[name] for name in ("partitions", "unknown", "lag")} for row in group_totals(totals)
    }
    groups = [{**each, **exact[each["group"]]} for each in groups]
    streams = [row for row in known if row["streams"]]
    by_age = largest_first(groups, "lagSeconds", "group")
    sections: list[Section] = [
        table_from(
            "Lag and trend of each group",
            by_age,
            _shown(_GROUPS, statuses),
            subset_note(rows, total, "the largest lags"),
        ),
        *bars(
            "Lag of each group in time",
            "lag-time.svg",
            [row for row in by_age if row["lagSeconds"] is not None],
            lambda row: str(row["group"]),
            {"lag": "lagSeconds"},
            "age of the oldest record that is not consumed, in seconds",
            most=_SHOWN_GROUPS,
        ),
        table_from("Lag in time and trend, the longest first", worst, _shown(_TIME, statuses), _NOTE, total),
    ]
    if streams:
        sections.append(table_from("Partition times of Kafka Streams", streams, _STREAMS))
    return ReportPart(tuple(sections), lag_metrics(known, totals, partition="topicPartition"))


def _shown(columns: Sequence[str], statuses: Mapping[str, str]) -> list[str]:
    """Return the columns of a table, without the status if no row has one."""
    return [name for name in columns if statuses or name != "status"]


def with_times(row: Row, as_of: int | None) -> dict[str, Any]:
    """Return a row of ``lag_part`` with derived columns: times, ages, rates, and the partition time of Streams."""
    unread, lag = row.get("unreadMs"), row.get("lag")
    age = 0.0 if lag is not None and lag <= 0 else _age(unread, as_of)
    return {**row, "unreadSince": unread, "lagSeconds": age, **_trend(row, as_of), **_streams(row, as_of)}


def _age(moment: int | None, as_of: int | None) -> float | None:
    if moment is None or moment < 0 or as_of is None:
        return None
    return max(0.0, (as_of - moment) / _SECOND_MS)


def _trend(row: Row, as_of: int | None) -> dict[str, Any]:
    """Return the hourly rates of consumed and produced records since the oldest commit, and derived values."""
    since = row.get("firstCommitMs")
    consumed = _rate(row.get("firstCommitOffset"), row.get("committedOffset"), since, row.get("commitTimestampMs"))
    produced = _rate(row.get("firstEndOffset"), row.get("endOffset"), since, as_of)
    known = consumed is not None and produced is not None
    return {
        "historySince": since,
        "consumedPerHour": consumed,
        "producedPerHour": produced,
        "trendPerHour": produced - consumed if known else None,  # type: ignore[operator]
        "catchUpSeconds": _catch_up(row.get("lag"), consumed, produced),
    }


def _rate(before: int | None, after: int | None, start: int | None, end: int | None) -> float | None:
    """Return the hourly rate, or None if it is unknown or no time has passed."""
    if before is None or after is None or start is None or end is None or start < 0 or end <= start:
        return None
    return (after - before) * _HOUR_MS / (end - start)


def _catch_up(lag: int | None, consumed: float | None, produced: float | None) -> float | None:
    """Return the seconds until the group has consumed all records at its current rate, or None if it never will."""
    if lag is not None and lag <= 0:
        return 0.0
    if lag is None or consumed is None or produced is None or consumed <= produced:
        return None
    return lag / (consumed - produced) * (_HOUR_MS // _SECOND_MS)


def _streams(row: Row, as_of: int | None) -> dict[str, Any]:
    found = decode_streams_metadata(row.get("metadata"))
    if found is None:
        return {"streams": False}
    time = found.partition_time
    return {
        "streams": True,
        "partitionTime": time,
        "partitionSeconds": None if time is None else time / _SECOND_MS,
        "behindSeconds": _age(time, as_of),
        "processors": ", ".join(f"{key}: {number}" for key, number in found.processors.items()) or None,
    }


def _group(name: str, rows: Rows) -> dict[str, Any]:
    """Aggregate a group: the longest time lag, and the rates of partitions that have both rates."""
    rated = [row for row in rows if row["trendPerHour"] is not None]
    ages = [row["lagSeconds"] for row in rows if row["lagSeconds"] is not None]
    consumed, produced = (
        sum(row[column] for row in rated) if rated else None for column in ("consumedPerHour", "producedPerHour")
    )
    waits = [row["catchUpSeconds"] for row in rows]
    return {
        "group": name,
        "lagSeconds": max(ages, default=None),
        "consumedPerHour": consumed,
        "producedPerHour": produced,
        "trendPerHour": None if consumed is None or produced is None else produced - consumed,
        "catchUpSeconds": None if None in waits else max(waits, default=None),
    }
