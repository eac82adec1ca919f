"""The columns of all tables, by name, and operations on Arrow tables that reducers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

__all__ = [
    "ReducingBuffer",
    "aggregated",
    "begins",
    "columns",
    "filled",
    "group_rows_by",
    "hours_of",
    "named",
    "one_array",
    "replaced",
]

_MANY: Final = 1 << 16
_HOUR_MS: Final = 3_600_000
_TIME: Final = pa.timestamp("us", tz="UTC")
_NAMES: Final = {
    pa.string(): """group topic kind state protocolType protocol leader metadata topicId outcome file problem codec
        marker""",
    pa.int8(): "role",
    pa.int32(): """topicPartition partition logPartition leaderEpoch epoch assignmentEpoch topologyEpoch members
        batchSize maxKeySize maxValueSize""",
    pa.bool_(): "transactional tombstone stale control first",
    pa.float64(): "ratio meanKeySize meanValueSize",
    _TIME: """commitTimestamp expireTimestamp logTimestamp lastCommit firstTimestamp lastTimestamp maxTimestamp
        hour""",
    pa.large_binary(): "key value",
    pa.list_(pa.string()): "codecs",
}
"""The names of all columns that are no 64 bit numbers, by type."""
_TYPES: Final = {name: kind for kind, names in _NAMES.items() for name in names.split()}

R = TypeVar("R", pa.Table, pa.RecordBatch)


def columns(names: str) -> pa.Schema:
    """Return the schema of columns, whose names are separated by spaces. Names determine the types."""
    return pa.schema([(name, _TYPES.get(name, pa.int64())) for name in names.split()])


def filled(schema: pa.Schema, count: int, values: Mapping[str, Any]) -> pa.Table:
    """Return ``count`` rows with the columns of a schema, given as arrays or constants; missing columns are null."""
    found = []
    for each in schema:
        value = values.get(each.name)
        if not isinstance(value, pa.Array | pa.ChunkedArray):
            value = pa.repeat(pa.scalar(value, each.type), count)
        found.append(value.cast(each.type))
    return pa.Table.from_arrays(found, schema=schema)


def named(rows: pa.Table | pa.RecordBatch) -> dict[str, Any]:
    """Return the columns of rows by name."""
    return dict(zip(rows.schema.names, rows.columns, strict=True))


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def begins(values: pa.Array) -> pa.Array:
    """Return whether each row differs from the previous row; True for the first row."""
    return pa.concat_arrays([pa.array([True] * bool(len(values)), pa.bool_()), pc.not_equal(values[1:], values[:-1])])


def hours_of(times: pa.Array) -> pa.Array:
    """Return the start of the hour of times, in milliseconds."""
    return pc.multiply(pc.divide(times, _HOUR_MS), _HOUR_MS)


def replaced(rows: R, **columns: pa.Array | pa.ChunkedArray) -> R:
    """Return rows with other values in some columns, and the same schema."""
    for name, values in columns.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), values)
    return rows


def group_rows_by(rows: pa.Table, by: Sequence[str]) -> pa.TableGroupBy:
    """Return rows grouped by columns. Threads are used only for many rows: for a few, starting them takes longer."""
    return rows.group_by(list(by), use_threads=rows.num_rows > _MANY)


def aggregated(rows: pa.Table, by: Sequence[str], functions: Mapping[str, str]) -> pa.Table:
    """Return a row for each combination of the columns ``by``. Columns keep their names in spite of ``functions``."""
    found = group_rows_by(rows, by).aggregate(list(functions.items()))
    return found.rename_columns({f"{name}_{function}": name for name, function in functions.items()})


@define
class ReducingBuffer:
    """Rows that are reduced once the new rows are as many as the kept ones, so that the time stays linear."""

    rows: pa.Table
    reduce: Callable[[pa.Table], pa.Table]
    size: int
    _new: list[pa.Table] = field(factory=list)
    _count: int = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows, which need not be reduced."""
        if not rows.num_rows:
            return
        self._new.append(rows)
        self._count += rows.num_rows
        if self._count >= max(self.size, self.rows.num_rows):
            self.all()

    def all(self) -> pa.Table:
        """Return all rows, reduced."""
        if self._new:
            self.rows = self.reduce(pa.concat_tables([self.rows, *self._new]))
            self._new, self._count = [], 0
        return self.rows
