"""The C form, whole: the decoder of ``native``, and batches of records given to its ``RecordColumns``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from kafka_msgs.columns.form import Form
from kafka_msgs.columns.native import RecordColumns, decoder
from kafka_msgs.columns.types import RECORD_SCHEMA
from kafka_msgs.records import Batch, RecordBatch

__all__ = ["FORM", "NativeRecords"]

_RAW_NAMES: Final = RECORD_SCHEMA.field("raw_header_names")


class NativeRecords:
    """Collects the records of magic 2 batches; see ``RecordBuffer``.

    Message sets, header names that are not UTF-8, numbers of more than 64 bits and damage are left to Python.
    """

    rows: int
    size: int

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._columns = RecordColumns([name for name in names if name != _RAW_NAMES.name])
        self.rows = self.size = 0

    def append(self, batch: Batch) -> bool:
        """Add the records of a batch, if they are of the form that this one knows and nothing is wrong with them."""
        if not isinstance(batch, RecordBatch):
            return False
        body, at, end = batch.content()
        times = batch.base_timestamp, batch.append_timestamp
        try:
            done = self._columns.append(body, at, end, batch.count, batch.base_offset, *times)
        except OverflowError:
            return False
        if done:
            self.rows += batch.count
            self.size += end - at
        return done

    def finish(self) -> list[pa.Array]:
        """Return the columns, in the order that was asked for, and start anew; all names here are text."""
        columns = self._columns.finish()
        if _RAW_NAMES.name in self._names:
            columns.insert(self._names.index(_RAW_NAMES.name), pa.nulls(self.rows, _RAW_NAMES.type))
        self.rows = self.size = 0
        return columns


FORM: Final = Form(decoder, NativeRecords)
"""What there is where the extension is."""
