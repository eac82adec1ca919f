"""Batches of records to Arrow record batches, one row per record, in constant memory.

This module makes the columns about a whole batch. It also decides when a table is full, and handles damage. ``native``
or ``python`` makes the columns of single records. ``kafka_msgs.records`` and ``kafka_msgs.log`` read batches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from kafka_msgs._backend import implementation
from kafka_msgs.codec import Buffer
from kafka_msgs.columns import python
from kafka_msgs.columns.common import BATCH_NUMBER, RECORD_LEVEL, RecordBuffer
from kafka_msgs.columns.python import stated_offset
from kafka_msgs.columns.types import RECORD_SCHEMA, record_schema
from kafka_msgs.columns.values import timestamps
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.layouts import HEADER_SIZE
from kafka_msgs.log.scan import walk_log
from kafka_msgs.option_checks import check_whole
from kafka_msgs.records import DEFAULT_READ_OPTIONS, Batch, Compression, ReadOptions, RecordBatch, read_batches
from kafka_msgs.records.batch import errors_in_place

__all__ = ["BATCH_LEVEL", "Fault", "RecordSource", "read_record_table", "walk_batch_table", "walk_record_table"]

RecordSource: TypeAlias = "str | os.PathLike[str] | Buffer | Batch | Iterable[Batch | LogFileError]"
"""The source of batches: a file, bytes, one batch, or an iterable of batches."""

Fault: TypeAlias = RecordError | LogFileError
"""Damage of a batch, or bytes in a file that are not a batch."""

_IMPLEMENTATION: Final = implementation("kafka_msgs.columns")
_SMALLEST_RECORD: Final = 7
"""A record has at least its length, its attributes, two deltas, two lengths and a count, of one byte each."""
_MAX_SEQUENCE: Final = 2**31 - 1
_CODECS: Final = {codec.value: codec.name.lower() for codec in Compression}


def read_record_table(
    source: RecordSource,
    options: ReadOptions = DEFAULT_READ_OPTIONS,
    *,
    columns: Sequence[str] | None = None,
    max_rows: int = 65_536,
    max_bytes: int = 32 << 20,
) -> Iterator[Any]:
    """Yield the records of ``source`` as Arrow record batches with the schema ``record_schema(columns)``.

    The source is the path of a segment or snapshot, bytes that start at a batch (a cut last batch is left alone, as
    ``read_batches`` leaves it), a batch, or an iterable of batches, such as a reader or a generator of one's own. The
    options are for sources that are not read yet; content is never copied on the way, so ``views`` does not matter.

    ======================  ==========================================================================================
    column                  content
    ======================  ==========================================================================================
    offset                  of the record
    timestamp               of the record, in UTC with milliseconds; null for none
    timestamp_ms            the same as Kafka's number: milliseconds since the epoch, -1 for none
    timestamp_type          0: the producer's clock, 1: the broker's, -1: a format without timestamps
    key, value              null for null
    headers                 names and values in their order; a name that is not UTF-8 is null
    raw_header_names        the bytes of all names of a record where one of them is not UTF-8, otherwise null
    batch_offset            the offset in the batch's header: the first one, in a compressed message set the last
    batch_position          the byte where the batch starts, of the file or the bytes that it was read from
    batch_size              bytes of the batch as it is stored
    partition_leader_epoch  -1 for none, and in older formats
    producer_id             -1 for none, and in older formats; so are ``producer_epoch`` and ``sequence``, which is the
                            record's own
    is_transactional        whether the record belongs to a transaction
    is_control              whether it is the log's own, such as a transaction's end
    codec, magic            how the batch was compressed, by name, and its format
    ======================  ==========================================================================================

    A record batch is yielded when there are ``max_rows`` records or about ``max_bytes`` of content, so a source of any
    size takes the same memory; more than that only while one batch holds more. A batch in which anything is wrong gives
    no rows: its ``RecordError`` is raised, or the ``LogFileError`` of bytes in a file that are not a batch. Also raises
    ``UnknownColumnError``, ``ValueError`` for no column at all, ``OptionError`` for a bound below 1,
    ``MissingExtraError`` for a codec that is not installed, and ``OSError``.
    """
    return _raising(walk_record_table(source, options, columns=columns, max_rows=max_rows, max_bytes=max_bytes))


def walk_record_table(
    source: RecordSource,
    options: ReadOptions = DEFAULT_READ_OPTIONS,
    *,
    columns: Sequence[str] | None = None,
    max_rows: int = 65_536,
    max_bytes: int = 32 << 20,
) -> Iterator[Any]:
    """Yield what ``read_record_table`` yields. A ``Fault`` is yielded in its place between the record batches."""
    if columns is not None and not columns:
        raise ValueError("a table of records needs at least one column")
    for name, bound in (("max_rows", max_rows), ("max_bytes", max_bytes)):
        check_whole("record_table", name, bound, 1)
    table = _Table(record_schema(columns), max_rows, max_bytes)
    return table.run(_batches(source, evolve(options, views=True)))


def walk_batch_table(
    source: RecordSource, options: ReadOptions = DEFAULT_READ_OPTIONS, *, columns: Sequence[str], max_rows: int = 65_536
) -> Iterator[Any]:
    """Yield the rows of ``walk_record_table`` for columns out of ``BATCH_LEVEL``, without decoding a record.

    There are as many rows as the headers of batches count records. Checksums are compared as the options say, and
    damage is a ``Fault`` in its place. Records are looked at only where a batch is too small for what it counts, and in
    compressed message sets, which do not have a count.
    """
    schema = record_schema(columns)
    found: list[tuple[Any, ...]] = []
    ends: list[int] = []
    for item in errors_in_place(_batches(source, evolve(options, views=True))):
        fault = item if isinstance(item, Fault) else None
        try:
            count = 0 if isinstance(item, Fault) else _count(item, options.max_elements)
        except RecordError as error:
            fault, count = error, 0
        if count:
            # Only the facts are kept: the bytes of many batches would be many.
            found.append(tuple(_FACTS[name](item) for name in schema.names))
            ends.append(count + (ends[-1] if ends else 0))
        if ends and (fault is not None or ends[-1] >= max_rows):
            yield from _batch_rows(found, ends, schema, max_rows)
            found, ends = [], []
        if fault is not None:
            yield fault
    yield from _batch_rows(found, ends, schema, max_rows)


def _count(batch: Batch, most: int) -> int:
    """Return the number of records of a batch; raises ``RecordError`` for one that cannot hold them."""
    if not isinstance(batch, RecordBatch):
        return 1 if batch.codec == Compression.NONE else len(batch.records())
    room = batch.size - HEADER_SIZE
    fits = batch.codec != Compression.NONE or batch.count * _SMALLEST_RECORD <= room
    return batch.count if fits and 0 <= batch.count <= most else len(batch.offsets())


def _batch_rows(
    found: Sequence[tuple[Any, ...]], ends: Sequence[int], schema: pa.Schema, max_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the facts of batches, repeated up to the row where each ends."""
    columns = zip(*found, strict=True) if found else [()] * len(schema)
    runs = pa.array(ends, pa.int64())
    arrays = [
        pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(runs, pa.array(column, field.type)))
        for column, field in zip(columns, schema, strict=True)
    ]
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    yield from (rows.slice(start, max_rows) for start in range(0, rows.num_rows, max_rows))


