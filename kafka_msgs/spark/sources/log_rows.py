"""Conversion of the batches in a file part to rows: record columns, typed keys and values, and damage.

Defines the columns of ``kafka-log``, the behaviour of the modes, and the rules for the content of an offset range: its
batches, and damage that may have contained records of it. ``kafka_msgs.columns`` converts records to columns, and
``splits`` determines the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen
from pyspark.sql.types import DataType, StructField, StructType

from kafka_msgs.columns import decode_column, walk_record_table
from kafka_msgs.columns.decode import error_texts
from kafka_msgs.columns.log_table import (
    FROM_RECORDS,
    BatchSelection,
    column_type,
    damage_row,
    item_in_file,
    log_rows,
)
from kafka_msgs.columns.record_tables import BATCH_COLUMNS, walk_batch_table
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.filesystems.path_resolution import GONE
from kafka_msgs.filesystems.segment_lookup import copy_of_part
from kafka_msgs.log.batch_runs import Item, RunLimits, walk_runs
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, FileScan
from kafka_msgs.log.segment import stated_offset
from kafka_msgs.message import Message
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions, RecordBatch
from kafka_msgs.spark.sources.options import DROPMALFORMED, FAILFAST, PERMISSIVE
from kafka_msgs.spark.sources.read_committed import TransactionTrail, follow
from kafka_msgs.spark.sources.splits import FilePart, OffsetRange, is_cut_tail
from kafka_msgs.spark.spark_types import ERROR, arrow_schema, schema_of, spark_type

__all__ = ["DecodedColumnSpec", "PartRows", "RowMaker", "RowOptions", "rows_of"]


@frozen
class DecodedColumnSpec:
    """A column that the source decodes from the bytes of the record column ``source``, as a given message."""

    name: str
    source: str
    message: type[Message]
    version: int | None
    columns: tuple[str, ...] | None = None

    @property
    def type(self) -> StructType:
        """The type of the column."""
        return schema_of(self.message, self.version, columns=self.columns)


@frozen(kw_only=True)
class RowOptions:
    """The options for rows: columns and modes from the options of the source."""

    columns: tuple[str, ...]
    decoded: tuple[DecodedColumnSpec, ...] = ()
    mode: str = PERMISSIVE
    control: bool = False
    must_exist: bool = False
    """Whether a file that was deleted after the read was planned ends the job in any mode."""
    options: ReadOptions = DEFAULT_READ_OPTIONS

    @property
    def schema(self) -> StructType:
        """The columns of the rows."""
        own: dict[str, DataType] = {each.name: each.type for each in self.decoded}
        return StructType([StructField(name, own.get(name) or spark_type(column_type(name))) for name in self.columns])


def rows_of(part: FilePart, reading: RowOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part; raises ``LogFileError`` and ``DecodeError`` in the mode ``FAILFAST``, and ``OSError``.

    A file that no longer exists is treated as damage, because a broker may delete segments while they are read; if it
    must exist, it raises ``LogFileError`` in every mode.
    """
    try:
        with copy_of_part(part.file, part.start, part.end) as (path, shift):
            yield from PartRows(part, reading, shift).run(path)
    except FileNotFoundError as error:
        fault = LogFileError(file=part.file.name, position=part.start, skipped=part.size, reason=GONE)
        fault.__cause__ = error
        if reading.must_exist:
            raise fault from error
        yield from PartRows(part, reading).handle_fault(fault)


