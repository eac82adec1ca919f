"""What a form of the column code is: the functions that the pure-Python form and the C form both have.

Forms turn columns into columns and only notice that a row is bad; which form runs, and what is wrong with a bad row, is
left to ``switch`` and ``decode``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from kafka_msgs.codec import CodecOptions
from kafka_msgs.records import Batch
from kafka_msgs.schema import Described

__all__ = ["BATCH_NUMBER", "RECORD_LEVEL", "Decode", "Decoder", "Form", "Part", "RecordBuffer"]

RECORD_LEVEL: Final = ("offset", "timestamp", "key", "value", "headers", "raw_header_names")
"""The columns of records that differ within a batch and stand in its bytes."""

BATCH_NUMBER: Final = "batch"
"""The column that says with which ``append`` since ``finish`` a record came, from 0; the others are made of it."""


class Part(NamedTuple):
    """Some consecutive rows: their values, and the numbers (from 0, in this part) of rows that could not be decoded."""

    values: pa.StructArray
    bad: list[int]


Decode: TypeAlias = Callable[[pa.Array], list[Part]]
"""Decodes a binary or large binary array, a slice of one as well; the parts follow each other without a gap."""

Decoder: TypeAlias = Callable[[type[Described], int | None, pa.StructType, CodecOptions], Decode]
"""Makes the function for a message, a version (None: each row has its prefix) and a type that ``arrow_type`` gave."""


class RecordBuffer(Protocol):
    """Collects the records of batches, one batch after the other, as columns."""

    rows: int
    """How many records there are since ``finish``."""
    size: int
    """How many bytes their content has, about."""

    def append(self, batch: Batch) -> bool:
        """Add the records of a batch; raises what ``records`` of a batch raises.

        False where this form cannot, which leaves the buffer as it was: the pure-Python form then says why, or can.
        """

    def finish(self) -> list[pa.Array]:
        """Return the columns, in the order that was asked for, and start anew."""


class Form(NamedTuple):
    """Everything that there is in two forms.

    ``record_buffer`` makes a ``RecordBuffer`` with columns out of ``RECORD_LEVEL`` and ``BATCH_NUMBER``.
    """

    decoder: Decoder
    record_buffer: Callable[[Sequence[str]], RecordBuffer]
