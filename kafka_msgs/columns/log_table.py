"""The records of log directories as one Arrow table, streamed in one process without Spark.

Defines the column names, which the Spark source ``kafka-log`` shares, and the conversion of files to row batches.
``kafka_msgs.columns`` converts records to columns. Needs the extra ``arrow``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, get_args

from attrs import evolve, frozen

from kafka_msgs.binary_layouts import CONTROL, TRANSACTIONAL
from kafka_msgs.columns import RECORD_SCHEMA
from kafka_msgs.columns.record_tables import BATCH_COLUMNS, Fault, walk_batch_table, walk_record_table
from kafka_msgs.errors import LogFileError, MissingExtraError, OptionError, RecordError, UnknownColumnError
from kafka_msgs.log.batch_runs import Item, RunLimits, walk_runs
from kafka_msgs.log.file_scan import AnyBatch, FileScan
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import Progress, partitions_in
from kafka_msgs.log.segment import LARGEST
from kafka_msgs.log.transaction_index import IsolationLevel, TransactionIndex
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions, RecordBatch
from kafka_msgs.suggestions import similar_names
from kafka_msgs.validators import check_choice

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise MissingExtraError(feature="a table of a log", extra="arrow", package="pyarrow") from error

__all__ = ["DEFAULT_COLUMNS", "ERROR", "LogTable", "RowFilter", "SegmentRows", "columns_of_logs"]

ERROR: Final = "_error"
"""The name of the column with the reason why a row, or a part of it, is unreadable, or else null."""

FROM_RECORDS: Final[Mapping[str, str]] = {
    "offset": "offset",
    "timestamp": "timestamp",
    "timestampMs": "timestamp_ms",
    "timestampType": "timestamp_type",
    "key": "key",
    "value": "value",
    "headers": "headers",
    "leaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "sequence": "sequence",
    "transactional": "is_transactional",
    "control": "is_control",
    "codec": "codec",
    "magic": "magic",
    "batchOffset": "batch_offset",
    "batchPosition": "batch_position",
    "batchSize": "batch_size",
    "rawHeaderKeys": "raw_header_names",
}
"""The record columns under the names of Spark's own Kafka source, and their names in ``record_table``."""

DEFAULT_COLUMNS: Final = frozenset(
    {"topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers", ERROR}
)
"""The default columns: the columns of Spark's own source ``kafka`` with headers, and the error column."""
_ON_REQUEST: Final = frozenset({"rawHeaderKeys", "timestampMs"})
"""Columns that ``_ALL`` does not include. They must be requested by name."""
_ALL: Final = "*"
"""All columns."""
_OWN: Final = ("topic", "partition", *FROM_RECORDS, "file", ERROR)

_MAX_BYTES: Final = 8 << 20
"""The size of the record batches of ``walk_segment``."""
_MOST_MS: Final = (2**63 - 1) // 1000
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "headers": _HEADERS,
    "file": pa.string(),
    ERROR: pa.string(),
}
"""The types of columns that differ from ``record_table``."""


class RowFilter(Protocol):
    """Selects rows of a log. ``columns`` are the names of the columns that it needs."""

    columns: Sequence[str]

    def select(self, rows: Any) -> Any:
        """Return the selected rows of an Arrow record batch."""
        ...

    def report(self, source: str) -> None:
        """Report problems of the rows of a source."""
        ...


@frozen(kw_only=True)
class SegmentRows:
    """A segment of a table. It can be pickled and read in another process."""

    table: LogTable
    topic: str
    partition: int
    path: Path
    transactions: TransactionIndex
    """The transactions whose records are left out."""
    closed: bool
    """Whether another segment follows, so that zeros at the end are damage."""

    @property
    def rows(self) -> Iterator[Any]:
        """The rows as Arrow record batches, read lazily."""
        return self.table.rows_of(self)

    @property
    def size(self) -> int:
        """The size of the file in bytes, or 0 if it was deleted in the meantime."""
        return self.path.stat().st_size if self.path.exists() else 0


