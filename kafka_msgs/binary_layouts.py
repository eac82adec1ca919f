"""Layouts that C and Python share: positions, flags and numbers, each defined once.

The generator writes them to ``_core/layouts.h``. The batch layout follows Kafka's ``DefaultRecordBatch``. The
layout of one record is code, in ``_core/walk.h``, ``records.record_decoder`` and ``records.python``. ``codec.ops``
lists the kinds of values on the wire.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct, calcsize
from typing import Final

__all__ = [
    "ATTRIBUTES",
    "BATCH_HEADER",
    "CODEC_MASK",
    "CONTROL",
    "CRC_START",
    "DELETE_HORIZON",
    "HEADER",
    "HEADER_SIZE",
    "LENGTH_AND_OFFSET_STRUCT",
    "LOG_APPEND_TIME",
    "MAGIC_OFFSET",
    "MARK_INTERVAL",
    "NO_PRODUCER",
    "NO_TIMESTAMP",
    "RECORD_COLUMNS",
    "TRANSACTIONAL",
    "UUID_TEXT",
    "ColumnKind",
    "RecordField",
    "header_field_offset",
    "header_struct",
]

# The header of a batch of magic 2

BATCH_HEADER: Final = {
    "base_offset": "q",
    "size": "i",
    "leader_epoch": "i",
    "magic": "b",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp": "q",
    "max_timestamp": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "count": "i",
}
"""The fields in order, each with its code for ``struct``. All are big-endian."""


def header_struct(*names: str) -> Struct:
    """Return the ``Struct`` that unpacks some fields, in the order of the header, from the start of a batch."""
    return Struct(">" + "".join(code if name in names else f"{calcsize(code)}x" for name, code in BATCH_HEADER.items()))


def header_field_offset(name: str) -> int:
    """Return the byte at which a field starts."""
    codes = list(BATCH_HEADER.values())[: list(BATCH_HEADER).index(name)]
    return calcsize(">" + "".join(codes))


HEADER: Final = header_struct(*BATCH_HEADER)
HEADER_SIZE: Final = HEADER.size

LENGTH_AND_OFFSET_STRUCT: Final = header_field_offset("leader_epoch")
"""The bytes before the part that the size of a batch counts, in every format."""
MAGIC_OFFSET: Final = header_field_offset("magic")
"""The position of the format's number, in every format."""
CRC_START: Final = header_field_offset("attributes")
"""The bytes before this position are not covered by the checksum. A broker may rewrite them."""

NO_TIMESTAMP: Final = -1
"""Timestamp of a record without a timestamp."""
NO_PRODUCER: Final = -1
"""The producer id of a batch without sequence numbers."""

# The attributes of a batch

CODEC_MASK: Final = 0b111
LOG_APPEND_TIME: Final = 1 << 3
TRANSACTIONAL: Final = 1 << 4
CONTROL: Final = 1 << 5
DELETE_HORIZON: Final = 1 << 6

ATTRIBUTES: Final = {
    "codec_mask": CODEC_MASK,
    "log_append_time": LOG_APPEND_TIME,
    "transactional": TRANSACTIONAL,
    "control": CONTROL,
    "delete_horizon": DELETE_HORIZON,
}

# The arguments of the C core


class RecordField(IntEnum):
    """The part of records to read: all fields, one field, or the start of every ``MARK_INTERVAL``-th record."""

    RECORDS = 0
    OFFSETS = 1
    TIMESTAMPS = 2
    KEYS = 3
    VALUES = 4
    MARKS = 5


MARK_INTERVAL: Final = 128
"""The number of records from one mark to the next. Reading a record reads all records of its mark."""


class ColumnKind(IntEnum):
    """The content of a column in Arrow's memory layout: bits, values of fixed size, text with offsets, or columns."""

    BITS = 0
    FIXED = 1
    TEXT = 2
    LIST = 3
    STRUCT = 4


RECORD_COLUMNS: Final = (
    "offset",
    "timestamp",
    "key",
    "value",
    "headers",
    "position",
    "base_offset",
    "size",
    "leader_epoch",
    "magic",
    "attributes",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
"""The columns that the core builds from records: record fields, the start byte of the batch, and its header fields.
"""

UUID_TEXT: Final = 36
"""The bytes of a UUID in hexadecimal, including its hyphens."""
