"""Conversion of the batches in a file part to rows: record columns, typed keys and values, and damage.

Defines the columns of ``kafka-log`` and the behaviour of the modes. ``kafka_msgs.columns`` converts records to columns,
and ``splits`` determines the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructField, StructType

from kafka_msgs.binary_layouts import CONTROL, TRANSACTIONAL
from kafka_msgs.columns import decode_column, record_schema, walk_record_table
from kafka_msgs.columns.log_table import (
    DEFAULT_COLUMNS,
    FROM_RECORDS,
    fault_in_file,
    in_microseconds,
    select_columns,
    with_header_names,
)
from kafka_msgs.columns.record_tables import BATCH_COLUMNS, walk_batch_table
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.filesystems.path_resolution import GONE, LogFile
from kafka_msgs.log.batch_runs import Item, RunLimits
from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.log.transaction_index import TransactionIndex
from kafka_msgs.message import Message
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions, RecordBatch
from kafka_msgs.records.batch import BatchRun
from kafka_msgs.spark.functions import error_texts
from kafka_msgs.spark.sources.offset_options import LARGEST
from kafka_msgs.spark.sources.offset_range import walk_range
from kafka_msgs.spark.sources.options import DROPMALFORMED, FAILFAST, PERMISSIVE
from kafka_msgs.spark.sources.read_committed import TransactionTrail
from kafka_msgs.spark.sources.splits import FilePart, is_cut_tail, local_copy_of
from kafka_msgs.spark.spark_types import ERROR, arrow_schema, schema_of, spark_type

__all__ = ["DecodedColumnSpec", "RowMaker", "RowOptions", "column_type", "log_columns", "rows_in", "rows_of"]

FROM_FILES: Final[Mapping[str, Callable[[LogFile], Any]]] = {
    "topic": lambda file: file.topic,
    "partition": lambda file: file.partition,
    "file": lambda file: file.name,
}
"""The columns that all records of a file share."""

_KEYS_AND_VALUES: Final = {"decodedKey": "key", "decodedValue": "value"}
_USUAL: Final = DEFAULT_COLUMNS.union(_KEYS_AND_VALUES)
"""The default columns: the columns of every log, and the columns decoded from keys and values."""

_HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


@frozen
class DecodedColumnSpec:
    """A column that the source decodes from the bytes of another column, as a given message."""

    name: str
    message: type[Message]
    version: int | None
    columns: tuple[str, ...] | None = None

    @property
    def source(self) -> str:
        """The record column with the bytes."""
        return _KEYS_AND_VALUES[self.name]

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
        found: dict[str, DataType] = {each.name: each.type for each in self.decoded}
        return StructType([StructField(name, found.get(name) or column_type(name)) for name in self.columns])


def log_columns(
    asked: Sequence[str] | None,
    decoded: Sequence[DecodedColumnSpec],
    mode: str,
    *,
    source: str = "kafka-log",
    without: Container[str] = (),
) -> tuple[str, ...]:
    """Return the columns to read, in order. Raises ``UnknownColumnError`` for a column that does not exist.

    ``without`` contains columns that the source does not support.
    """
    own = ["topic", "partition", *FROM_RECORDS, *(each.name for each in decoded), "file"]
    own = [name for name in own if name not in without] + ([ERROR] if mode == PERMISSIVE else [])
    return select_columns(source, own, asked, _USUAL)


def column_type(name: str) -> DataType:
    """Return the type of a column that needs no decoding."""
    if name in FROM_RECORDS:
        return _HEADERS if name == "headers" else spark_type(record_schema([FROM_RECORDS[name]]).types[0])
    return spark_type(pa.int32() if name == "partition" else pa.string())


def rows_of(part: FilePart, reading: RowOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part; raises ``LogFileError`` and ``DecodeError`` in the mode ``FAILFAST``, and ``OSError``.

    A file that no longer exists is treated as damage, because a broker may delete segments while they are read; if it
    must exist, it raises ``LogFileError`` in every mode.
    """
    try:
        with local_copy_of(part) as (path, shift):
            yield from rows_in(path, part, reading, shift)
    except FileNotFoundError as error:
        fault = LogFileError(file=part.file.name, position=part.start, skipped=part.size, reason=GONE)
        fault.__cause__ = error
        if reading.must_exist:
            raise fault from error
        yield from _PartRows(part, reading, 0).handle_fault(fault)


