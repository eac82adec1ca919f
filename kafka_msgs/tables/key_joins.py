"""Joins of Arrow tables by key: rows that another table lacks, and rows that differ there.

Only the key columns are joined, because Arrow cannot join lists and structs. Complete rows are selected by row number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Final

from kafka_msgs.errors import MissingExtraError, OptionError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.tables", extra="arrow", package="pyarrow") from error

__all__ = ["anti_join", "check_keys", "diff_rows", "drop_keys", "removed_keys"]

_ROW: Final = "_row"
_OTHER: Final = "_other"


def check_keys(rows: pa.Table, keys: Sequence[str]) -> None:
    """Raise ``OptionError`` if a key contains a null, or if two rows have the same key."""
    for name in keys:
        if rows[name].null_count:
            raise _wrong(keys, f"a row has no {name}")
    if rows.group_by(list(keys)).aggregate([]).num_rows < rows.num_rows:
        raise _wrong(keys, "two rows have the same key")


def _wrong(keys: Sequence[str], reason: str) -> OptionError:
    return OptionError(source="merge", option="keys", value=", ".join(keys), reason=reason)


def removed_keys(rows: pa.Table, deleted_keys: pa.Table | None, keys: Sequence[str]) -> pa.Table:
    """Return the keys of the rows that a merge removes: replaced keys and deleted keys."""
    replaced = rows.select(keys)
    return (
        replaced
        if deleted_keys is None
        else pa.concat_tables([replaced, deleted_keys.select(keys).cast(replaced.schema)])
    )


def anti_join(rows: pa.Table, other: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the rows whose key is not in the other table, in order."""
    found = _numbered(rows, keys, _ROW).join(other.select(keys), list(keys), join_type="left anti", use_threads=False)
    return rows.take(found[_ROW].sort())


def diff_rows(rows: pa.Table, before: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the rows that differ from ``before``: new keys, and keys with changes in other columns."""
    left, right = _numbered(rows, keys, _ROW), _numbered(before, keys, _OTHER)
    pairs = left.join(right, list(keys), join_type="inner", use_threads=False)
    ours, theirs = rows.take(pairs[_ROW]), before.select(rows.column_names).take(pairs[_OTHER])
    same = reduce(pc.and_, (_equal(ours[name], theirs[name]) for name in rows.column_names))
    return rows.filter(pc.invert(pc.is_in(left[_ROW], pairs[_ROW].filter(same))))


def _equal(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return for each row whether two columns are equal. Arrow itself cannot compare nested values."""
    if pa.types.is_nested(ours.type):
        pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
        return pa.chunked_array([[one == other for one, other in pairs]], pa.bool_())
    both_null = pc.and_(ours.is_null(), theirs.is_null())
    return pc.or_(pc.fill_null(pc.equal(ours, theirs.cast(ours.type)), False), both_null)


def drop_keys(batches: Iterable[pa.RecordBatch], removed: pa.Table, keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose key was not removed.

    Each join reads all keys, so batches are combined until they have as many rows as there are keys. This keeps the
    time linear in rows and keys.
    """
    for table in _together(batches, removed.num_rows):
        yield from anti_join(table, removed, keys).to_batches()


def _together(batches: Iterable[pa.RecordBatch], least: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= least:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _numbered(rows: pa.Table, keys: Sequence[str], name: str) -> pa.Table:
    numbers = pc.cumulative_sum(pa.repeat(1, rows.num_rows), start=-1)
    return rows.select(list(keys)).append_column(name, numbers)
