"""Conversion of Kafka record batches to Arrow record batches, one row per record, in constant memory.

This module decides when a table is full, and handles damage. ``native`` or ``python`` makes the columns.
``kafka_msgs.records`` and ``kafka_msgs.log`` read batches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
from attrs import evolve

from kafka_msgs._backend import backend_module
from kafka_msgs.codec import Buffer
from kafka_msgs.columns import python
from kafka_msgs.columns.interface import BATCH_COLUMNS, RecordBuffer
from kafka_msgs.columns.objects import timestamps
from kafka_msgs.columns.types import record_schema
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.log.batch_runs import walk_runs
from kafka_msgs.log.file_scan import FileScan
from kafka_msgs.records import DEFAULT_READ_OPTIONS, Batch, BatchReader, ReadOptions, RecordBatch
from kafka_msgs.records.batch import BatchRun, yield_errors
from kafka_msgs.validators import check_int

__all__ = ["BATCH_COLUMNS", "Fault", "RecordSource", "read_record_table", "walk_batch_table", "walk_record_table"]

RecordSource: TypeAlias = "str | os.PathLike[str] | Buffer | Batch | Iterable[Batch | BatchRun | Fault]"
"""The source of batches: a file, bytes, one batch, or an iterable of batches."""

Fault: TypeAlias = RecordError | LogFileError
"""Damage in a batch, or file content that is not a batch."""

_IMPLEMENTATION: Final = backend_module("kafka_msgs.columns")


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
    """Yield the record batches of ``read_record_table``, and each ``Fault`` at its position between them.

    Raises ``ValueError`` for an empty list of columns, ``OptionError`` for a limit below 1, and the errors of
    ``record_schema``.
    """
    if columns is not None and not columns:
        raise ValueError("a table of records needs at least one column")
    for name, bound in (("max_rows", max_rows), ("max_bytes", max_bytes)):
        check_int("record_table", name, bound, 1)
    return _Table(record_schema(columns), max_rows, max_bytes).run(_items(source, options))


def walk_batch_table(
    source: RecordSource, options: ReadOptions = DEFAULT_READ_OPTIONS, *, columns: Sequence[str], max_rows: int = 65_536
) -> Iterator[Any]:
    """Yield the rows of ``walk_record_table`` for columns out of ``BATCH_COLUMNS``, without decoding a record.

    There are as many rows as the headers of batches count records. Checksums are compared as the options say, and
    damage is a ``Fault`` in its place. Records are looked at only where a batch is too small for what it counts, and in
    compressed message sets, which do not have a count.
    """
    return _Table(record_schema(columns), max_rows, sys.maxsize, unread=True).run(_items(source, options))


def _raising(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, Fault):
            raise item
        yield item


def _items(source: Any, options: ReadOptions) -> Iterator[Any]:
    """Return an iterator of runs, batches and faults. It may also raise a ``RecordError`` and then continue."""
    options = evolve(options, zero_copy=True)
    if isinstance(source, str | os.PathLike):
        return walk_runs(FileScan(Path(source), options))
    if isinstance(source, bytes | bytearray | memoryview):
        return walk_runs(BatchReader(source, options))
    return iter([source] if isinstance(source, Batch) else source)


class _Table:
    """Collects batches and returns record batches of a bounded size.

    One of two buffers has rows: the one of the implementation, or the one in Python for batches that it cannot read.
    """

    def __init__(self, schema: pa.Schema, max_rows: int, max_bytes: int, *, unread: bool = False) -> None:
        self._schema = schema
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._names = list(dict.fromkeys(_COLLECTED_AS.get(name, name) for name in schema.names))
        self._fast: RecordBuffer = _IMPLEMENTATION.RecordColumns(self._names, unread)
        self._slow = python.RecordColumns(self._names, unread)

    def run(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the record batches of all batches, and each fault at its position."""
        for item in yield_errors(items):
            if isinstance(item, Fault):
                yield from self._fault(item)
            elif isinstance(item, BatchRun | RecordBatch):
                yield from self._extend(item if isinstance(item, BatchRun) else item.detach)
            else:
                yield from self._append(item)
        yield from self._flush()

    def _extend(self, run: BatchRun) -> Iterator[Any]:
        at = run.start
        while at < run.end:
            yield from self._flush_from(self._slow)
            at = self._fast.extend(run, at, self._max_rows, self._max_bytes)
            if self._is_full(self._fast):
                yield from self._flush_from(self._fast)
            elif at < run.end:
                batch = next(run.batches(at))
                yield from self._append(batch)
                at += batch.size

    def _append(self, batch: Batch) -> Iterator[Any]:
        """Add a batch that only Python can read, or that causes a fault."""
        yield from self._flush_from(self._fast)
        try:
            self._slow.append(batch)
        except RecordError as fault:
            yield from self._fault(fault)
        if self._is_full(self._slow):
            yield from self._flush_from(self._slow)

    def _is_full(self, buffer: RecordBuffer) -> bool:
        return buffer.rows >= self._max_rows or buffer.size >= self._max_bytes

    def _fault(self, fault: Fault) -> Iterator[Any]:
        yield from self._flush()
        yield fault

    def _flush(self) -> Iterator[pa.RecordBatch]:
        yield from self._flush_from(self._fast)
        yield from self._flush_from(self._slow)

    def _flush_from(self, buffer: RecordBuffer) -> Iterator[pa.RecordBatch]:
        if rows := buffer.rows:
            found = dict(zip(self._names, buffer.finish(), strict=True))
            arrays = [_column(name, found) for name in self._schema.names]
            table = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            yield from (table.slice(start, self._max_rows) for start in range(0, rows, self._max_rows))


_COLLECTED_AS: Final = {"timestamp_ms": "timestamp"}
"""The collected column for each table column with a different name."""


def _column(name: str, found: Mapping[str, pa.Array]) -> pa.Array:
    column = found[_COLLECTED_AS.get(name, name)]
    return timestamps(column) if name == "timestamp" else column
