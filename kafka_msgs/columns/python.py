"""Columns in Python: the values of the codec and of records, row by row, put into columns.

``native`` must give the same result as this implementation. Only some rows at a time exist as Python objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.codec import CodecOptions, codec_for
from kafka_msgs.columns.common import BATCH_NUMBER, RECORD_LEVEL_TYPES, Decode, Part
from kafka_msgs.columns.values import bounded_slices, struct_array
from kafka_msgs.errors import CorruptRecordError, DecodeError, InvalidKeyTypeError, UnsupportedVersionError
from kafka_msgs.prefixed import decode_versioned
from kafka_msgs.records import Batch, Header, Record, RecordBatch
from kafka_msgs.schema import Described

__all__ = ["ROW_FAULTS", "RecordColumns", "decoder", "encoder", "row_decoder", "stated_offset"]

ROW_FAULTS: Final = (DecodeError, UnsupportedVersionError, InvalidKeyTypeError)
"""The errors of the bytes of a row."""

_INT64: Final = range(-(2**63), 2**63)


def row_decoder(cls: Any, version: int | None, options: CodecOptions) -> Callable[[bytes], Described]:
    """Return the function that decodes the bytes of one row; it raises ``ROW_FAULTS``."""
    if version is None:
        return lambda data: decode_versioned(cls, data, options=options).message
    decode: Callable[[bytes], Described] = codec_for(cls, version, options).decode
    return decode


def decoder(cls: type[Described], version: int | None, type_: pa.StructType, options: CodecOptions) -> Decode:
    """Return the function that decodes columns of a message; the version is None where each row has its prefix."""
    decode = row_decoder(cls, version, options)

    def part(array: pa.Array) -> Part:
        rows: list[Described | None] = []
        bad = []
        for number, data in enumerate(array.to_pylist()):
            row = None
            if data is not None:
                try:
                    row = decode(data)
                except ROW_FAULTS:
                    bad.append(number)
            rows.append(row)
        return Part(struct_array(rows, type_), bad)

    return lambda array: [part(piece) for piece in bounded_slices(array)]


def encoder(cls: type[Described], version: int | None, type_: pa.StructType, prefix: bool) -> None:
    """Return None: every row is encoded one by one."""


class RecordColumns:
    """The records of batches as one Python list per column; see ``RecordBuffer``."""

    rows: int
    size: int

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._clear()

    def _clear(self) -> None:
        self._records: list[Record] = []
        self._batches: list[int] = []
        self._count = self.rows = self.size = 0

    def append(self, batch: Batch) -> bool:
        """Add the records of a batch; raises what ``records`` of it raises, and for numbers of more than 64 bits."""
        records = batch.records()
        for index, record in enumerate(records):
            if record.offset not in _INT64 or record.timestamp not in _INT64:
                raise _overflow(batch, index)
        self._records += records
        self._batches += [self._count] * len(records)
        self._count += 1
        self.rows += len(records)
        self.size += sum(map(_size, records))
        return True

    def finish(self) -> list[pa.Array]:
        """Return the columns in the requested order, and start again."""
        columns = [self._column(name) for name in self._names]
        self._clear()
        return columns

    def _column(self, name: str) -> pa.Array:
        type_ = RECORD_LEVEL_TYPES[name]
        if name == BATCH_NUMBER:
            return pa.array(self._batches, type_)
        make = _COLUMNS.get(name) or (lambda record: getattr(record, name))
        return pa.array([make(record) for record in self._records], type_)


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers) if record.headers else 0
    return len(record.key or b"") + len(record.value or b"") + headers


def stated_offset(batch: Batch) -> int:
    """Return the offset that a batch starts with: its first record's, in a compressed message set the last one's."""
    return batch.base_offset if isinstance(batch, RecordBatch) else batch.last_offset


def _overflow(batch: Batch, index: int) -> CorruptRecordError:
    return CorruptRecordError(
        position=batch.position,
        offset=stated_offset(batch),
        at=batch.position,
        index=index,
        compressed=False,
        reason="its offset or its timestamp has more than 64 bits",
    )


def _headers(record: Record) -> list[dict[str, Any]]:
    return [{"name": _name(header), "value": header[1]} for header in record.headers]


def _name(header: Header) -> str | None:
    """Return the name of a header, or None where its bytes are not UTF-8."""
    try:
        header[0].encode()
    except UnicodeEncodeError:
        return None
    return header[0]


def _raw_header_names(record: Record) -> list[bytes] | None:
    if all(_name(header) is not None for header in record.headers):
        return None
    return [name.encode("utf-8", "surrogateescape") for name, _ in record.headers]


_COLUMNS: Final[dict[str, Callable[[Record], Any]]] = {"headers": _headers, "raw_header_names": _raw_header_names}
