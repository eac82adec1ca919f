"""What the two implementations of columns, ``native`` and ``python``, have in common.

Both have a function ``decoder(message, version, type, options)``, which returns a ``Decode``, and a class
``RecordColumns(names)``, which is a ``RecordBuffer`` with columns out of ``RECORD_LEVEL`` and ``BATCH_NUMBER``. They
only notice that a row is bad; what is wrong with it is left to ``decode``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from kafka_msgs.columns.types import RECORD_SCHEMA
from kafka_msgs.layouts import RECORD_COLUMNS
from kafka_msgs.records import Batch

__all__ = ["BATCH_NUMBER", "RECORD_LEVEL", "RECORD_LEVEL_TYPES", "Decode", "Part", "RecordBuffer"]

*_IN_BYTES, BATCH_NUMBER = RECORD_COLUMNS
RECORD_LEVEL: Final = (*_IN_BYTES, "raw_header_names")
"""The columns of records that differ within a batch and stand in its bytes; ``BATCH_NUMBER`` says with which ``append``
since ``finish`` a record came, and what holds for a whole batch is made of it."""

RECORD_LEVEL_TYPES: Final = {name: RECORD_SCHEMA.field(name).type for name in RECORD_LEVEL} | {
    "timestamp": pa.int64(),
    BATCH_NUMBER: pa.int32(),
}
"""The types of those columns as they are collected; a timestamp is its number."""


class Part(NamedTuple):
    """Some consecutive rows: their values, and the numbers (from 0, in this part) of rows that could not be decoded."""

    values: pa.StructArray
    bad: list[int]


Decode: TypeAlias = Callable[[pa.Array], list[Part]]
"""Decodes a binary or large binary array, a slice of one as well; the parts follow each other without a gap."""


class RecordBuffer(Protocol):
    """Collects the records of batches, one batch after the other, as columns."""

    rows: int
    """How many records there are since ``finish``."""
    size: int
    """How many bytes their content has, about."""

    def append(self, batch: Batch) -> bool:
        """Add the records of a batch; raises what ``records`` of a batch raises.

        False where this implementation cannot, which leaves the buffer as it was: ``python`` then says why, or can.
        """

    def finish(self) -> list[pa.Array]:
        """Return the columns, in the order that was asked for, and start anew."""