class RowMaker:
    """Builds rows from records: the requested columns, with typed keys and values.

    ``known`` contains the columns that all records share.
    """

    def __init__(self, reading: RowOptions, known: Mapping[str, Any]) -> None:
        self.schema = arrow_schema(reading.schema)
        self._mode = reading.mode
        self._known = known
        self._decoded = [each for each in reading.decoded if each.name in self.schema.names]
        sources = {FROM_RECORDS[name] for name in self.schema.names if name in FROM_RECORDS}
        self.sources = sorted(sources.union(each.source for each in self._decoded) or {"magic"})
        """The required record columns."""

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of records. The mode ``DROPMALFORMED`` drops unreadable rows."""
        on_error: Any = "raise" if self._mode == FAILFAST else "null"
        made, errors = {**self._known}, pa.nulls(records.num_rows, pa.string())
        for each in self._decoded:
            data = records.column(each.source)
            found = decode_column(data, each.message, each.version, columns=each.columns, on_error=on_error)
            made[each.name] = found.values
            errors = pc.coalesce(errors, error_texts(found.errors, f"{each.name}: {each.message.INFO.name}"))
        rows = log_rows(self.schema, made | {ERROR: errors}, records)
        drops = self._mode == DROPMALFORMED and errors.null_count < len(errors)
        return rows.filter(errors.is_null()) if drops else rows


class PartRows:
    """One pass over one part. ``shift`` is the position of the local file's first byte in the original file."""

    def __init__(self, part: FilePart, reading: RowOptions, shift: int = 0) -> None:
        self._part = part
        self._reading = reading
        self._shift = shift
        self._known = {"topic": part.file.topic, "partition": part.file.partition, "file": part.file.name}
        self._maker = RowMaker(reading, self._known)

    def run(self, path: Path) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the part, whose bytes are in the local file ``path``; like ``rows_of``."""
        offsets, needed = self._part.offsets, self._maker.sources
        columns = needed if offsets is None else sorted({*needed, "offset"})
        walk = walk_batch_table if BATCH_COLUMNS.issuperset(columns) else walk_record_table
        for item in walk(self._batches(path), self._reading.options, columns=columns):
            found = item_in_file(item, self._part.file.name, self._shift)
            if isinstance(found, pa.RecordBatch):
                yield self._maker.rows(found if offsets is None else offsets.rows(found))
            else:
                yield from self.handle_fault(found)

    def _batches(self, path: Path) -> Iterator[Item]:
        start, options = self._part.start - self._shift, evolve(self._reading.options, zero_copy=True)
        transactions = self._part.transactions
        if isinstance(transactions, TransactionTrail):
            transactions = follow(transactions)
        selection = BatchSelection(transactions, self._reading.control)
        limits = selection.limits(self._part.end - self._shift)
        walk = partial(FileScan, path, options, closed=self._part.closed)
        return filter(selection.has, _walk_range(walk, self._part.offsets, start, limits))

    def handle_fault(self, fault: LogFileError) -> Iterator[pa.RecordBatch]:
        """Handle damage according to the mode: yield a row that reports it, raise it, or skip it."""
        if self._reading.mode == PERMISSIVE:
            yield damage_row(self._maker.schema, self._known, fault)
        elif self._reading.mode == FAILFAST and not (
            self._part.may_be_cut and is_cut_tail(fault, self._part.file.size)
        ):
            raise fault from fault.__cause__


def _walk_range(
    walk: Callable[..., FileScan], offsets: OffsetRange | None, start: int, limits: RunLimits
) -> Iterator[Item]:
    """Yield the batches of a file, from a byte on, that may contain records of a range, and the damage between them.

    Batches within the limits are yielded as runs. Damage belongs to the range unless the valid batches around it prove
    that it contained no record of the range. Without a range, all batches are yielded up to the end of the limits. The
    result depends only on the file and the range, not on the precision of the start position.
    """
    if offsets is None:
        yield from walk_runs(walk(start=start), limits)
        return
    first = start
    # Damage before the last batch that starts at or before the range is not in the range.
    batches: Iterator[AnyBatch] = skip_faults(walk(start=start))
    for batch in batches:
        if batch.position >= limits.stop or stated_offset(batch) > offsets.start:
            break
        first = batch.position
    # The batches around the last offset of the range are yielded one by one, because the range ends there.
    within = evolve(limits, first=max(offsets.start, limits.first), last=min(offsets.end - 2, limits.last))
    yield from _within(walk_runs(walk(start=first), within), offsets)


def _within(items: Iterable[Item], offsets: OffsetRange) -> Iterator[Item]:
    next_offset = offsets.start
    for item in items:
        if next_offset >= offsets.end:
            return
        if isinstance(item, LogFileError | RecordError):
            yield item
        elif isinstance(item, RecordBatch) and item.base_offset >= offsets.end:
            return
        else:
            next_offset = item.last_offset + 1
            if next_offset > offsets.start:
                yield item
