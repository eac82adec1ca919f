"""The report of the job ``group-offsets``: largest lags, pending offsets and record counts, from small tables.

Defines the content of the report. ``kafka_msgs.report`` renders it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.commit_hours import SHOWN_HOURS
from kafka_msgs.analysis.group_offsets_job import LOOKED_AT, GroupOffsetsSummary, lag_totals, top_rows
from kafka_msgs.analysis.job import REPORT_ROWS
from kafka_msgs.analysis.lag_status import with_times_and_statuses
from kafka_msgs.log.timestamps import LogTimestamps
from kafka_msgs.report import Report, ReportPart, Section, by_hour, report_of
from kafka_msgs.report.sections.lag import lag_part
from kafka_msgs.report.sections.table_building import bars, first_rows

__all__ = ["group_offsets_report"]

_SHOWN_GROUPS: Final = 20
_SHOWN_LINES: Final = 6
_BY_LAG: Final = [("lag", "descending"), ("group", "ascending")]
_WORST: Final = [*_BY_LAG, ("topic", "ascending"), ("topicPartition", "ascending")]
_BY_KEY: Final = [("group", "ascending"), ("topic", "ascending"), ("topicPartition", "ascending")]
_GROUPS: Final = ("group", "kind", "state", "epoch", "members", "partitions", "lag", "lastCommit")
_OFFSETS: Final = (
    "group", "kind", "state", "topic", "topicPartition", "committedOffset", "endOffset", "lag", "metadata",
)  # fmt: skip
_LAGS: Final = [
    "group", "topic", "topicPartition", "committedOffset", "endOffset", "lag", "ahead", "metadata",
    "commitTimestampMs", "firstCommitMs", "firstCommitOffset", "window",
]  # fmt: skip
"""The columns of the lag statistics. Only these are converted to Python values, since there may be many offsets."""
_PENDING: Final = ("group", "topic", "topicPartition", "producerId", "committedOffset")


def group_offsets_report(
    found: GroupOffsetsSummary,
    problems: pa.Table,
    problem_count: int,
    places: Mapping[tuple[str, int], LogTimestamps],
) -> Report:
    """Return the report about a run. Timestamps are looked up in the logs of ``places``. Raises ``OSError``."""
    # Only columns without timestamps become Python values: Python cannot represent all timestamps.
    groups = top_rows(found.groups.drop_columns("lastCommit"), _BY_LAG).to_pylist()
    worst = top_rows(found.worst, _WORST, LOOKED_AT)
    pending = top_rows(found.pending, _BY_KEY).select(_PENDING)
    largest = _described(worst.slice(0, REPORT_ROWS), found)
    sections: list[Section | ReportPart] = [
        first_rows(
            "Groups",
            _GROUPS,
            [{**row, "lastCommit": row["lastCommitMs"]} for row in groups],
            found.groups.num_rows,
            lastCommit="time",
        ),
        *bars(
            "Lag of each group",
            "lag.svg",
            [row for row in groups if row["lag"] is not None],
            lambda row: f"{row['group']} ({row['kind']}, {row['state']})",
            {"lag": "lag"},
            "lag in records",
            most=_SHOWN_GROUPS,
            which="groups with the largest lags",
        ),
        lag_part(
            *with_times_and_statuses(worst.select(_LAGS).to_pylist(), places),
            total=found.rows.get("served", 0),
            totals=lag_totals(found, "group", "topic").to_pylist(),
        ),
        first_rows("Committed offsets, the largest lags first", _OFFSETS, largest, found.rows.get("served", 0)),
        first_rows("In open transactions", _PENDING, pending.to_pylist(), found.rows.get("pending", 0)),
        *_hours_plot(found),
        first_rows("Records that were read", ("records", "count"), _counted(found)),
        first_rows("Problems", problems.column_names, problems.to_pylist(), problem_count),
    ]
    return report_of("Committed offsets of all groups", sections)


def _described(worst: pa.Table, found: GroupOffsetsSummary) -> list[dict[str, Any]]:
    """Return offsets with the kind and state of their groups."""
    names = pc.unique(worst["group"])
    known = found.groups.filter(pc.is_in(found.groups["group"], names)).select(["group", "kind", "state"])
    groups = {row["group"]: row for row in known.to_pylist()}
    unknown = {"kind": None, "state": None}
    shown = worst.select([name for name in _OFFSETS if name not in unknown])
    return [{**row, **groups.get(row["group"], unknown)} for row in shown.to_pylist()]


def _hours_plot(found: GroupOffsetsSummary) -> list[Section]:
    """Return a plot of hourly commits for the most active groups, limited to the latest hours to keep it small."""
    hours = found.hours
    busiest = hours.group_by("group").aggregate([("commits", "sum")])
    order = [("commits_sum", "descending"), ("group", "ascending")]
    names = busiest.sort_by(order).slice(0, _SHOWN_LINES)["group"].to_pylist()
    if not names:
        return []
    shown = sorted(pc.unique(hours["hour"].drop_null()).to_pylist())[-SHOWN_HOURS:]
    counts = {hour: [0] * len(names) for hour in shown}
    for row in hours.filter(pc.is_in(hours["group"], pa.array(names))).to_pylist():
        if row["hour"] in counts:
            counts[row["hour"]][names.index(row["group"])] += row["commits"]
    return [by_hour("Commits an hour", "commits.svg", "commits an hour", names, counts)]


def _counted(found: GroupOffsetsSummary) -> list[dict[str, Any]]:
    """Return record counts by role, and the outcomes of transactional commits."""
    sums = dict(found.counts)
    sums["open"] = sums.get("in transactions", 0) - sums.get("committed", 0) - sums.get("aborted", 0)
    return [{"records": said, "count": sums.get(what, 0)} for what, said in _SAID.items()]


_SAID: Final = {
    "commits": "commits outside transactions",
    "committed": "commits in transactions that were committed",
    "aborted": "commits in transactions that were aborted",
    "open": "commits in open transactions",
    "deletions": "deletions of offsets",
    "records of groups": "records of groups",
    "markers": "ends of transactions",
}
