"""Arrow tables to records, and what became of them as a table. This module needs the extra ``arrow``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.client.producer.batch import ProducerBatch
from kafka_msgs.errors import ColumnTypeError, UnknownColumnError

__all__ = ["COLUMNS", "Sent", "delivered", "records_of"]

COLUMNS: Final = ("key", "value", "headers", "timestamp", "partition")
"""The columns that a table may have, each of them optional."""

Sent = list[tuple[ProducerBatch, int, int]]
"""Where the rows of a table are: batches, each with the place of the first row in it and with a timestamp."""

_RESULT: Final = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.int64())])


def records_of(table: Any) -> Iterator[tuple[Any, Any, int | None, int | None, Any]]:
    """Yield the value, key, partition, timestamp (ms) and headers of each row.

    Keys and values are binary or text. Headers are lists of structs of a name and a value. Timestamps are of Arrow's
    type, or milliseconds. Raises ``UnknownColumnError`` and ``ColumnTypeError``.
    """
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise ColumnTypeError(column="", expected="an Arrow table", found=type(table).__name__)
    for name in table.schema.names:
        if name not in COLUMNS:
            near = tuple(get_close_matches(name, COLUMNS))
            raise UnknownColumnError(source="a record to send", column=name, near=near)
    for batch in table.to_batches() if isinstance(table, pa.Table) else (table,):
        found = {name: _READ[name](name, batch.column(name)) for name in batch.schema.names}
        nothing = [None] * batch.num_rows
        columns = [found.get(name, nothing) for name in ("value", "key", "partition", "timestamp")]
        headers = found.get("headers", [()] * batch.num_rows)
        yield from zip(*columns, headers, strict=True)


def delivered(sent: Sent) -> Any:
    """Return a table with the partition, the offset and the timestamp (ms) of each row. All batches must be done.

    Raises the error of the first row that was given up.
    """
    found = [(*batch.place_of(index), timestamp) for batch, index, timestamp in sent]
    rows = [batch.metadata(index, timestamp) for batch, index, timestamp in found]
    columns = [[row.partition for row in rows], [row.offset for row in rows], [row.timestamp for row in rows]]
    return pa.table(columns, schema=_RESULT)


def _content(name: str, column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_binary())
    elif not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind)):
        raise ColumnTypeError(column=name, expected="binary or string", found=str(kind))
    return list(column.to_pylist())


def _times(name: str, column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = pc.cast(column, pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
    return _numbers(name, column)


def _numbers(name: str, column: pa.Array) -> list[Any]:
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise ColumnTypeError(column=name, expected="integer", found=str(column.type))
    return list(column.to_pylist())


def _headers(name: str, column: pa.Array) -> list[Any]:
    kind = column.type
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2):
        raise ColumnTypeError(column=name, expected="a list of structs of a name and a value", found=str(kind))
    return [() if row is None else tuple(tuple(each.values()) for each in row) for row in column.to_pylist()]


_READ: Final[dict[str, Callable[[str, pa.Array], list[Any]]]] = {
    "key": _content,
    "value": _content,
    "headers": _headers,
    "timestamp": _times,
    "partition": _numbers,
}
