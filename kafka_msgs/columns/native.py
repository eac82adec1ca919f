"""Columns in C: the buffers that the core fills become Arrow's arrays, and it reads those of arrays.

The core runs the programs of ``lowering``, and reads the records of batches. It takes buffers and gives buffers. This
module takes arrays apart, and makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from attrs import frozen

from kafka_msgs._core import extension
from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions
from kafka_msgs.columns.common import RECORD_LEVEL_TYPES, Decode, Encode, Part
from kafka_msgs.columns.lowering import Lowering, inner_types
from kafka_msgs.columns.types import RECORD_SCHEMA, arrow_type
from kafka_msgs.columns.values import struct_array
from kafka_msgs.errors import ColumnSizeError
from kafka_msgs.prefixed import prefix_of
from kafka_msgs.records import Batch, RecordBatch
from kafka_msgs.schema import fields

__all__ = ["RecordColumns", "decoder", "encoder"]

_NOTHING: Final = pa.py_buffer(b"")
_Filled = tuple[int, int, Any, Any, Any, int]
"""A column that the core made: its length, nulls, validity, offsets and data, and the number of bytes in the data."""

_Read = tuple[int, bool, int, int, Any, Any, Any]
"""A column that the core reads: the bytes of a number (negative: with a sign) or of an offset (negative: of a map),
whether one value stands for all, offset, length, validity, offsets and data.
"""


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
    source = (_leaf(array, False),)
    done = 0
    while True:
        left = len(array) - done
        rows, bad, columns = program.decode(source, done, left)
        if left and not rows:
            raise ColumnSizeError(rows=1, size=len(array[done].as_buffer()))
        yield Part(_array(layout, iter(columns)), _numbers(bad))
        done += rows
        if done == len(array):
            return


def encoder(cls: Any, version: int | None, type_: pa.StructType, prefix: bool) -> Encode | None:
    """Return the function that encodes columns of a message, which have the type ``type_``.

    It runs without the GIL. There is none for types that only Python objects can have, and for keys of coordinators
    with versions by row: the number before such a key is not its version.
    """
    whole = arrow_type(cls)
    if not _is_plain(type_, whole) or (version is None and cls.INFO.kind == "coordinator-key"):
        return None
    program, _ = _program(cls, version, whole, DEFAULT_OPTIONS)
    number = None if version is None else _leaf(pa.array([prefix_of(cls, version)], pa.int16()), True)

    def encode(array: pa.StructArray, versions: pa.Array | None) -> Iterator[Part]:
        columns = tuple(_struct(array, cls, whole, False))
        numbers = number or _leaf(versions, False)
        done = 0
        while done < len(array):
            rows, refused, filled = program.encode(columns, numbers, prefix, done, len(array) - done)
            if not rows:
                raise ColumnSizeError(rows=1, size=int(array.slice(done, 1).nbytes))
            yield Part(_array(_BYTES, iter(filled)), _numbers(refused))
            done += rows

    return encode


def _is_plain(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether the core reads columns of a type, which has the shape of the expected one."""
    of = pa.types
    if of.is_struct(expected):
        return all(_is_plain(field.type, expected.field(field.name).type) for field in found)
    if of.is_list(expected):
        return _is_plain(found.value_type, expected.value_type)
    if of.is_map(expected):
        return _is_plain(found.key_type, expected.key_type) and _is_plain(found.item_type, expected.item_type)
    if of.is_integer(expected):
        return bool(of.is_integer(found))
    if of.is_string(expected):
        return bool(of.is_string(found) or of.is_large_string(found))
    return bool(found == expected or (of.is_binary(expected) and of.is_large_binary(found)))


def _struct(array: pa.StructArray, cls: Any, type_: pa.StructType, repeated: bool) -> Iterator[_Read]:
    """Yield a struct column and those below it, as ``type_`` has them. One value of a missing one stands for all."""
    inner = {info.attribute: info.struct for info in fields(cls)}
    yield 0, repeated, array.offset, len(array), array.buffers()[0], None, None
    for number, field in enumerate(type_):
        at = array.type.get_field_index(field.name)
        column = array.field(at) if at >= 0 else _defaults(cls, type_).field(number)
        yield from _column(column, field.type, inner.get(field.name), at < 0)


def _column(array: pa.Array, type_: pa.DataType, cls: Any, repeated: bool) -> Iterator[_Read]:
    if pa.types.is_struct(type_):
        yield from _struct(array, cls, type_, repeated)
    elif pa.types.is_map(type_):
        keys, items = array.keys, array.items
        valid, offsets, *_ = array.buffers()
        yield -4, repeated, array.offset, len(array), valid, offsets, None
        yield 0, False, 0, len(keys), None, None, None
        yield _leaf(keys, False)
        yield _leaf(items, False)
    elif pa.types.is_list(type_):
        valid, offsets, *_ = array.buffers()
        width = 8 if pa.types.is_large_list(array.type) else 4
        yield width, repeated, array.offset, len(array), valid, offsets, None
        yield from _column(array.values, type_.value_type, cls, False)
    else:
        yield _leaf(array, repeated)


def _leaf(array: pa.Array, repeated: bool) -> _Read:
    valid, *offsets, data = array.buffers()
    if offsets:
        width = 8 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else 4
        return width, repeated, array.offset, len(array), valid, offsets[0], data
    width = -array.type.byte_width if pa.types.is_signed_integer(array.type) else array.type.bit_width // 8
    return width, repeated, array.offset, len(array), valid, None, data


@lru_cache(maxsize=512)
def _defaults(cls: Any, type_: pa.StructType) -> pa.StructArray:
    """Return one row: a struct of which nothing was given."""
    return struct_array([cls()], type_)


def _numbers(raw: bytes) -> list[int]:
    """Return the numbers of rows, which the core gives as it has them."""
    return memoryview(raw).cast("q").tolist()


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


_BYTES: Final = _layout(pa.binary())
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
