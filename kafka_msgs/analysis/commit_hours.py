"""Commits by group and hour, for the report. Incremental runs add to them.

Hours are kept for about a month; older ones are summed to one row per group without an hour.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

from kafka_msgs.analysis.record_classification import ClassifiedRecords

__all__ = ["HOURS", "SHOWN_HOURS", "CommitHours"]

HOURS: Final = pa.schema([("group", pa.string()), ("hour", pa.int64()), ("commits", pa.int64())])
"""The number of offsets that each group committed per hour. ``hour`` is its start in milliseconds since the epoch, and
null for all hours before the latest ``SHOWN_HOURS``."""
SHOWN_HOURS: Final = 24 * 31
_HOUR_MS: Final = 3_600_000
_BUFFER: Final = 1 << 18


@define
class CommitHours:
    """Counts the commits of a partition by group and hour."""

    _hours: pa.Table = field(factory=HOURS.empty_table)
    _new: list[pa.Table] = field(factory=list)
    _rows: int = 0

    def add(self, found: ClassifiedRecords) -> None:
        """Count commits."""
        times = found.commits["timestamp"].combine_chunks()
        table = pa.table({"group": found.groups, "hour": pc.multiply(pc.divide(times, _HOUR_MS), _HOUR_MS)})
        counted = table.filter(pc.and_(found.commits["value"].is_valid(), pc.greater_equal(times, 0)))
        sums = counted.group_by(["group", "hour"]).aggregate([([], "count_all")])
        self._new.append(sums.rename_columns({"count_all": "commits"}).select(HOURS.names).cast(HOURS))
        self._rows += sums.num_rows
        if self._rows >= max(_BUFFER, self._hours.num_rows):
            _ = self.hours

    def merge(self, later: CommitHours) -> None:
        """Add the counts of a later range."""
        self._new.append(later.hours)
        self._rows += self._new[-1].num_rows

    @property
    def hours(self) -> pa.Table:
        """The commits by group and hour, with the columns of ``HOURS``."""
        found = pa.concat_tables([self._hours, *self._new]).combine_chunks()
        oldest = (pc.max(found["hour"]).as_py() or 0) - (SHOWN_HOURS - 1) * _HOUR_MS
        recent = pc.if_else(pc.greater_equal(found["hour"], oldest), found["hour"], None)
        found = found.set_column(HOURS.get_field_index("hour"), HOURS.field("hour"), recent)
        summed = found.group_by(["group", "hour"]).aggregate([("commits", "sum")])
        self._hours = summed.rename_columns({"commits_sum": "commits"}).select(HOURS.names).cast(HOURS)
        self._new, self._rows = [], 0
        return self._hours
