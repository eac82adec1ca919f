"""The few records of a partition of ``__consumer_offsets`` that count at its end, as a table that stays small.

Owns what may be forgotten while a log is read from its first record on: a record that a later one of the same key
replaces, a deletion that nothing earlier waits for, and what an aborted transaction has written. Keys are compared as
bytes, and nothing is decoded. Which role a record has is left to ``record_classification``.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen

from kafka_msgs.pipeline.transaction_outcomes import next_markers

__all__ = [
    "ABORTS",
    "COMMITS",
    "EFFECTIVE",
    "FIRST_COMMIT",
    "GROUP_RECORD",
    "ROWS",
    "UNDECIDED",
    "LiveRecords",
    "rows_since",
    "rows_with",
]

EFFECTIVE: Final = 0
"""The role of an offset that counts at once, and of a deletion, which does so even in an open transaction."""
UNDECIDED: Final = 1
"""The role of an offset in a transaction whose end was not seen yet."""
GROUP_RECORD: Final = 2
"""The role of a group's own record."""
COMMITS: Final = 3
ABORTS: Final = 4
"""The roles of the markers that end a producer's transaction."""
UNDECIDED_DELETED: Final = 5
"""The role of offsets in an open transaction that were deleted since. They are only counted, and have no key."""

FIRST_COMMIT: Final = 6
"""The role of the oldest commit of a key since its last deletion, outside transactions."""

_MARKERS: Final = pa.array([COMMITS, ABORTS], pa.int8())
_OPEN: Final = pa.array([UNDECIDED, UNDECIDED_DELETED], pa.int8())
_IN_TRANSACTIONS: Final = pa.concat_arrays([_MARKERS, _OPEN])

ROWS: Final = pa.schema(
    [
        ("role", pa.int8()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.large_binary()),
        ("value", pa.large_binary()),
        ("producer", pa.int64()),
        ("transactional", pa.bool_()),
        ("stands_for", pa.int64()),
    ]
)
"""Records and what they are for the state. ``stands_for`` counts the records of a transaction that a row replaced."""

_BUFFER: Final = 32 << 20
"""How many bytes of rows are collected before they are reduced."""