def _raising(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, Fault):
            raise item
        yield item


def _batches(source: Any, options: ReadOptions) -> Iterator[Any]:
    """Return an iterator of batches and faults. It may also raise a ``RecordError`` and then continue."""
    if isinstance(source, str | os.PathLike):
        return walk_log(Path(source), options)
    if isinstance(source, bytes | bytearray | memoryview):
        return read_batches(source, options)
    return iter([source] if isinstance(source, Batch) else source)


class _Table:
    """Collects batches and gives record batches of a bounded size."""

    def __init__(self, schema: pa.Schema, max_rows: int, max_bytes: int) -> None:
        self._schema = schema
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        needed = _needed(schema.names)
        self._names = [name for name in (*RECORD_LEVEL, BATCH_NUMBER) if name in needed]
        self._fast: RecordBuffer = _IMPLEMENTATION.RecordColumns(self._names)
        self._slow = python.RecordColumns(self._names)
        self._batches: list[Batch] = []

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the record batches of all batches, and each fault in its place."""
        for item in errors_in_place(batches):
            yield from self._fault(item) if isinstance(item, Fault) else self._add(item)
        yield from self._flush(self._fast)

    def _add(self, batch: Batch) -> Iterator[Any]:
        try:
            taken = self._fast.append(batch)
            if not taken:
                yield from self._flush(self._fast)
                self._slow.append(batch)
        except RecordError as fault:
            yield from self._fault(fault)
            return
        self._batches.append(batch)
        if not taken:
            yield from self._flush(self._slow)
        elif self._fast.rows >= self._max_rows or self._fast.size >= self._max_bytes:
            yield from self._flush(self._fast)

    def _fault(self, fault: Fault) -> Iterator[Any]:
        yield from self._flush(self._fast)
        yield fault

    def _flush(self, buffer: RecordBuffer) -> Iterator[pa.RecordBatch]:
        rows = buffer.rows
        found = dict(zip(self._names, buffer.finish(), strict=True))
        whole = _Whole(self._batches, found)
        self._batches = []
        if rows:
            arrays = [_MADE[name](found) if name in _MADE else whole.column(name) for name in self._schema.names]
            table = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            yield from (table.slice(start, self._max_rows) for start in range(0, rows, self._max_rows))


def _needed(names: Sequence[str]) -> set[str]:
    """Return the columns of single records that ``names`` needs."""
    needed = set(names) & set(RECORD_LEVEL)
    if "sequence" in names:
        needed.add("offset")
    if "timestamp_ms" in names:
        needed.add("timestamp")
    return needed if needed == set(names) and needed else needed | {BATCH_NUMBER}


_Found: TypeAlias = "dict[str, pa.Array]"


def _as_found(name: str) -> Callable[[_Found], pa.Array]:
    return lambda found: found[name]


_MADE: Final[dict[str, Callable[[_Found], pa.Array]]] = {name: _as_found(name) for name in RECORD_LEVEL} | {
    "timestamp": lambda found: timestamps(found["timestamp"]),
    "timestamp_ms": _as_found("timestamp"),
}
"""The columns of single records, made of what was collected."""


class _Whole:
    """The columns that are equal for all records of a batch. Each batch has one value."""

    def __init__(self, batches: Sequence[Batch], found: dict[str, pa.Array]) -> None:
        self._batches = batches
        self._found = found

    def column(self, name: str) -> pa.Array:
        if name == "sequence":
            return self._sequence()
        return self._spread(_FACTS[name], RECORD_SCHEMA.field(name).type)

    def _spread(self, fact: Callable[[Any], Any], type_: pa.DataType) -> pa.Array:
        return pa.array([fact(batch) for batch in self._batches], type_).take(self._found[BATCH_NUMBER])

    def _sequence(self) -> pa.Array:
        """Return the sequence numbers, which go on from record to record; after the highest comes 0."""
        first = self._spread(_newer("base_sequence"), pa.int64())
        number = pc.add(first, pc.subtract(self._found["offset"], self._spread(stated_offset, pa.int64())))
        wrapped = pc.if_else(pc.greater(number, _MAX_SEQUENCE), pc.subtract(number, _MAX_SEQUENCE + 1), number)
        return pc.if_else(pc.less(first, 0), pa.scalar(-1, pa.int64()), wrapped).cast(pa.int32())


def _newer(attribute: str, older: Any = -1) -> Callable[[Batch], Any]:
    """Return what reads an attribute that only batches of magic 2 have."""
    return lambda batch: getattr(batch, attribute) if isinstance(batch, RecordBatch) else older


_FACTS: Final[dict[str, Callable[[Any], Any]]] = {
    "timestamp_type": lambda batch: int(batch.timestamp_type) if batch.magic else -1,
    "batch_offset": stated_offset,
    "batch_position": lambda batch: batch.position,
    "batch_size": lambda batch: batch.size,
    "partition_leader_epoch": _newer("partition_leader_epoch"),
    "producer_id": _newer("producer_id"),
    "producer_epoch": _newer("producer_epoch"),
    "is_transactional": _newer("is_transactional", older=False),
    "is_control": _newer("is_control", older=False),
    "codec": lambda batch: _CODECS.get(batch.codec, str(batch.codec)),
    "magic": lambda batch: batch.magic,
}
BATCH_LEVEL: Final = frozenset(_FACTS)
"""The columns that are equal for all records of a batch, and are in its header."""
