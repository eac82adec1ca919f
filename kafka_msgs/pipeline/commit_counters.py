"""Counters of a pass over a partition, for the report. Incremental runs add to them.

They count the records that were read. Hourly commit counts are kept for the latest hours only.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

from kafka_msgs.pipeline.live_records import UNDECIDED, rows_with
from kafka_msgs.pipeline.record_classification import ClassifiedRecords

__all__ = ["HOURS", "SHOWN_HOURS", "CommitCounters"]

HOURS: Final = pa.schema([("group", pa.string()), ("hour", pa.int64()), ("commits", pa.int64())])
"""The number of offsets that each group committed per hour. ``hour`` is its start in milliseconds since the epoch."""
SHOWN_HOURS: Final = 24 * 31
_HOUR_MS: Final = 3_600_000
_BUFFER: Final = 1 << 18


@define
class CommitCounters:
    """Counts the records of a partition by role, and commits by group and hour."""

    numbers: dict[str, int] = field(factory=dict)
    _hours: pa.Table = field(factory=HOURS.empty_table)
    _new: list[pa.Table] = field(factory=list)
    _rows: int = 0

    def add(self, found: ClassifiedRecords) -> None:
        """Count records."""
        deletions = found.commits["value"].null_count
        waiting = rows_with(found.commits, UNDECIDED).num_rows
        self.count("commits", found.commits.num_rows - deletions - waiting)
        self.count("deletions", deletions)
        self.count("in transactions", waiting)
        self.count("records of groups", found.others.num_rows)
        self.count("markers", found.markers.num_rows)
        self._add_hours(found)

    def count(self, what: str, number: int) -> None:
        """Add a number."""
        self.numbers[what] = self.numbers.get(what, 0) + int(number)

    @property
    def hours(self) -> pa.Table:
        """The commits by group and hour, with the columns of ``HOURS``."""
        found = pa.concat_tables([self._hours, *self._new])
        summed = found.group_by(["group", "hour"]).aggregate([("commits", "sum")])
        self._hours = summed.rename_columns({"commits_sum": "commits"}).select(HOURS.names).cast(HOURS)
        self._new, self._rows = [], 0
        return self._hours

    def _add_hours(self, found: ClassifiedRecords) -> None:
        times = found.commits["timestamp"].combine_chunks()
        table = pa.table({"group": found.groups, "hour": pc.multiply(pc.divide(times, _HOUR_MS), _HOUR_MS)})
        counted = table.filter(pc.and_(found.commits["value"].is_valid(), pc.greater_equal(times, 0)))
        sums = counted.group_by(["group", "hour"]).aggregate([([], "count_all")])
        self._new.append(sums.rename_columns({"count_all": "commits"}).select(HOURS.names).cast(HOURS))
        self._rows += sums.num_rows
        if self._rows >= max(_BUFFER, self._hours.num_rows):
            _ = self.hours

    def facts(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""
        return dict(self.numbers)
