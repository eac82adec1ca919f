"""Operations on Arrow tables that reducers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

__all__ = ["ReducingBuffer", "aggregated", "begins", "group_rows_by", "one_array", "replaced"]

_MANY: Final = 1 << 16

R = TypeVar("R", pa.Table, pa.RecordBatch)


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def begins(values: pa.Array) -> pa.Array:
    """Return whether each row differs from the previous row; True for the first row."""
    return pa.concat_arrays([pa.array([True] * bool(len(values)), pa.bool_()), pc.not_equal(values[1:], values[:-1])])


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
