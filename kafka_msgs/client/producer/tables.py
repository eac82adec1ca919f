"""Conversion of Arrow tables to records, and of delivery results to a table. Needs the extra ``arrow``.

Rows go from Arrow's buffers to batches directly: only the first row of each batch, and rows with headers, become Python
objects. Rows are sorted by partition first; the result is in the original order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

from kafka_msgs.client.flow import Flow, Wait
from kafka_msgs.client.producer.partitioner import Partitioner, partition_of_key
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.errors import ColumnTypeError, RecordWriteError, UnknownColumnError
from kafka_msgs.records.builder import RowColumns
from kafka_msgs.suggestions import similar_names

if TYPE_CHECKING:
    from kafka_msgs.client.producer.record_accumulator import TopicQueues

__all__ = ["COLUMNS", "PartitionedRows", "add_rows", "delivery_table", "rows_of"]

COLUMNS: Final = ("key", "value", "headers", "timestamp", "partition")
"""The optional columns of a table."""

_RESULT: Final = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.int64())])
_ANY: Final = -1
"""Means any partition."""
_AT_ONCE: Final = 0.0
"""A time that has passed: a wait until then lets other flows run."""


@define(eq=False)
class PartitionedRows:
    """Rows of a table, sorted by partition."""

    count: int
    now: int
    """The timestamp of rows without one, in ms."""
    order: Any
    """The original index of each row, or None if the rows are in table order."""
    runs: list[tuple[int | None, int, int]]
    """Partitions, each with its first row and the row after its last. None means any partition."""
    columns: RowColumns
    _keys: Any
    _values: Any
    _times: Any
    _headers: list[Any] | None
    sent: list[tuple[ProducerBatch, int, int]] = field(factory=list)
    """The batches of the rows, each with the batch index of its first row and the number of rows."""

    def add(self, batch: ProducerBatch, row: int, stop: int) -> int:
        """Add rows to an open batch until it is full, and return their number."""
        first = batch.count
        if self._headers is None:
            added = batch.append_rows(self.columns, row, stop, self.now)
        else:
            value, key, timestamp, headers = self.row(row)
            added = int(batch.append(key, value, timestamp=timestamp, headers=headers))
        if added:
            self.sent.append((batch, first, added))
        return added

    def row(self, row: int) -> tuple[Any, Any, int, Any]:
        """Return the value, key, timestamp and headers of one row."""
        key, value = (None if column is None else column[row].as_py() for column in (self._keys, self._values))
        time = self.now if self._times is None else self._times[row].as_py()
        return value, key, time, () if self._headers is None else self._headers[row]

    def result(self) -> Any:
        """Return the partition, the offset and the timestamp of each row. Raises the error of a batch."""
        places = [place for batch, index, count in self.sent for place in batch.deliveries_of(index, count)]
        pieces, row = [], 0
        for batch, index, count in places:
            found = batch.metadata(index, self.now)
            pieces.append((found.partition, found.offset, count, batch.log_append_time, row))
            row += count
        columns = [
            _joined([_repeated(partition, count, pa.int32()) for partition, _, count, _, _ in pieces], pa.int32()),
            _joined([_counted(offset, count) for _, offset, count, _, _ in pieces], pa.int64()),
            _joined([self._time(time, row, count) for _, _, count, time, row in pieces], pa.int64()),
        ]
        table = pa.table(columns, schema=_RESULT)
        return table if self.order is None else table.take(pc.sort_indices(self.order))

    def _time(self, log_append_time: int, row: int, count: int) -> Any:
        if log_append_time < 0 and self._times is not None:
            return self._times.slice(row, count)
        return _repeated(self.now if log_append_time < 0 else log_append_time, count, pa.int64())


def rows_of(table: Any, topic: str, count: int, now: int, partitioner: Partitioner | None) -> Iterator[PartitionedRows]:
    """Yield the rows of a table for a topic with ``count`` partitions. ``now`` (ms) is for rows without a timestamp.

    Keys and values are binary or string columns. Headers are lists of structs with a name and a value. Timestamps have
    an Arrow timestamp type or are milliseconds. Raises ``UnknownColumnError``, ``ColumnTypeError``, and
    ``RecordWriteError`` for a partition that does not exist.
    """
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise ColumnTypeError(column="", expected="an Arrow table", found=type(table).__name__)
    for name in table.schema.names:
        if name not in COLUMNS:
            near = similar_names(name, COLUMNS)
            raise UnknownColumnError(source="a record to send", column=name, near=near)
    for batch in table.to_batches() if isinstance(table, pa.Table) else (table,):
        found = {name: _READ[name](name, batch.column(name)) for name in batch.schema.names}
        partitions = _partitions(found.get("partition"), found.get("key"), batch.num_rows, topic, count, partitioner)
        yield _sorted(found, partitions, batch.num_rows, now)


def add_rows(
    queues: TopicQueues, rows: PartitionedRows, add: Callable[..., Flow[tuple[ProducerBatch, int]]], lock: Any
) -> Flow[None]:
    """Add rows to the batches of their partitions, or of partitions in turn, which the lock guards.

    ``add`` opens a batch with a record. It adds the first row of each batch.
    """
    for partition, start, stop in rows.runs:
        while start < stop:
            queue = queues.sticky if partition is None else queues.queues[partition]
            assert queue is not None
            with lock:
                added = 0 if queue.open is None else rows.add(queue.open, start, stop)
            if not added:
                value, key, timestamp, headers = rows.row(start)
                batch, index = yield from add(queues.topic, value, key, partition, timestamp, headers)
                rows.sent.append((batch, index, 1))
                added = 1
                yield Wait((), _AT_ONCE)
            start += added


def delivery_table(pieces: list[PartitionedRows]) -> Any:
    """Return a table with the partition, the offset and the timestamp (ms) of each row. All batches must be done.

    Raises the error of a failed row.
    """
    return pa.concat_tables([_RESULT.empty_table(), *(rows.result() for rows in pieces)])


def _sorted(found: dict[str, Any], partitions: Any, count: int, now: int) -> PartitionedRows:
    """Return the rows grouped by partition. Within a partition they keep their order."""
    order = None
    runs: list[tuple[int | None, int, int]] = [(None, 0, count)]
    if partitions is not None:
        order = pc.sort_indices(partitions)
        found = {name: None if column is None else column.take(order) for name, column in found.items()}
        runs, row = [], 0
        for each in pc.value_counts(partitions.take(order)).to_pylist():
            number = each["values"]
            runs.append((None if number == _ANY else number, row, row + each["counts"]))
            row += each["counts"]
    times = found.get("timestamp")
    if times is not None:
        times = times.fill_null(now)
    keys, values, headers = found.get("key"), found.get("value"), found.get("headers")
    columns = RowColumns(*_buffers(keys), *_buffers(values), *((None, 0) if times is None else _numbers_of(times)))
    lists = (
        None if headers is None else [tuple(tuple(each.values()) for each in row or ()) for row in headers.to_pylist()]
    )
    return PartitionedRows(count, now, order, runs, columns, keys, values, times, lists)


def _partitions(asked: Any, keys: Any, rows: int, topic: str, count: int, partitioner: Partitioner | None) -> Any:
    """Return the partition of each row, or None if no row has one. ``_ANY`` means neither key nor partition."""
    if asked is not None:
        for wrong in asked.filter(pc.or_(pc.less(asked, 0), pc.greater_equal(asked, count))).slice(0, 1).to_pylist():
            reason = f"{topic} has the partitions 0 to {count - 1}, not {wrong!r}"
            raise RecordWriteError(field="partition", value=wrong, reason=reason)
    if partitioner is not None:
        contents = [None] * rows if keys is None else keys.to_pylist()
        chosen = pa.array([partitioner(topic, key, count) for key in contents], pa.int64())
    elif keys is not None:
        encoded = keys.dictionary_encode()
        places = [partition_of_key(key, count) for key in encoded.dictionary.to_pylist()]
        chosen = pa.array(places, pa.int64()).take(encoded.indices)
    else:
        chosen = None
    if asked is None and chosen is None:
        return None
    return pc.coalesce(*(each for each in (asked, chosen) if each is not None), pa.scalar(_ANY, pa.int64()))


def _buffers(column: Any) -> tuple[Any, Any, Any, int]:
    """Return the offsets, the bytes, a byte for each row (0 for null) or None, and the first offset of a column."""
    if column is None:
        return None, None, None, 0
    _, offsets, data = column.buffers()
    valid = pc.cast(column.is_valid(), pa.uint8()).buffers()[1] if column.null_count else None
    return offsets, data, valid, column.offset


def _numbers_of(column: Any) -> tuple[Any, int]:
    return column.buffers()[1], column.offset


def _repeated(value: int, count: int, type_: Any) -> Any:
    return pa.repeat(pa.scalar(value, type_), count)


def _counted(first: int, count: int) -> Any:
    """Return consecutive offsets from ``first``. With ``acks=0`` all offsets are -1."""
    if first < 0:
        return _repeated(first, count, pa.int64())
    return pc.add(pc.cumulative_sum(_repeated(1, count, pa.int64())), first - 1)


def _joined(pieces: list[Any], type_: Any) -> Any:
    return pa.concat_arrays([pa.array([], type_), *pieces])


def _content(name: str, column: Any) -> Any:
    kind = column.type
    if pa.types.is_null(kind):
        return None
    if not any(is_kind(kind) for is_kind in _CONTENTS):
        raise ColumnTypeError(column=name, expected="binary or string", found=str(kind))
    return column.cast(pa.large_binary())


def _times(name: str, column: Any) -> Any:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = pc.cast(column, pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
    return _numbers(name, column)


def _numbers(name: str, column: Any) -> Any:
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise ColumnTypeError(column=name, expected="integer", found=str(column.type))
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise ColumnTypeError(column=name, expected="integers of 64 bits", found=str(column.type)) from None


def _headers(name: str, column: Any) -> Any:
    kind = column.type
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2):
        raise ColumnTypeError(column=name, expected="a list of structs of a name and a value", found=str(kind))
    return column


_CONTENTS: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)
_READ: Final[dict[str, Callable[[str, Any], Any]]] = {
    "key": _content,
    "value": _content,
    "headers": _headers,
    "timestamp": _times,
    "partition": _numbers,
}
