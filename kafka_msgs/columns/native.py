"""Columns in C, on top of the buffers of Arrow arrays.

The core runs the programs of ``lowering`` and reads record batches. Its inputs and outputs are buffers. This module
splits arrays into buffers, and builds arrays from buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs._core import extension
from kafka_msgs.binary_layouts import (
    BATCH_HEADER,
    CODEC_MASK,
    CONTROL,
    LENGTH_AND_OFFSET_STRUCT,
    LOG_APPEND_TIME,
    RECORD_COLUMNS,
    TRANSACTIONAL,
)
from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions
from kafka_msgs.columns.interface import (
    COLLECTED_TYPES,
    MAX_ARRAY,
    MAX_SEQUENCE,
    ColumnDecoder,
    ColumnEncoder,
    RowLocation,
    RowSlice,
)
from kafka_msgs.columns.lowering import Lowering, inner_types
from kafka_msgs.columns.objects import to_struct_array
from kafka_msgs.columns.types import arrow_type
from kafka_msgs.errors import ColumnSizeError, KafkaMsgsError
from kafka_msgs.log.summary import CODEC_NAMES
from kafka_msgs.primitive_types import Kind, Op
from kafka_msgs.records.batch import BatchRun
from kafka_msgs.records.compression import decompress
from kafka_msgs.schema import fields
from kafka_msgs.versioned import version_prefix

__all__ = ["RecordColumns", "decoder", "encoder"]

_NOTHING: Final = pa.py_buffer(b"")
_Filled = tuple[int, int, Any, Any, Any, int]
"""A column from the core: its length, nulls, validity, offsets and data, and the number of bytes in the data."""

_Read = tuple[int, bool, int, int, Any, Any, Any]
"""A column for the core: the size in bytes of a number (negative: signed) or of an offset (negative: of a map), whether
a single value is repeated, offset, length, validity, offsets and data.
"""


def decoder(cls: Any, version: int | None, type_: pa.StructType, options: CodecOptions) -> ColumnDecoder:
    """Return the function that decodes columns of a message to ``type_``, a type of ``arrow_type``.

    It runs without the GIL. It raises ``ColumnSizeError`` for a single row that needs more than one array.
    """
    program, layout = _program(cls, version, type_, options)

    def decode(array: pa.Array) -> list[RowSlice]:
        return list(_parts(program, array, layout))

    return decode


@lru_cache(maxsize=128)
def _program(
    cls: Any, version: int | None, type_: pa.StructType, options: CodecOptions
) -> tuple[extension.ColumnProgram, _ArrayShape]:
    return extension.ColumnProgram(*Lowering(type_).program(cls, version, options), _allocate), _layout(type_)


def _parts(program: extension.ColumnProgram, array: pa.Array, layout: _ArrayShape) -> Iterator[RowSlice]:
    """Yield the rows of an array in parts, so that no part is too large."""
    source = (_leaf(array, False),)
    done = 0
    while True:
        left = len(array) - done
        columns, faults = program.decode(source, done, left)
        made = _array(layout, iter(columns))
        if left and not len(made):
            raise ColumnSizeError(rows=1, size=len(array[done].as_buffer()))
        yield _part(array, done, made)._replace(locations=_locations(faults))
        done += len(made)
        if done == len(array):
            return


def _locations(faults: list[_Filled]) -> Iterator[RowLocation]:
    """Yield the fault locations from the core, each as its trail followed by the numeric fields."""
    for row in _array(_BYTES, iter(faults)) if faults else ():
        *trail, position, end, elements, room, kind, first, second = memoryview(row.as_buffer()).cast("q")
        yield tuple(trail), position, end, elements, room, kind, first, second


def encoder(cls: Any, version: int | None, type_: pa.StructType, prefix: bool) -> ColumnEncoder | None:
    """Return the function that encodes columns of a message, which have the type ``type_``.

    It runs without the GIL. The result is None for types that only the Python implementation supports, and for
    coordinator keys with versions by row: the number before such a key is not its version.
    """
    whole = arrow_type(cls)
    if not _is_plain(type_, whole) or (version is None and cls.INFO.kind == "coordinator-key"):
        return None
    program, _ = _program(cls, version, whole, DEFAULT_OPTIONS)
    number = None if version is None else _leaf(pa.array([version_prefix(cls, version)], pa.int16()), True)

    def encode(array: pa.StructArray, versions: pa.Array | None) -> Iterator[RowSlice]:
        columns = tuple(_struct(array, cls, whole, False))
        numbers = number or _leaf(versions, False)
        done = 0
        while done < len(array):
            made = _array(_BYTES, iter(program.encode(columns, done, len(array) - done, numbers, prefix)))
            if not len(made):
                raise ColumnSizeError(rows=1, size=int(array.slice(done, 1).nbytes))
            yield _part(array, done, made)
            done += len(made)

    return encode


def _is_plain(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether the core supports columns of a type that has the shape of the expected type."""
    of = pa.types
    if of.is_dictionary(found):
        return _is_plain(found.value_type, expected)
    if of.is_struct(expected):
        return all(_is_plain(field.type, expected.field(field.name).type) for field in found)
    if of.is_list(expected):
        return _is_plain(found.value_type, expected.value_type)
    if of.is_map(expected):
        return _is_plain(found.key_type, expected.key_type) and _is_plain(found.item_type, expected.item_type)
    others = {of.is_integer: of.is_integer, of.is_string: of.is_large_string, of.is_binary: of.is_large_binary}
    also = (other(found) for kind, other in others.items() if kind(expected))
    return bool(found == expected or of.is_null(found) or any(also))


