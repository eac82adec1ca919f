"""The live records of a ``__consumer_offsets`` partition, which determine its final state, as a table that stays small.

Defines the rules for dropping rows: records replaced by a later one with the same key, deletions with no earlier
pending record, and records of aborted transactions. The state of a range that does not begin at the first record also
keeps the last deletion of each key and the first marker of each producer, because both may concern earlier records.
Keys are compared as bytes, without decoding. ``record_classification`` assigns the roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen

from kafka_msgs.analysis.arrow_tables import columns, group_rows_by, one_array, replaced
from kafka_msgs.analysis.transaction_outcomes import first_markers, next_markers

__all__ = [
    "ABORTS",
    "COMMITS",
    "EFFECTIVE",
    "FIRST_COMMIT",
    "GROUP_RECORD",
    "ROWS",
    "UNDECIDED",
    "LiveRecords",
    "RowOrder",
    "deleted_later",
    "end_markers",
    "first_end_markers",
    "rows_since",
    "rows_with",
]

EFFECTIVE: Final = 0
"""The role of offsets that take effect immediately, and of deletions, which do so even in an open transaction."""
UNDECIDED: Final = 1
"""The role of an offset in a transaction without an end marker so far."""
GROUP_RECORD: Final = 2
"""The role of a group record."""
COMMITS: Final = 3
ABORTS: Final = 4
"""The roles of the transaction markers of a producer."""
UNDECIDED_DELETED: Final = 5
"""The role of offsets in an open transaction that were deleted later. They are only counted, and have no key."""

FIRST_COMMIT: Final = 6
"""The role of the oldest commit of a key in each segment since its last deletion, outside transactions."""

_MARKERS: Final = pa.array([COMMITS, ABORTS], pa.int8())
_OPEN: Final = pa.array([UNDECIDED, UNDECIDED_DELETED], pa.int8())
_IN_TRANSACTIONS: Final = pa.concat_arrays([_MARKERS, _OPEN])

ROWS: Final = columns("role offset timestamp key value producer transactional stands_for segment")
"""Records and their roles. ``stands_for`` counts the records of a transaction that a row represents. ``segment`` is the
base offset of the segment that contains the record."""

_BUFFER: Final = 32 << 20
"""The number of row bytes collected before a reduction."""


@define
class LiveRecords:
    """Collects the rows of a log, or of a range of it, in order, and drops rows without effect.

    Rows are reduced once the new rows take as many bytes as the kept ones. So the time is linear, and memory is bounded
    by the live rows plus one buffer. ``committed`` and ``aborted`` count the offsets in completed transactions.
    ``open_start`` is True for a range with records before it.
    """

    rows: pa.Table = field(factory=ROWS.empty_table)
    committed: int = 0
    aborted: int = 0
    open_start: bool = False
    _new: list[pa.Table] = field(factory=list)
    _size: int = 0

    def add(self, rows: pa.Table) -> None:
        """Add the next rows of the log."""
        self._new.append(rows)
        self._size += rows.nbytes
        if self._size >= max(_BUFFER, self.rows.nbytes):
            self._reduce()

    def merge(self, later: LiveRecords) -> LiveRecords:
        """Return the state of this range and of the range after it."""
        rows, later_rows = self.finish(), later.finish()
        committed, aborted = self.committed + later.committed, self.aborted + later.aborted
        merged = LiveRecords(rows, committed, aborted, self.open_start)
        merged.add(later_rows)
        return merged

    def finish(self) -> pa.Table:
        """Return the live rows: offsets, offsets in open transactions, first commits, and group records.

        A range with an open start also has deletions and markers.
        """
        self._reduce()
        return self.rows

    def _reduce(self) -> None:
        if not self._new:
            return
        rows = pa.concat_tables([self.rows, *self._new]).combine_chunks()
        self._new, self._size = [], 0
        if not rows.num_rows:
            return
        roles = self._ended(rows)
        order = RowOrder.of(rows)
        counting = order.last_rows(pc.equal(roles, EFFECTIVE))
        offsets = _with_role(rows.take(counting), EFFECTIVE)
        groups = rows.take(order.last_rows(pc.equal(roles, GROUP_RECORD)))
        deleted = pc.and_(pc.equal(roles, EFFECTIVE), one_array(rows["value"]).is_null())
        deletions = rows.take(order.last_rows(deleted))
        commits = _commits_alive(rows, roles, deletions)
        first = _with_role(rows.take(order.first_rows(commits, segment=rows["segment"])), FIRST_COMMIT)
        waiting = rows.filter(pc.is_in(roles, _OPEN))
        if waiting.num_rows:
            waiting = _last_waiting(_without_deleted(waiting, deletions))
        alive = [_valued(offsets), groups if self.open_start else _valued(groups)]
        # In a log from its start, deletions and markers can be dropped: rows that are added later are later in the log.
        earlier = [deletions, first_end_markers(rows)] if self.open_start else []
        self.rows = pa.concat_tables([*alive, waiting, first, *earlier]).combine_chunks()

    def _ended(self, rows: pa.Table) -> pa.Array:
        """Return the roles of rows after the markers among them take effect: offsets of committed transactions count.

        Markers and aborted rows lose their role.
        """
        roles, markers = one_array(rows["role"]), end_markers(rows)
        if markers.null_count == len(markers):
            return roles
        for marker, name in ((COMMITS, "committed"), (ABORTS, "aborted")):
            ended = pc.and_(pc.equal(markers, marker), pc.is_in(roles, _OPEN))
            setattr(self, name, getattr(self, name) + int(pc.sum(rows["stands_for"].filter(ended)).as_py() or 0))
        counts = pc.and_(pc.equal(markers, COMMITS), pc.equal(roles, UNDECIDED))
        after = pc.if_else(counts, pa.scalar(EFFECTIVE, pa.int8()), pa.scalar(None, pa.int8()))
        return pc.if_else(markers.is_null(), roles, after)


def end_markers(rows: pa.Table) -> pa.Array:
    """Return the role of the marker that ends the transaction of each row, null for other rows and if it is open."""
    roles = one_array(rows["role"])
    concerned = pc.is_in(roles, _IN_TRANSACTIONS)
    nothing = pa.nulls(len(roles), roles.type)
    if not pc.any(concerned).as_py():
        return nothing
    found = rows.select(["role", "offset", "producer"]).filter(concerned)
    markers = pc.if_else(pc.is_in(found["role"], _MARKERS), found["role"], pa.scalar(None, roles.type))
    return pc.replace_with_mask(nothing, concerned, next_markers(found["producer"], found["offset"], markers))


@frozen
class RowOrder:
    """The order of rows by offset: ``rows`` are the sorted row numbers, ``ranks`` their ranks, ``keys`` their keys.

    Keys are dictionary indices: Arrow groups numbers 10× faster than large binaries.
    """

    rows: pa.Array
    ranks: pa.Array
    keys: pa.Array

    @classmethod
    def of(cls, rows: pa.Table) -> RowOrder:
        """Return the order of rows."""
        order = pc.sort_indices(one_array(rows["offset"]))
        return cls(order, pc.sort_indices(order), one_array(rows["key"]).dictionary_encode().indices)

    def last_rows(self, wanted: pa.Array, **more: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the last wanted row of each key and of each combination of ``more`` columns, in this order."""
        return self._rows(wanted, "max", more)

    def first_rows(self, wanted: pa.Array, **more: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the first wanted row of each key, like ``last_rows``."""
        return self._rows(wanted, "min", more)

    def _rows(self, wanted: pa.Array, which: str, more: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Array:
        found = pa.table({"key": self.keys, **more, "rank": self.ranks}).filter(wanted)
        ranks = one_array(group_rows_by(found, ["key", *more]).aggregate([("rank", which)])[f"rank_{which}"])
        return self.rows.take(ranks.take(pc.sort_indices(ranks)))


def rows_with(rows: pa.Table, *roles: int) -> pa.Table:
    """Return the rows with one of these roles."""
    return rows.filter(pc.is_in(rows["role"], pa.array(roles, pa.int8())))


def rows_since(rows: pa.Table, offset: int) -> pa.Table:
    """Return the rows from an offset on, which remain after the segments before it were deleted."""
    return rows.filter(pc.greater_equal(rows["offset"], offset))


def _commits_alive(rows: pa.Table, roles: pa.Array, deletions: pa.Table) -> pa.Array:
    """Return which rows are non-transactional commits without a later deletion of their key."""
    plain = pc.and_(
        pc.equal(roles, EFFECTIVE), pc.and_not(one_array(rows["value"]).is_valid(), one_array(rows["transactional"]))
    )
    plain = pc.or_(plain, pc.equal(roles, FIRST_COMMIT))
    return pc.and_not(plain, deleted_later(rows, deletions)) if deletions.num_rows else plain


def deleted_later(rows: pa.Table, deletions: pa.Table) -> pa.Array:
    """Return for each row whether a later row deletes its key."""
    at = one_array(pc.index_in(rows["key"], one_array(deletions["key"])))
    return pc.fill_null(pc.less(one_array(rows["offset"]), one_array(deletions["offset"]).take(at)), False)


def _without_deleted(waiting: pa.Table, deletions: pa.Table) -> pa.Table:
    """Return pending rows. Rows with a later deletion of their key are only counted, without a key."""
    gone = deleted_later(waiting, deletions)
    deleted = _with_role(waiting.filter(gone), UNDECIDED_DELETED)
    nothing = pa.nulls(deleted.num_rows, pa.large_binary())
    deleted = replaced(deleted, key=nothing, value=nothing)
    return pa.concat_tables([waiting.filter(pc.invert(gone)), deleted])


def _last_waiting(rows: pa.Table) -> pa.Table:
    """Return the last row of each producer and key, which represents the earlier ones."""
    order = RowOrder.of(rows)
    columns = {"producer": rows["producer"], "key": order.keys, "rank": order.ranks, "stands_for": rows["stands_for"]}
    grouped = group_rows_by(pa.table(columns), ["producer", "key"])
    found = grouped.aggregate([("rank", "max"), ("stands_for", "sum")]).sort_by("rank_max")
    last = rows.take(order.rows.take(one_array(found["rank_max"])))
    return replaced(last, stands_for=found["stands_for_sum"])


def first_end_markers(rows: pa.Table) -> pa.Table:
    """Return the first marker of each producer, which ends its transaction in an earlier range."""
    return first_markers(rows.filter(pc.is_in(rows["role"], _MARKERS)), "producer", "offset")


def _valued(rows: pa.Table) -> pa.Table:
    return rows.filter(one_array(rows["value"]).is_valid())


def _with_role(rows: pa.Table, role: int) -> pa.Table:
    return replaced(rows, role=pa.repeat(pa.scalar(role, pa.int8()), rows.num_rows))