class LogTable:
    """The records of log directories, one row per record, sorted by topic, partition and offset.

    A path is a log directory of a broker, or the directory of one partition. ``columns`` selects columns of the source
    ``kafka-log``, with the same names and content, and ``["*"]`` selects all. By default they are ``topic``,
    ``partition``, ``offset``, ``timestamp``, ``timestampType``, ``key``, ``value`` and ``headers``. ``_error`` is
    always included: a damaged part becomes a row with the reason in ``_error``, and all other rows are read. ``topics``
    and ``partitions`` select topics by name and partitions by number. ``control`` adds rows for control records.
    ``isolation`` is the isolation level of a consumer: ``read_committed`` leaves out the records of aborted
    transactions, and all records from the first open transaction on.
    ``where`` selects rows, besides the rows of damaged parts.

    Each use reads the table again, batch by batch, so it needs the memory of a few batches regardless of file sizes.
    Libraries that support Arrow's PyCapsule interface accept it directly: DuckDB, Polars, DataFusion, pandas,
    ``pyarrow.table``. Raises ``JobPathError`` for a path without partitions and for two copies of a partition,
    ``OptionError`` for a topic or partition that does not exist in the paths, and ``UnknownColumnError``. Reading
    raises ``MissingExtraError`` for a codec that is not installed, and ``OSError``.
    """

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        topics: Collection[str] | None = None,
        partitions: Collection[int] | None = None,
        control: bool = False,
        isolation: IsolationLevel = "read_uncommitted",
        where: RowFilter | None = None,
        options: ReadOptions = DEFAULT_READ_OPTIONS,
        progress: Progress | None = None,
    ) -> None:
        check_choice("a log", "isolation", isolation, get_args(IsolationLevel))
        names = select_columns("a log", _OWN, columns, DEFAULT_COLUMNS)
        self._where = where
        self._partitions = _among(partitions_in(map(Path, paths)), topics, partitions)
        self._control = control
        self._committed = isolation == "read_committed"
        self._options = evolve(options, zero_copy=True)
        self.progress = progress or Progress()
        """Receives the progress of reading."""
        read = (*names, *(name for name in (where.columns if where else ()) if name not in names))
        self._sources = sorted({FROM_RECORDS[name] for name in read if name in FROM_RECORDS} or {"magic"})
        self.schema = pa.schema([(name, column_type(name)) for name in names])
        """The columns, as ``pyarrow.Schema``."""
        self._read = pa.schema([(name, column_type(name)) for name in read])

    @property
    def files(self) -> list[Path]:
        """The existing segments."""
        return [segment.path for partition in self._partitions for segment in partition.segments]

    def batches(self) -> Iterator[Any]:
        """Yield the rows as Arrow record batches."""
        for segment in self.segments():
            yield from segment.rows

    def segments(self) -> Iterator[SegmentRows]:
        """Yield the existing segments, sorted by topic, partition and offset."""
        for each in self._partitions:
            transactions = each.transactions() if self._committed else TransactionIndex()
            for segment in each.segments:
                yield SegmentRows(
                    table=self,
                    topic=each.topic,
                    partition=each.partition,
                    path=segment.path,
                    transactions=transactions.between(segment.base_offset, segment.end),
                    closed=segment.end < LARGEST,
                )

    def __getstate__(self) -> dict[str, Any]:
        # Only the process that created the table displays the progress.
        return self.__dict__ | {"progress": Progress()}

    def reader(self) -> Any:
        """Return a ``pyarrow.RecordBatchReader`` of the rows."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __iter__(self) -> Iterator[Any]:
        return self.batches()

    def __arrow_c_schema__(self) -> object:
        """Return the schema through Arrow's PyCapsule interface."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a new stream of the rows through Arrow's PyCapsule interface."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def rows_of(self, segment: SegmentRows) -> Iterator[Any]:
        """Yield the rows of a segment as Arrow record batches."""
        path = segment.path
        self.progress.file(path)
        known = {"topic": segment.topic, "partition": segment.partition, "file": str(path)}
        walk = walk_batch_table if BATCH_COLUMNS.issuperset(self._sources) else walk_record_table
        for item in faults_in_file(walk(self._batches(segment), self._options, columns=self._sources), path):
            yield self._rows(known, item) if isinstance(item, pa.RecordBatch) else damage_row(self.schema, known, item)
        if self._where is not None:
            self._where.report(str(path))

    def _batches(self, segment: SegmentRows) -> Iterator[Item]:
        selection = BatchSelection(segment.transactions, self._control)
        for item in walk_runs(FileScan(segment.path, self._options, closed=segment.closed), selection.limits()):
            self.progress.read(item.position)
            if selection.has(item):
                yield item

    def _rows(self, known: Mapping[str, Any], records: pa.RecordBatch) -> pa.RecordBatch:
        rows = log_rows(self._read, known, records)
        return rows if self._where is None else self._where.select(rows).select(self.schema.names)


