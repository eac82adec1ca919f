"""The latest commits of each group and partition in ``__consumer_offsets``, as a reducer: windows for the status.

Commits in transactions count if their transaction was committed. The deletion of an offset ends its earlier history.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.arrow_tables import ReducingBuffer, begins, columns, one_array, replaced
from kafka_msgs.analysis.lag_status import DISTANCE_MS, WINDOW
from kafka_msgs.analysis.live_records import (
    ABORTS,
    COMMITS,
    EFFECTIVE,
    UNDECIDED,
    RowOrder,
    deleted_later,
    end_markers,
    first_end_markers,
    rows_with,
)
from kafka_msgs.analysis.record_classification import ClassifiedRecords
from kafka_msgs.columns.decode import decode_column
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey

__all__ = ["ROWS", "WINDOWS", "CommitWindows"]

_LONG: Final = pa.int64()
_NO_PRODUCER: Final = -1
_COMMITS: Final = pa.array([EFFECTIVE, UNDECIDED], pa.int8())
_OF_RECORD: Final = ["role", "offset", "key", "producer"]
ROWS: Final = columns("role offset key producer time committed")
"""The rows of a state: commits with their time and committed offset, which are null for deletions and markers."""
_COMMIT: Final = pa.struct(columns("position time offset"))
WINDOWS: Final = columns("group topic topicPartition").append(pa.field("window", pa.list_(_COMMIT)))
"""The commits in the window of each offset, by time, with the attributes of an ``Observation``."""
_BUFFER: Final = 1 << 16


class CommitWindows:
    """The state of a range of a partition. ``size`` is the same as in ``LagHistory``.

    ``open_start`` is True for a range with records before it: its deletions and markers may concern them.
    """

    def __init__(self, rows: pa.Table | None = None, *, size: int = WINDOW, open_start: bool = False) -> None:
        self._size = size
        self._open_start = open_start
        self._rows = ReducingBuffer(ROWS.empty_table() if rows is None else rows, self._reduced, _BUFFER)

    def add(self, batch: ClassifiedRecords) -> None:
        """Add the next records of the range."""
        commits = batch.commits.select(_OF_RECORD)
        times = {"time": "commit_timestamp", "committed": "offset"}
        for name, source in times.items():
            commits = commits.append_column(name, pc.struct_field(batch.values, source))
        markers = batch.markers.select(_OF_RECORD)
        self._rows.add(pa.concat_tables([commits, markers], promote_options="default"))

    def merge(self, later: CommitWindows) -> None:
        """Add the state of the next range."""
        self._rows.add(later.checkpoint())

    def checkpoint(self) -> pa.Table:
        """Return the complete state, with the columns of ``ROWS``."""
        return self._rows.all()

    def windows(self) -> pa.Table:
        """Return the windows, with the columns of ``WINDOWS``. Commits in open transactions do not count."""
        rows = rows_with(self.checkpoint(), EFFECTIVE)
        rows = rows.filter(rows["committed"].is_valid()).sort_by([("key", "ascending"), ("time", "ascending")])
        rows = rows.combine_chunks()
        starts = pc.indices_nonzero(begins(one_array(rows["key"])))
        keys = decode_column(one_array(rows["key"]).take(starts), OffsetCommitKey, on_error="raise").values
        commits = pa.StructArray.from_arrays(
            [one_array(rows[name]) for name in ("offset", "time", "committed")], fields=list(_COMMIT)
        )
        edges = pa.concat_arrays([starts.cast(pa.int32()), pa.array([rows.num_rows], pa.int32())])
        places = [keys.field(name) for name in ("group", "topic", "partition")]
        return pa.Table.from_arrays([*places, pa.ListArray.from_arrays(edges, commits)], schema=WINDOWS)

    def _reduced(self, rows: pa.Table) -> pa.Table:
        """Return the commits in the windows of the offsets, and of each open transaction."""
        rows = rows.combine_chunks()
        roles, markers = one_array(rows["role"]), end_markers(rows)
        committed = pc.and_(pc.equal(roles, UNDECIDED), pc.fill_null(pc.equal(markers, COMMITS), False))
        aborted = pc.fill_null(pc.equal(markers, ABORTS), False)
        commits = (
            replaced(
                rows,
                role=pc.if_else(committed, pa.scalar(EFFECTIVE, pa.int8()), roles),
                producer=pc.if_else(pc.or_(committed, pc.equal(roles, EFFECTIVE)), _NO_PRODUCER, rows["producer"]),
            )
            .filter(pc.and_not(pc.is_in(roles, _COMMITS), aborted))
            .combine_chunks()
        )
        order, valued = RowOrder.of(commits), one_array(commits["committed"]).is_valid()
        deletions = commits.take(order.last_rows(pc.invert(valued)))
        latest = self._latest(commits, order, pc.and_not(valued, deleted_later(commits, deletions)))
        earlier = [deletions, first_end_markers(rows)] if self._open_start else []
        return pa.concat_tables([latest, *earlier]).combine_chunks()

    def _latest(self, commits: pa.Table, order: RowOrder, wanted: pa.Array) -> pa.Table:
        """Return the last wanted commit in each of the latest spans of time, by key and open transaction."""
        slots = pc.divide(commits["time"], DISTANCE_MS)
        last = order.last_rows(wanted, producer=commits["producer"], slot=slots)
        by = pa.table({"producer": commits["producer"], "key": order.keys, "slot": slots, "row": _numbers(len(slots))})
        by = by.take(last).sort_by([("producer", "ascending"), ("key", "ascending"), ("slot", "descending")])
        by = by.combine_chunks()
        new = pc.or_(begins(one_array(by["producer"])), begins(one_array(by["key"])))
        starts = pc.indices_nonzero(new).take(pc.subtract(pc.cumulative_sum(new.cast(_LONG)), 1))
        ranks = pc.subtract(_numbers(by.num_rows), starts.cast(_LONG))
        return commits.take(one_array(by["row"]).filter(pc.less(ranks, self._size)))


def _numbers(count: int) -> pa.Array:
    return pa.array(range(count), _LONG)