def _struct(array: pa.StructArray, cls: Any, type_: pa.StructType, repeated: bool) -> Iterator[_Read]:
    """Yield a struct column and its descendants in the order of ``type_``. A missing column repeats a single value."""
    inner = {info.attribute: info.struct for info in fields(cls)}
    yield 0, repeated, array.offset, len(array), _valid(array), None, None
    for number, field in enumerate(type_):
        at = array.type.get_field_index(field.name)
        column = array.field(at) if at >= 0 else _defaults(cls, type_).field(number)
        yield from _column(column, field.type, inner.get(field.name), at < 0)


def _column(array: pa.Array, type_: pa.DataType, cls: Any, repeated: bool) -> Iterator[_Read]:
    if pa.types.is_struct(type_):
        yield from _struct(array, cls, type_, repeated)
    elif pa.types.is_map(type_):
        keys, items = array.keys, array.items
        yield -4, repeated, array.offset, len(array), _valid(array), array.buffers()[1], None
        yield 0, False, 0, len(keys), None, None, None
        yield from _column(keys, type_.key_type, None, False)
        yield from _column(items, type_.item_type, None, False)
    elif pa.types.is_list(type_):
        width = 8 if pa.types.is_large_list(array.type) else 4
        yield width, repeated, array.offset, len(array), _valid(array), array.buffers()[1], None
        yield from _column(array.values, type_.value_type, cls, False)
    else:
        yield _leaf(_unfolded(array, type_), repeated)


