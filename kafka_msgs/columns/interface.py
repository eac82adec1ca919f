"""What the two implementations of columns, ``native`` and ``python``, have in common.

Both have a function ``decoder(message, version, type, options)``, which returns a ``ColumnDecoder``, a function
``encoder(message, version, type, prefix)``, which returns an ``ColumnEncoder`` or None, and ``RecordColumns(names,
unread)``, which is a ``RecordBuffer`` with columns out of ``COLLECTED_TYPES``. They only detect that a row is bad,
and where. ``decode`` and ``encode`` find the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from kafka_msgs.columns.types import RECORD_SCHEMA
from kafka_msgs.records.batch import BatchRun

__all__ = [
    "BATCH_COLUMNS",
    "COLLECTED_TYPES",
    "MAX_ARRAY",
    "MAX_SEQUENCE",
    "ColumnDecoder",
    "ColumnEncoder",
    "RecordBuffer",
    "RowLocation",
    "RowSlice",
]

MAX_ARRAY: Final = 2**31 - 1
"""How many bytes always fit into one array, whose offsets have 32 bits."""

COLLECTED_TYPES: Final = {field.name: field.type for field in RECORD_SCHEMA if field.name != "timestamp_ms"} | {
    "timestamp": pa.int64()
}
"""The columns that are collected, and their types. A timestamp is a number."""

BATCH_COLUMNS: Final = frozenset(
    {
        "timestamp_type",
        "batch_offset",
        "batch_position",
        "batch_size",
        "partition_leader_epoch",
        "producer_id",
        "producer_epoch",
        "is_transactional",
        "is_control",
        "codec",
        "magic",
    }
)
"""The columns that are equal for all records of a batch, and are in its header."""

MAX_SEQUENCE: Final = 2**31 - 1
"""The highest sequence number of a record. After it comes 0."""


RowLocation: TypeAlias = "tuple[Any, ...] | None"
"""Where a row is bad: the fields of the reference's ``FaultLocation``. Without a trail, the bytes from the position on
follow a complete message, or nothing is known if it is negative. None: nothing is known.
"""


class RowSlice(NamedTuple):
    """Some consecutive rows: their values, and the numbers (from 0, in this part) and locations of refused rows."""

    values: pa.Array
    bad_rows: list[int]
    locations: Iterator[RowLocation] = repeat(None)


ColumnDecoder: TypeAlias = Callable[[pa.Array], list[RowSlice]]
"""Decodes a binary or large binary array, or a slice of one. The parts follow each other without a gap."""


ColumnEncoder: TypeAlias = Callable[[pa.StructArray, "pa.Array | None"], Iterable[RowSlice]]
"""Encodes a struct array, or a slice of one, with the versions of its rows where they are not all the same. ``encode``
encodes the refused rows one by one. None encodes all rows so.
"""


class RecordBuffer(Protocol):
    """Collects the records of batches as columns.

    An ``unread`` buffer has columns out of ``BATCH_COLUMNS``, and as many rows as the headers count records: it reads
    records only where a batch is too small for what its header counts, and in compressed message sets.
    """

    @property
    def rows(self) -> int:
        """How many records there are since ``finish``."""

    @property
    def size(self) -> int:
        """The approximate size of their content in bytes."""

    def extend(self, run: BatchRun, start: int, rows: int, size: int) -> int:
        """Add the batches of a run from the byte ``start`` of its data on, until there are ``rows`` or ``size``.

        Returns the byte at which a batch starts that is not added: the columns are full, or this implementation
        cannot read the batch. Then ``python`` reads it or raises the error.
        """

    def finish(self) -> list[pa.Array]:
        """Return the columns in the requested order, and start again."""
