"""Commits by group and hour, for the report. Incremental runs add to them.

Hours are kept for about a month; older ones are summed to one row per group without an hour.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.arrow_tables import ReducingBuffer, aggregated, columns, filled, hours_of, replaced
from kafka_msgs.analysis.record_classification import ClassifiedRecords

__all__ = ["HOURS", "SHOWN_HOURS", "commit_hours", "commits_by_hour", "summed_hours"]

HOURS: Final = pa.schema([*columns("group"), ("hour", pa.int64()), ("commits", pa.int64())])
"""The number of offsets that each group committed per hour. ``hour`` is its start in milliseconds since the epoch, and
null for all hours before the latest ``SHOWN_HOURS``."""
SHOWN_HOURS: Final = 24 * 31
_HOUR_MS: Final = 3_600_000
_BUFFER: Final = 1 << 18


def commit_hours(hours: pa.Table | None = None) -> ReducingBuffer:
    """Return a buffer that adds up the commits of a partition by group and hour, with the columns of ``HOURS``."""
    return ReducingBuffer(HOURS.empty_table() if hours is None else hours, summed_hours, _BUFFER)


def commits_by_hour(found: ClassifiedRecords) -> pa.Table:
    """Return the number of commits by group and hour, with the columns of ``HOURS``."""
    times = found.commits["timestamp"].combine_chunks()
    table = filled(HOURS, len(times), {"group": found.groups, "hour": hours_of(times), "commits": 1})
    return _by_hour(table.filter(pc.and_(found.commits["value"].is_valid(), pc.greater_equal(times, 0))))


def _by_hour(rows: pa.Table) -> pa.Table:
    return aggregated(rows, ["group", "hour"], {"commits": "sum"}).select(HOURS.names).cast(HOURS)


def summed_hours(rows: pa.Table) -> pa.Table:
    """Return one row per group and hour, in which all old hours of a group are one."""
    oldest = (pc.max(rows["hour"]).as_py() or 0) - (SHOWN_HOURS - 1) * _HOUR_MS
    recent = pc.if_else(pc.greater_equal(rows["hour"], oldest), rows["hour"], None)
    return _by_hour(replaced(rows, hour=recent))
