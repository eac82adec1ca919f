"""What the two implementations of columns, ``native`` and ``python``, have in common.

Both have a function ``decoder(message, version, type, options)``, which returns a ``Decode``, a function
``encoder(message, version, type, prefix)``, which returns an ``Encode`` or None, and a class ``RecordColumns(names)``,
which is a ``RecordBuffer`` with columns out of ``RECORD_LEVEL`` and ``BATCH_NUMBER``. They only detect that a row is
bad. ``decode`` and ``encode`` find the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from kafka_msgs.columns.types import RECORD_SCHEMA
from kafka_msgs.layouts import RECORD_COLUMNS
from kafka_msgs.records import Batch

__all__ = ["BATCH_NUMBER", "RECORD_LEVEL", "RECORD_LEVEL_TYPES", "Decode", "Encode", "Part", "RecordBuffer"]

*_IN_BYTES, BATCH_NUMBER = RECORD_COLUMNS
RECORD_LEVEL: Final = (*_IN_BYTES, "raw_header_names")
"""The columns that can differ for each record of a batch. ``BATCH_NUMBER`` counts the calls of ``append`` since
``finish``. The columns of a whole batch are made from it."""

RECORD_LEVEL_TYPES: Final = {name: RECORD_SCHEMA.field(name).type for name in RECORD_LEVEL} | {
    "timestamp": pa.int64(),
    BATCH_NUMBER: pa.int32(),
}
"""The types of those columns while they are collected. A timestamp is a number."""


class Part(NamedTuple):
    """Some consecutive rows: their values, and the numbers (from 0, in this part) of rows that were refused."""

    values: pa.Array
    bad: list[int]


Decode: TypeAlias = Callable[[pa.Array], list[Part]]
"""Decodes a binary or large binary array, or a slice of one. The parts follow each other without a gap."""


Encode: TypeAlias = Callable[[pa.StructArray, "pa.Array | None"], Iterable[Part]]
"""Encodes a struct array, or a slice of one, with the versions of its rows where they are not all the same. ``encode``
encodes the refused rows one by one. None encodes all rows so.
"""


class RecordBuffer(Protocol):
    """Collects the records of batches as columns."""

    rows: int
    """How many records there are since ``finish``."""
    size: int
    """The approximate size of their content in bytes."""

    def append(self, batch: Batch) -> bool:
        """Add the records of a batch; raises what ``records`` of a batch raises.

        Returns False if this implementation cannot read the batch. The buffer is then unchanged, and ``python`` reads
        the batch or raises the error.
        """

    def finish(self) -> list[pa.Array]:
        """Return the columns in the requested order, and start again."""
