"""Columns in Python, filled row by row with codec values and record fields.

``native`` must return the same results as this implementation. Only a few rows at a time exist as Python objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.binary_layouts import HEADER_SIZE
from kafka_msgs.codec import CodecOptions, codec_for
from kafka_msgs.columns.interface import COLLECTED_TYPES, MAX_SEQUENCE, ColumnDecoder, RowSlice
from kafka_msgs.columns.objects import bounded_slices, to_struct_array
from kafka_msgs.errors import (
    CorruptRecordError,
    DecodeError,
    InvalidKeyTypeError,
    RecordError,
    UnsupportedVersionError,
)
from kafka_msgs.log.segment import stated_offset
from kafka_msgs.log.summary import CODEC_NAMES
from kafka_msgs.records import Batch, CompressionType, Header, Record, RecordBatch
from kafka_msgs.records.batch import BatchRun
from kafka_msgs.schema import MessageStruct
from kafka_msgs.versioned import decode_versioned

__all__ = ["ROW_FAULTS", "RecordColumns", "decoder", "encoder", "row_decoder"]

ROW_FAULTS: Final = (DecodeError, UnsupportedVersionError, InvalidKeyTypeError)
"""The exceptions for malformed rows."""

_INT64: Final = range(-(2**63), 2**63)
_SMALLEST_RECORD: Final = 7
"""A record has at least its length, its attributes, two deltas, two lengths and a count, of one byte each."""


def row_decoder(cls: Any, version: int | None, options: CodecOptions) -> Callable[[bytes], MessageStruct]:
    """Return a function that decodes the bytes of one row; it raises ``ROW_FAULTS``."""
    if version is None:
        return lambda data: decode_versioned(cls, data, options=options).message
    decode: Callable[[bytes], MessageStruct] = codec_for(cls, version, options).decode
    return decode


def decoder(
    cls: type[MessageStruct], version: int | None, type_: pa.StructType, options: CodecOptions
) -> ColumnDecoder:
    """Return a function that decodes columns of a message. If ``version`` is None, each row has a version prefix."""
    decode = row_decoder(cls, version, options)

    def part(array: pa.Array) -> RowSlice:
        rows: list[MessageStruct | None] = []
        bad = []
        for number, data in enumerate(array.to_pylist()):
            row = None
            if data is not None:
                try:
                    row = decode(data)
                except ROW_FAULTS:
                    bad.append(number)
            rows.append(row)
        return RowSlice(to_struct_array(rows, type_), bad)

    return lambda array: [part(piece) for piece in bounded_slices(array)]


def encoder(cls: type[MessageStruct], version: int | None, type_: pa.StructType, prefix: bool) -> None:
    """Return None: every row is encoded one by one."""


class RecordColumns:
    """The records of batches as one Python list per column; see ``RecordBuffer``."""

    rows: int
    size: int

    def __init__(self, names: Sequence[str], unread: bool = False) -> None:
        self._names = names
        self._facts = [_FACTS[name] for name in names if name in _FACTS]
        self._unread = unread
        self._clear()

    def _clear(self) -> None:
        self._records: list[Record] = []
        self._batches: list[tuple[Any, ...]] = []
        self._counts: list[int] = []
        self.rows = self.size = 0

    def extend(self, run: BatchRun, start: int, rows: int, size: int) -> int:
        """Add the batches of a run; see ``RecordBuffer``."""
        for batch in run.batches(start):
            if self.rows >= rows or self.size >= size:
                return batch.position - run.shift
            try:
                self.append(batch)
            except RecordError:
                return batch.position - run.shift
        return run.end

    def append(self, batch: Batch) -> None:
        """Add the records of a batch. Raises the errors of its ``records``, and an error for numbers above 64 bits."""
        records = [] if self._unread else batch.records()
        for index, record in enumerate(records):
            if record.offset not in _INT64 or record.timestamp not in _INT64:
                raise _overflow(batch, index)
        count = _count(batch) if self._unread else len(records)
        self._records += records
        self._counts.append(count)
        # Keep only the facts: the bytes of many batches would need much memory.
        self._batches.append(tuple(fact(batch) for fact in self._facts))
        self.rows += count
        self.size += batch.size if self._unread else sum(map(_size, records))

    def finish(self) -> list[pa.Array]:
        """Return the columns in the requested order, and clear the buffer."""
        facts = zip(*self._batches, strict=True) if self._batches else iter([()] * len(self._facts))
        columns = [self._spread(name, next(facts)) if name in _FACTS else self._column(name) for name in self._names]
        self._clear()
        return columns

    def _spread(self, name: str, facts: Sequence[Any]) -> pa.Array:
        """Return a column of batch values, each repeated for all records of its batch."""
        values = [fact for fact, count in zip(facts, self._counts, strict=True) for _ in range(count)]
        if name == "sequence":
            values = [_sequence(first, record.offset) for first, record in zip(values, self._records, strict=True)]
        return pa.array(values, COLLECTED_TYPES[name])

    def _column(self, name: str) -> pa.Array:
        make = _COLUMNS.get(name) or (lambda record: getattr(record, name))
        return pa.array([make(record) for record in self._records], COLLECTED_TYPES[name])


def _count(batch: Batch) -> int:
    """Return the number of records of a batch; raises ``RecordError`` for one that cannot hold them."""
    if not isinstance(batch, RecordBatch):
        return 1 if batch.codec == CompressionType.NONE else len(batch.records())
    room, most = batch.size - HEADER_SIZE, batch.detach.options.max_elements
    fits = batch.codec != CompressionType.NONE or batch.count * _SMALLEST_RECORD <= room
    return batch.count if fits and 0 <= batch.count <= most else len(batch.offsets())


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers) if record.headers else 0
    return len(record.key or b"") + len(record.value or b"") + headers


def _overflow(batch: Batch, index: int) -> CorruptRecordError:
    return CorruptRecordError(
        position=batch.position,
        offset=stated_offset(batch),
        at=batch.position,
        index=index,
        compressed=False,
        reason="its offset or its timestamp has more than 64 bits",
    )


def _owned(value: bytes | memoryview | None) -> bytes | None:
    """Return a value as bytes. An array of views would keep every source batch in memory."""
    return bytes(value) if isinstance(value, memoryview) else value


def _headers(record: Record) -> list[dict[str, Any]]:
    return [{"name": _name(header), "value": _owned(header[1])} for header in record.headers]


def _name(header: Header) -> str | None:
    """Return the name of a header, or None if its bytes are not UTF-8."""
    try:
        header[0].encode()
    except UnicodeEncodeError:
        return None
    return header[0]


def _raw_header_names(record: Record) -> list[bytes] | None:
    if all(_name(header) is not None for header in record.headers):
        return None
    return [name.encode("utf-8", "surrogateescape") for name, _ in record.headers]


def _first_sequence(batch: Batch) -> int | None:
    """Return the sequence number of a hypothetical record at offset 0, or None for batches without sequence numbers."""
    if not isinstance(batch, RecordBatch) or batch.base_sequence < 0:
        return None
    return batch.base_sequence - batch.base_offset


def _sequence(first: int | None, offset: int) -> int:
    """Return the sequence number of a record. Sequence numbers increase by one per offset and wrap around to 0."""
    number = -1 if first is None else first + offset
    return number if number <= MAX_SEQUENCE else number - MAX_SEQUENCE - 1


def _newer(attribute: str, older: Any = -1) -> Callable[[Batch], Any]:
    """Return a getter of an attribute that only magic 2 batches have."""
    return lambda batch: getattr(batch, attribute) if isinstance(batch, RecordBatch) else older


_FACTS: Final[dict[str, Callable[[Any], Any]]] = {
    "timestamp_type": lambda batch: int(batch.timestamp_type) if batch.magic else -1,
    "batch_offset": stated_offset,
    "batch_position": lambda batch: batch.position,
    "batch_size": lambda batch: batch.size,
    "partition_leader_epoch": _newer("partition_leader_epoch"),
    "producer_id": _newer("producer_id"),
    "producer_epoch": _newer("producer_epoch"),
    "sequence": _first_sequence,
    "is_transactional": _newer("is_transactional", older=False),
    "is_control": _newer("is_control", older=False),
    "codec": lambda batch: CODEC_NAMES[batch.codec],
    "magic": lambda batch: batch.magic,
}
_COLUMNS: Final[dict[str, Callable[[Record], Any]]] = {
    "key": lambda record: _owned(record.key),
    "value": lambda record: _owned(record.value),
    "headers": _headers,
    "raw_header_names": _raw_header_names,
}