@frozen
class BatchSelection:
    """The selection of batches: without the records that a transaction hides, and without control batches or with."""

    transactions: TransactionIndex
    control: bool

    def limits(self, stop: int = RunLimits().stop) -> RunLimits:
        """Return limits of runs that select most batches before the byte ``stop`` without examining each one."""
        hidden_from = self.transactions.hidden_from
        return RunLimits(
            stop=stop,
            without=(0 if self.control else CONTROL) | (TRANSACTIONAL if self.transactions.aborted else 0),
            last=2**63 - 1 if hidden_from is None else hidden_from - 1,
        )

    def has(self, item: Item) -> bool:
        """Return whether a batch is selected. Runs within the limits and damage are always selected."""
        if not isinstance(item, AnyBatch):
            return True
        is_control = isinstance(item, RecordBatch) and item.is_control
        return (self.control or not is_control) and not self.transactions.is_hidden(item)


def log_rows(schema: pa.Schema, known: Mapping[str, Any], records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of records. ``known`` contains columns: arrays, or the value that all rows share."""

    def column(wanted: pa.Field) -> pa.Array:
        given = known.get(wanted.name)
        if isinstance(given, pa.Array):
            return given
        if wanted.name in known or wanted.name not in FROM_RECORDS:
            return pa.repeat(pa.scalar(given, wanted.type), records.num_rows)
        found = records.column(FROM_RECORDS[wanted.name])
        if wanted.name == "timestamp":
            return in_microseconds(found)
        return with_header_names(found, wanted.type) if wanted.name == "headers" else found

    return pa.RecordBatch.from_arrays([column(each) for each in schema], schema=schema)


def damage_row(schema: pa.Schema, known: Mapping[str, Any], fault: LogFileError) -> pa.RecordBatch:
    """Return the row of damage: its location and reason. All other columns are null."""
    facts = {**known, "batchPosition": fault.position, ERROR: str(fault)}
    return pa.RecordBatch.from_pylist([{name: facts.get(name) for name in schema.names}], schema)


def _among(
    found: Sequence[Partition], topics: Collection[str] | None, partitions: Collection[int] | None
) -> list[Partition]:
    """Return the partitions with these topics and numbers. Raises ``OptionError`` for one that does not exist."""
    known: dict[str, tuple[Collection[Any] | None, set[Any]]] = {
        "topics": (topics, {each.topic for each in found}),
        "partitions": (partitions, {each.partition for each in found}),
    }
    for option, (wanted, there) in known.items():
        for value in sorted(set(wanted or ()) - there):
            raise OptionError(source="a log", option=option, value=value, reason="the paths do not have it")
    return [
        each
        for each in found
        if (topics is None or each.topic in topics) and (partitions is None or each.partition in partitions)
    ]


def column_type(name: str) -> pa.DataType:
    """Return the type of a column of logs."""
    return _TYPES[name] if name in _TYPES else RECORD_SCHEMA.field(FROM_RECORDS[name]).type


def columns_of_logs() -> tuple[str, ...]:
    """Return the names of all possible columns of a log, in order."""
    return _OWN


def select_columns(
    source: str, own: Sequence[str], asked: Sequence[str] | None, usual: frozenset[str]
) -> tuple[str, ...]:
    """Return the requested columns among a table's ``own`` columns, in order, by default the ``usual`` ones.

    ``_error`` is always included if the table has it. Raises ``UnknownColumnError`` for a column that does not exist.
    """
    for name in asked or ():
        if name not in (*own, _ALL):
            raise UnknownColumnError(source=source, column=name, near=similar_names(name, own))
    wanted = usual if asked is None else {*asked, ERROR}
    every = _ALL in wanted
    return tuple(name for name in own if name in wanted or (every and name not in _ON_REQUEST))


def faults_in_file(items: Iterator[Any], path: Path) -> Iterator[Any]:
    """Yield the record batches of a walk over a file, and each ``Fault`` as a ``LogFileError``.

    A file that a broker deletes during the read is also such an error.
    """
    try:
        for item in items:
            yield item_in_file(item, str(path))
    except FileNotFoundError:
        yield LogFileError(file=str(path), position=0, skipped=0, reason="the file is not there")


def walk_segment(path: Path, columns: Sequence[str], progress: Progress, *, closed: bool = False) -> Iterator[Any]:
    """Yield the records of a segment with these columns of ``record_table``, and each ``LogFileError``.

    Zeros at the end of a ``closed`` segment are damage.
    """
    progress.file(path)
    options = ReadOptions(zero_copy=True)

    def items() -> Iterator[Item]:
        for item in walk_runs(FileScan(path, options, closed=closed)):
            progress.read(item.position)
            yield item

    return faults_in_file(walk_record_table(items(), options, columns=columns, max_bytes=_MAX_BYTES), path)


def item_in_file(item: Any, file: str, shift: int = 0) -> Any:
    """Return an item of a walk over a copy of a part of a file, as an item of the file: records, or a ``LogFileError``.

    ``shift`` is the position of the copy in the file.
    """
    if not isinstance(item, pa.RecordBatch):
        return _fault_in_file(item, file, shift)
    at = item.schema.get_field_index("batch_position")
    moved = shift and at >= 0
    return item.set_column(at, item.schema.field(at), pc.add(item.column(at), shift)) if moved else item


def _fault_in_file(error: Fault, file: str, shift: int) -> LogFileError:
    """Return the error of a buffer as an error of a file, with its position increased by ``shift`` bytes."""
    if isinstance(error, RecordError):
        index = getattr(error, "index", None)
        reason = error.reason if index is None else f"record {index}: {error.reason}"
        skipped = 0
    else:
        reason, skipped = error.reason, error.skipped
    fault = LogFileError(file=file, position=error.position + shift, skipped=skipped, reason=reason)
    fault.__cause__ = error if isinstance(error, RecordError) else error.__cause__
    return fault


def in_microseconds(times: pa.TimestampArray) -> pa.TimestampArray:
    """Return times in microseconds, which most programs use; null for times that overflow 64 bits."""
    numbers = times.cast(pa.int64())
    held = pc.and_(pc.greater_equal(numbers, -_MOST_MS), pc.less_equal(numbers, _MOST_MS))
    return pc.multiply(pc.if_else(held, numbers, None), 1000).cast(pa.timestamp("us", tz="UTC"))


def with_header_names(lists: pa.ListArray, type_: pa.ListType) -> pa.ListArray:
    """Return an array of lists of structs with the field names of ``type_``."""
    structs = lists.values
    fields = list(type_.value_type)
    inner = pa.StructArray.from_arrays([structs.field(number) for number in range(len(fields))], fields=fields)
    return pa.Array.from_buffers(
        type_, len(lists), lists.buffers()[:2], null_count=lists.null_count, offset=lists.offset, children=[inner]
    )