def rows_in(path: Path, part: FilePart, reading: RowOptions, shift: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part whose bytes are in ``path``, from byte ``shift`` of the file on; like ``rows_of``."""
    return _PartRows(part, reading, shift).run(path)


class RowMaker:
    """Builds rows from records: the requested columns, with typed keys and values.

    ``known`` contains the columns that all records share.
    """

    def __init__(self, reading: RowOptions, known: Mapping[str, Any]) -> None:
        self.schema = arrow_schema(reading.schema)
        self._mode = reading.mode
        self._known = known
        self._decoded = {each.name: each for each in reading.decoded if each.name in self.schema.names}
        sources = {FROM_RECORDS[name] for name in self.schema.names if name in FROM_RECORDS}
        sources |= {each.source for each in self._decoded.values()}
        self.sources = sorted(sources or {"magic"})
        """The required record columns."""

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of records. The mode ``DROPMALFORMED`` drops unreadable rows."""
        made: dict[str, pa.Array] = {}
        texts: list[pa.StringArray] = []
        for name, decoded in self._decoded.items():
            made[name], text = self._decode(decoded, records.column(decoded.source))
            texts += [text] if text is not None else []
        errors = pc.coalesce(*texts) if texts else None
        arrays = [self._array(each, records, made, errors) for each in self.schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return rows.filter(errors.is_null()) if errors and self._mode == DROPMALFORMED else rows

    def _decode(self, decoded: DecodedColumnSpec, data: pa.Array) -> tuple[pa.Array, pa.StringArray | None]:
        on_error: Any = "raise" if self._mode == FAILFAST else "null"
        found = decode_column(data, decoded.message, decoded.version, columns=decoded.columns, on_error=on_error)
        if not found.error_count:
            return found.values, None
        return found.values, error_texts(found.errors, f"{decoded.name}: {decoded.message.INFO.name}")

    def _array(
        self, wanted: pa.Field, records: pa.RecordBatch, made: dict[str, pa.Array], errors: pa.Array | None
    ) -> pa.Array:
        count = records.num_rows
        if wanted.name in made:
            return made[wanted.name]
        if wanted.name == ERROR:
            return pa.nulls(count, wanted.type) if errors is None else errors
        if wanted.name in self._known:
            return pa.repeat(pa.scalar(self._known[wanted.name], wanted.type), count)
        found = records.column(FROM_RECORDS[wanted.name])
        if wanted.name == "timestamp":
            return in_microseconds(found)
        return with_header_names(found, wanted.type) if wanted.name == "headers" else found


class _PartRows:
    """One pass over one part. ``shift`` is the position of the local file's first byte in the original file."""

    def __init__(self, part: FilePart, reading: RowOptions, shift: int) -> None:
        self._part = part
        self._reading = reading
        self._shift = shift
        self._known: dict[str, Any] = {name: of(part.file) for name, of in FROM_FILES.items()}
        self._maker = RowMaker(reading, self._known)

    def run(self, path: Path) -> Iterator[pa.RecordBatch]:
        offsets, needed = self._part.offsets, self._maker.sources
        columns = needed if offsets is None else sorted({*needed, "offset"})
        walk = walk_batch_table if BATCH_COLUMNS.issuperset(columns) else walk_record_table
        for item in walk(self._batches(path), self._reading.options, columns=columns):
            if isinstance(item, pa.RecordBatch):
                records = self._shifted(item)
                yield self._maker.rows(records if offsets is None else offsets.rows(records))
            else:
                yield from self.handle_fault(item)

    def _shifted(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records with positions in the original file instead of the local copy."""
        at = records.schema.get_field_index("batch_position")
        if at < 0 or not self._shift:
            return records
        return records.set_column(at, records.schema.field(at), pc.add(records.column(at), self._shift))

    def _batches(self, path: Path) -> Iterator[Item]:
        start, options = self._part.start - self._shift, evolve(self._reading.options, zero_copy=True)
        transactions = self._part.transactions
        if isinstance(transactions, TransactionTrail):
            transactions = transactions.followed()
        for item in walk_range(path, options, self._part.offsets, start, self._limits(transactions)):
            if isinstance(item, BatchRun | LogFileError | RecordError) or self._is_wanted(item, transactions):
                yield item

    def _limits(self, transactions: TransactionIndex | None) -> RunLimits:
        """Return limits that select batches without examining each one."""
        stop, without, last = self._part.end - self._shift, 0 if self._reading.control else CONTROL, LARGEST
        if transactions is not None:
            without |= TRANSACTIONAL if transactions.aborted else 0
            last = last if transactions.last_stable_offset is None else transactions.last_stable_offset - 1
        return RunLimits(stop=stop, without=without, last=last)

    def _is_wanted(self, batch: AnyBatch, transactions: TransactionIndex | None) -> bool:
        if not self._reading.control and isinstance(batch, RecordBatch) and batch.is_control:
            return False
        return transactions is None or not transactions.is_hidden(batch)

    def handle_fault(self, error: Any) -> Iterator[pa.RecordBatch]:
        """Handle damage according to the mode: yield a row that reports it, raise it, or skip it."""
        fault = self._fault(error)
        if self._reading.mode == PERMISSIVE:
            yield self._row(fault)
        elif self._reading.mode == FAILFAST and not self._is_being_written(fault):
            raise fault from fault.__cause__

    def _is_being_written(self, fault: LogFileError) -> bool:
        return self._part.may_be_cut and is_cut_tail(fault, self._part.file.size)

    def _fault(self, error: Any) -> LogFileError:
        """Return an error with this file's path and position, since it may refer to a local copy of a part."""
        return fault_in_file(error, self._part.file.name, self._shift)

    def _row(self, fault: LogFileError) -> pa.RecordBatch:
        """Return the row of damage: its location and reason. All other columns are null."""
        known = self._known | {"batchPosition": fault.position, ERROR: str(fault)}
        schema = self._maker.schema
        arrays = [pa.array([known.get(each.name)], each.type) for each in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