@define
class LiveRecords:
    """Collects the rows of a log in their order, and forgets what has no effect any more.

    Rows are reduced when there are as many bytes of new ones as of those that are kept, so that the time is linear, and
    memory that of the rows that are alive and of one buffer. ``committed`` and ``aborted`` count the offsets in
    transactions that ended.
    """

    rows: pa.Table = field(factory=ROWS.empty_table)
    committed: int = 0
    aborted: int = 0
    _new: list[pa.Table] = field(factory=list)
    _size: int = 0

    def add(self, rows: pa.Table) -> None:
        """Add the next rows of the log."""
        self._new.append(rows)
        self._size += rows.nbytes
        if self._size >= max(_BUFFER, self.rows.nbytes):
            self._reduce()

    def finish(self) -> pa.Table:
        """Return the rows that are left: offsets, those in open transactions, first commits, and records of
        groups.
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
        order = _Order.of(rows)
        counting = order.last_rows(pc.equal(roles, EFFECTIVE))
        offsets = _with_role(rows.take(counting), EFFECTIVE)
        groups = rows.take(order.last_rows(pc.equal(roles, GROUP_RECORD)))
        deleted = pc.and_(pc.equal(roles, EFFECTIVE), _one(rows["value"]).is_null())
        deletions = rows.take(order.last_rows(deleted))
        first = _with_role(rows.take(order.first_rows(_commits_alive(rows, roles, deletions))), FIRST_COMMIT)
        waiting = rows.filter(pc.is_in(roles, _OPEN))
        if waiting.num_rows:
            waiting = _last_waiting(_without_deleted(waiting, deletions))
        # What is deleted is as if it had never been, since everything that comes later is later in the log, too.
        alive = [each.filter(_one(each["value"]).is_valid()) for each in (offsets, groups)]
        self.rows = pa.concat_tables([*alive, waiting, first]).combine_chunks()

    def _ended(self, rows: pa.Table) -> pa.Array:
        """Return the roles of rows after the markers among them: offsets in a committed transaction count.

        Markers, and what was aborted, have no role then.
        """
        roles = _one(rows["role"])
        concerned = pc.is_in(roles, _IN_TRANSACTIONS)
        if not pc.any(concerned).as_py():
            return roles
        names = ["role", "offset", "producer", "stands_for"]
        found = rows.select(names).filter(concerned).combine_chunks()
        is_marker = pc.is_in(_one(found["role"]), _MARKERS)
        markers = pc.if_else(is_marker, _one(found["role"]), pa.scalar(None, pa.int8()))
        outcome = next_markers(_one(found["producer"]), _one(found["offset"]), markers)
        for marker, name in ((COMMITS, "committed"), (ABORTS, "aborted")):
            of_client = pc.and_(pc.equal(outcome, marker), pc.is_in(_one(found["role"]), _OPEN))
            setattr(self, name, getattr(self, name) + int(pc.sum(found["stands_for"].filter(of_client)).as_py() or 0))
        counts = pc.and_(pc.equal(outcome, COMMITS), pc.equal(_one(found["role"]), UNDECIDED))
        after = pc.if_else(counts, pa.scalar(EFFECTIVE, pa.int8()), pa.scalar(None, pa.int8()))
        after = pc.if_else(outcome.is_null(), _one(found["role"]), after)
        return pc.replace_with_mask(roles, concerned, after)


@frozen
class _Order:
    """The order of rows by offset: ``rows`` are the rows in it, ``ranks`` the place of each row, ``keys`` their keys.

    A key is a number here: Arrow groups numbers ten times as fast as large binaries.
    """

    rows: pa.Array
    ranks: pa.Array
    keys: pa.Array

    @classmethod
    def of(cls, rows: pa.Table) -> _Order:
        """Return the order of rows."""
        order = pc.sort_indices(_one(rows["offset"]))
        return cls(order, pc.sort_indices(order), _one(rows["key"]).dictionary_encode().indices)

    def last_rows(self, wanted: pa.Array) -> pa.Array:
        """Return, in this order, the last one of the wanted rows with each key."""
        return self._rows(wanted, "max")

    def first_rows(self, wanted: pa.Array) -> pa.Array:
        """Return the first one of the wanted rows with each key, like ``last_rows``."""
        return self._rows(wanted, "min")

    def _rows(self, wanted: pa.Array, which: str) -> pa.Array:
        found = pa.Table.from_arrays([self.keys, self.ranks], names=["key", "rank"]).filter(wanted)
        ranks = _one(found.group_by("key").aggregate([("rank", which)])[f"rank_{which}"])
        return self.rows.take(ranks.take(pc.sort_indices(ranks)))


def rows_with(rows: pa.Table, *roles: int) -> pa.Table:
    """Return the rows that have one of these roles."""
    return rows.filter(pc.is_in(rows["role"], pa.array(roles, pa.int8())))


def rows_since(rows: pa.Table, offset: int) -> pa.Table:
    """Return the rows from an offset on: what is left where the segments before it were deleted."""
    return rows.filter(pc.greater_equal(rows["offset"], offset))


def _commits_alive(rows: pa.Table, roles: pa.Array, deletions: pa.Table) -> pa.Array:
    """Return which rows are commits outside transactions that no later deletion of their key has taken away."""
    plain = pc.and_(pc.equal(roles, EFFECTIVE), pc.and_not(_one(rows["value"]).is_valid(), _one(rows["transactional"])))
    plain = pc.or_(plain, pc.equal(roles, FIRST_COMMIT))
    return pc.and_not(plain, _deleted_later(rows, deletions)) if deletions.num_rows else plain


def _deleted_later(rows: pa.Table, deletions: pa.Table) -> pa.Array:
    """Return of each row whether a later one deletes its key."""
    at = _one(pc.index_in(rows["key"], _one(deletions["key"])))
    return pc.fill_null(pc.less(_one(rows["offset"]), _one(deletions["offset"]).take(at)), False)


def _without_deleted(waiting: pa.Table, deletions: pa.Table) -> pa.Table:
    """Return waiting rows; those that a later deletion of their key has taken away are counted only, without a key."""
    gone = _deleted_later(waiting, deletions)
    deleted = _with_role(waiting.filter(gone), UNDECIDED_DELETED)
    for name in ("key", "value"):
        place = ROWS.get_field_index(name)
        nothing = pa.nulls(deleted.num_rows, ROWS.field(place).type)
        deleted = deleted.set_column(place, ROWS.field(place), nothing)
    return pa.concat_tables([waiting.filter(pc.invert(gone)), deleted])


def _last_waiting(rows: pa.Table) -> pa.Table:
    """Return the last row of each producer and key, which stands for the earlier ones."""
    order = _Order.of(rows)
    columns = {"producer": rows["producer"], "key": order.keys, "rank": order.ranks, "stands_for": rows["stands_for"]}
    grouped = pa.table(columns).group_by(["producer", "key"])
    found = grouped.aggregate([("rank", "max"), ("stands_for", "sum")]).sort_by("rank_max")
    last = rows.take(order.rows.take(_one(found["rank_max"])))
    at = ROWS.get_field_index("stands_for")
    return last.set_column(at, ROWS.field(at), found["stands_for_sum"])


def _with_role(rows: pa.Table, role: int) -> pa.Table:
    return rows.set_column(0, ROWS.field("role"), pa.repeat(pa.scalar(role, pa.int8()), rows.num_rows))


def _one(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, which large offsets always allow."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
