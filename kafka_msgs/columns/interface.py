"""The common interface of the two column implementations, ``native`` and ``python``.

Each module has a function ``decoder(message, version, type, options)``, which returns a ``ColumnDecoder``, a function
``encoder(message, version, type, prefix)``, which returns an ``ColumnEncoder`` or None, and ``RecordColumns(names,
unread)``, which is a ``RecordBuffer`` with columns out of ``COLLECTED_TYPES``. They only detect bad rows and fault
locations. ``decode`` and ``encode`` find the errors.
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
"""The number of bytes that always fit into one array, which has 32-bit offsets."""

COLLECTED_TYPES: Final = {field.name: field.type for field in RECORD_SCHEMA if field.name != "timestamp_ms"} | {
    "timestamp": pa.int64()
}
"""The types of the collected columns. Timestamps are numbers."""

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
"""The columns of batch header fields, which are equal for all records of a batch."""

MAX_SEQUENCE: Final = 2**31 - 1
"""The highest sequence number of a record. After it comes 0."""


RowLocation: TypeAlias = "tuple[Any, ...] | None"
"""The fault location in a bad row: the fields of the reference's ``FaultLocation``. If the trail is empty, the bytes
from the position on follow a complete message. None or a negative position means that the location is unknown.
"""


class RowSlice(NamedTuple):
    """Some consecutive rows: their values, and the numbers (from 0, in this part) and locations of refused rows."""

    values: pa.Array
    bad_rows: list[int]
    locations: Iterator[RowLocation] = repeat(None)


ColumnDecoder: TypeAlias = Callable[[pa.Array], list[RowSlice]]
"""Decodes a binary or large binary array, or a slice of one. The parts follow each other without a gap."""


ColumnEncoder: TypeAlias = Callable[[pa.StructArray, "pa.Array | None"], Iterable[RowSlice]]
"""Encodes a struct array, or a slice of one, with the versions of its rows if they differ. ``encode`` encodes the
refused rows one by one, or all rows if the encoder is None.
"""


class RecordBuffer(Protocol):
    """Collects the records of batches as columns.

    An ``unread`` buffer has columns out of ``BATCH_COLUMNS``, and one row per record counted by the batch headers. It
    reads records only if a batch is too small for the record count of its header, and in compressed message sets.
    """

    @property
    def rows(self) -> int:
        """The number of records since the last ``finish``."""

    @property
    def size(self) -> int:
        """The approximate size of their content in bytes."""

    def extend(self, run: BatchRun, start: int, rows: int, size: int) -> int:
        """Add the batches of a run from the byte ``start`` of its data on, until there are ``rows`` or ``size``.

        Returns the byte at which a batch starts that is not added: the columns are full, or this implementation
        cannot read the batch. Then ``python`` reads it or raises the error.
        """

    def finish(self) -> list[pa.Array]:
        """Return the columns in the requested order, and clear the buffer."""
