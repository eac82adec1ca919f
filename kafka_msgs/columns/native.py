"""Columns in C: the buffers that the core fills become Arrow's arrays.

The core runs the programs of ``lowering``, and reads the records of batches. Both give buffers. This module makes the
arrays of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from attrs import frozen

from kafka_msgs._core import extension
from kafka_msgs.codec import CodecOptions
from kafka_msgs.columns.common import RECORD_LEVEL_TYPES, Decode, Part
from kafka_msgs.columns.lowering import Lowering, inner_types
from kafka_msgs.columns.types import RECORD_SCHEMA
from kafka_msgs.errors import ColumnSizeError
from kafka_msgs.records import Batch, RecordBatch

__all__ = ["RecordColumns", "decoder"]

_NOTHING: Final = pa.py_buffer(b"")
_Filled = tuple[int, int, Any, Any, Any, int]
"""A column: its length, nulls, validity, offsets and data, and the number of bytes in the data."""


def decoder(cls: Any, version: int | None, type_: pa.StructType, options: CodecOptions) -> Decode:
    """Return the function that decodes columns of a message to ``type_``, a type of ``arrow_type``.

    It runs without the GIL. It raises ``ColumnSizeError`` for a single row that needs more than one array.
    """
    program, layout = _program(cls, version, type_, options)

    def decode(array: pa.Array) -> list[Part]:
        return list(_parts(program, array, layout))

    return decode


@lru_cache(maxsize=128)
def _program(
    cls: Any, version: int | None, type_: pa.StructType, options: CodecOptions
) -> tuple[extension.ColumnProgram, _Layout]:
    return extension.ColumnProgram(*Lowering(type_).program(cls, version, options), _allocate), _layout(type_)


def _parts(program: extension.ColumnProgram, array: pa.Array, layout: _Layout) -> Iterator[Part]:
    """Yield the rows of an array in parts, so that no part is too large."""
    wide = pa.types.is_large_binary(array.type)
    valid, offsets, data = array.buffers()
    done = 0
    while True:
        left = len(array) - done
        rows, bad, columns = program.decode(valid, offsets, data, array.offset + done, left, wide)
        if left and not rows:
            raise ColumnSizeError(rows=1, size=len(array[done].as_buffer()))
        yield Part(_array(layout, iter(columns)), bad)
        done += rows
        if done == len(array):
            return


def _allocate(size: int) -> pa.ResizableBuffer:
    """Return memory of Arrow's pool. The pool reuses it without asking the system."""
    return pa.allocate_buffer(size, resizable=True)


@frozen
class _Layout:
    """The content of an array of a type: the arrays below it, or data."""

    type: pa.DataType
    leaf: bool
    below: tuple[_Layout, ...]


def _layout(type_: pa.DataType) -> _Layout:
    below = tuple(_layout(inner) for _, inner, _ in inner_types(type_, False))
    return _Layout(type_, not (below or pa.types.is_struct(type_)), below)


def _array(layout: _Layout, columns: Iterator[_Filled]) -> pa.Array:
    """Return the array of the next column, with those below it."""
    length, nulls, valid, offsets, data, size = next(columns)
    buffers = [valid and _cut(valid, (length + 7) // 8)]
    if offsets is not None:
        buffers.append(_cut(offsets, 4 * (length + 1)))
    if layout.leaf:
        buffers.append(_cut(data, size) if size else _NOTHING)
    children = [_array(each, columns) for each in layout.below]
    return pa.Array.from_buffers(layout.type, length, buffers, nulls, children=children)


def _cut(buffer: pa.ResizableBuffer, size: int) -> pa.Buffer:
    """Give back the memory of a buffer beyond its content."""
    if buffer.size != size:
        buffer.resize(size, shrink_to_fit=True)
    return buffer


_RECORD_LAYOUTS: Final = {name: _layout(type_) for name, type_ in RECORD_LEVEL_TYPES.items()}
_RAW_NAMES: Final = RECORD_SCHEMA.field("raw_header_names")


class RecordColumns:
    """Collects the records of magic 2 batches; see ``RecordBuffer``.

    Python reads message sets, header names that are not UTF-8, numbers of more than 64 bits, and damaged batches.
    """

    rows: int
    size: int

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        made = [name for name in names if name != _RAW_NAMES.name]
        self._layouts = [_RECORD_LAYOUTS[name] for name in made]
        self._core = extension.RecordColumns(tuple(made), _allocate)
        self.rows = self.size = 0

    def append(self, batch: Batch) -> bool:
        """Add the records of a sound batch of magic 2, without the GIL. Return False for any other batch."""
        if not isinstance(batch, RecordBatch):
            return False
        body, at, end = batch.content()
        times = batch.base_timestamp, batch.append_timestamp
        try:
            done = self._core.append(body, at, end, batch.count, batch.base_offset, *times)
        except OverflowError:
            return False
        if done:
            self.rows += batch.count
            self.size += end - at
        return done

    def finish(self) -> list[pa.Array]:
        """Return the columns in the requested order, and start again. All header names here are text."""
        filled = iter(self._core.finish())
        next(filled)  # the struct of all
        columns = [_array(layout, filled) for layout in self._layouts]
        if _RAW_NAMES.name in self._names:
            columns.insert(self._names.index(_RAW_NAMES.name), pa.nulls(self.rows, _RAW_NAMES.type))
        self.rows = self.size = 0
        return columns