def _unfolded(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return plain values: dictionary arrays are decoded, and nulls without a type get the type."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if not pa.types.is_dictionary(array.type):
        return array
    values = array.dictionary
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        values = values.cast(pa.large_binary() if pa.types.is_binary(type_) else pa.large_string())
        size = pc.sum(pc.take(pc.binary_length(values), array.indices)).as_py() or 0
        if size > MAX_ARRAY:
            raise ColumnSizeError(rows=len(array), size=size)
    return values.take(array.indices)


def _leaf(array: pa.Array, repeated: bool) -> _Read:
    _, *offsets, data = array.buffers()
    valid = _valid(array)
    if offsets:
        width = 8 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else 4
        return width, repeated, array.offset, len(array), valid, offsets[0], data
    has_sign = pa.types.is_signed_integer(array.type) or pa.types.is_floating(array.type)
    width = -array.type.byte_width if has_sign else array.type.bit_width // 8
    return width, repeated, array.offset, len(array), valid, None, data


def _valid(array: pa.Array) -> pa.Buffer | None:
    """Return the validity buffer, or None for arrays without nulls, which saves the core a check per value."""
    return array.buffers()[0] if array.null_count else None


@lru_cache(maxsize=512)
def _defaults(cls: Any, type_: pa.StructType) -> pa.StructArray:
    """Return one row: a struct with all defaults."""
    return to_struct_array([cls()], type_)


def _part(array: pa.Array, first: int, made: pa.Array) -> RowSlice:
    """Return the encoded or decoded rows of an array. Refused rows are null in the result but not in the input."""
    given = array.slice(first, len(made))
    if made.null_count == given.null_count:
        return RowSlice(made, [])
    return RowSlice(made, pc.indices_nonzero(pc.and_(given.is_valid(), made.is_null())).to_pylist())


def _allocate(size: int) -> pa.ResizableBuffer:
    """Return memory of Arrow's pool. The pool reuses it without asking the system."""
    return pa.allocate_buffer(size, resizable=True)


@frozen
class _ArrayShape:
    """The content of an array of a type: the arrays below it, or data."""

    type: pa.DataType
    leaf: bool
    below: tuple[_ArrayShape, ...]


def _layout(type_: pa.DataType) -> _ArrayShape:
    below = tuple(_layout(inner) for _, inner, _ in inner_types(type_, False))
    return _ArrayShape(type_, not (below or pa.types.is_struct(type_)), below)


def _array(layout: _ArrayShape, columns: Iterator[_Filled]) -> pa.Array:
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


_TYPES_BY_CODE: Final = {op.code: pa.type_for_alias(op.arrow) for op in Op if op.kind is Kind.INTEGER}
_RECORD_TYPES: Final = {name: _TYPES_BY_CODE[code] for name, code in BATCH_HEADER.items()} | {
    **{name: COLLECTED_TYPES[name] for name in ("offset", "timestamp", "key", "value", "headers")},
    "position": pa.int64(),
}
"""The types of the columns that the core makes, and of other fields of the batch header."""
_RECORD_LAYOUTS: Final = {name: _layout(_RECORD_TYPES[name]) for name in RECORD_COLUMNS}
_CODECS: Final = pa.array(CODEC_NAMES, pa.string())


def _has(flag: int) -> Callable[[pa.Array], pa.Array]:
    return lambda attributes: pc.not_equal(pc.bit_wise_and(attributes, pa.scalar(flag, pa.int16())), 0)


def _codec(attributes: pa.Array) -> pa.Array:
    return _CODECS.take(pc.bit_wise_and(attributes, pa.scalar(CODEC_MASK, pa.int16())))


def _sequence(first: pa.Array, offset: pa.Array, base_offset: pa.Array) -> pa.Array:
    """Return the sequence numbers, which go on from record to record; after the highest comes 0."""
    number = pc.add(first.cast(pa.int64()), pc.subtract(offset, base_offset))
    wrapped = pc.if_else(pc.greater(number, MAX_SEQUENCE), pc.subtract(number, MAX_SEQUENCE + 1), number)
    return pc.if_else(pc.less(first, 0), pa.scalar(-1, pa.int64()), wrapped).cast(pa.int32())


_MADE: Final[Mapping[str, tuple[tuple[str, ...], Callable[..., pa.Array]]]] = {
    "raw_header_names": (("headers",), lambda headers: pa.nulls(len(headers), COLLECTED_TYPES["raw_header_names"])),
    "timestamp_type": (("attributes",), lambda attributes: _has(LOG_APPEND_TIME)(attributes).cast(pa.int32())),
    "batch_offset": (("base_offset",), lambda base_offset: base_offset),
    "batch_position": (("position",), lambda position: position),
    "batch_size": (("size",), lambda size: pc.add(size, pa.scalar(LENGTH_AND_OFFSET_STRUCT, pa.int32()))),
    "partition_leader_epoch": (("leader_epoch",), lambda leader_epoch: leader_epoch),
    "sequence": (("base_sequence", "offset", "base_offset"), _sequence),
    "is_transactional": (("attributes",), _has(TRANSACTIONAL)),
    "is_control": (("attributes",), _has(CONTROL)),
    "codec": (("attributes",), _codec),
}
"""The columns that Python derives from columns of the core."""


class RecordColumns:
    """Collects the records of magic 2 batches; see ``RecordBuffer``.

    Python reads message sets, header names that are not UTF-8, numbers of more than 64 bits, and damaged batches.
    """

    def __init__(self, names: Sequence[str], unread: bool = False) -> None:
        self._names = names
        inner = {each for name in names for each in _MADE.get(name, ((name,), None))[0]}
        self._inner: list[str] = [name for name in RECORD_COLUMNS if name in inner]
        self._core = extension.RecordColumns(tuple(map(RECORD_COLUMNS.index, self._inner)), _allocate, unread)

    @property
    def rows(self) -> int:
        """How many records there are since ``finish``."""
        return self._core.rows

    @property
    def size(self) -> int:
        """The approximate size of their content in bytes."""
        return self._core.size

    def extend(self, run: BatchRun, start: int, rows: int, size: int) -> int:
        """Do what ``RecordBuffer`` describes. The GIL is held only to get decompressed records, and memory."""
        options = run.options
        unpack = _unpacker(options.max_decompressed_bytes)
        return self._core.append(run.data, start, run.end, run.shift, options.max_elements, rows, size, unpack)

    def finish(self) -> list[pa.Array]:
        """Return the columns in the requested order, and start again. All header names here are text."""
        filled = iter(self._core.finish())
        next(filled)  # the struct of all
        found: dict[str, pa.Array] = {name: _array(_RECORD_LAYOUTS[name], filled) for name in self._inner}
        return [self._column(name, found) for name in self._names]

    def _column(self, name: str, found: Mapping[str, pa.Array]) -> pa.Array:
        if name not in _MADE:
            return found[name]
        sources, make = _MADE[name]
        return make(*(found[each] for each in sources))


@lru_cache(maxsize=8)
def _unpacker(limit: int) -> Callable[[int, memoryview], bytes | None]:
    """Return what decompresses records to at most ``limit`` bytes, and gives None for what it cannot decompress."""

    def unpack(codec: int, stored: memoryview) -> bytes | None:
        try:
            return decompress(codec, stored, limit)
        except KafkaMsgsError:
            return None

    return unpack
