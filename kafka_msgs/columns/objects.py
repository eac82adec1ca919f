"""Conversion between message objects and Arrow arrays, for every type that ``arrow_type`` returns.

This module converts single values in both directions, for ``python`` and for encoding. It does not check values. The
codec does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.columns.types import KAFKA_TYPE, TIMESTAMP
from kafka_msgs.primitives import uuid_from_bytes
from kafka_msgs.records import NO_TIMESTAMP
from kafka_msgs.schema import FieldInfo, Struct, fields

__all__ = ["bounded_slices", "timestamps", "to_objects", "to_struct_array"]

_ROWS: Final = 8192
_BYTES: Final = 256 << 20


def bounded_slices(array: pa.Array) -> Iterator[pa.Array]:
    """Yield an array in slices that are small enough for Python objects."""
    if len(array) <= _ROWS and (array.nbytes <= _BYTES or len(array) == 1):
        yield array
    else:
        half = len(array) // 2
        yield from bounded_slices(array.slice(0, half))
        yield from bounded_slices(array.slice(half))


def timestamps(numbers: pa.Int64Array) -> pa.TimestampArray:
    """Convert milliseconds since the epoch to timestamps. -1, Kafka's value for no timestamp, becomes null."""
    return pc.if_else(pc.equal(numbers, NO_TIMESTAMP), None, numbers).cast(TIMESTAMP)


def to_struct_array(rows: Sequence[Struct | None], type_: pa.StructType) -> pa.StructArray:
    """Return ``rows`` as an array of a struct type. Only the fields of the type are read."""
    children = [
        _column([None if row is None else getattr(row, field.name) for row in rows], field.type, _is_uuid(field))
        for field in type_
    ]
    return pa.Array.from_buffers(type_, len(rows), [_validity(rows)], children=children)


def _column(values: Sequence[Any], type_: pa.DataType, uuid: bool) -> pa.Array:
    if pa.types.is_struct(type_):
        return to_struct_array(values, type_)
    if pa.types.is_list(type_):
        offsets = pa.array([0, *accumulate(len(value or ()) for value in values)], pa.int32()).buffers()[1]
        elements = list(chain.from_iterable(value or () for value in values))
        child = _column(elements, type_.value_type, uuid)
        return pa.Array.from_buffers(type_, len(values), [_validity(values), offsets], children=[child])
    if pa.types.is_map(type_):
        return pa.array([value or None for value in values], type_)
    if uuid:
        return pa.array([None if value is None else str(value) for value in values], type_)
    return pa.array(values, type_)


def _validity(values: Iterable[Any]) -> pa.Buffer:
    return pa.array([value is not None for value in values], pa.bool_()).buffers()[1]


def _is_uuid(field: pa.Field) -> bool:
    return bool((field.metadata or {}).get(KAFKA_TYPE, b"").endswith(b"uuid"))


def to_objects(array: pa.StructArray, cls: type[Struct]) -> list[Any]:
    """Return the rows of a struct array as objects of ``cls``. Fields without a column have their defaults."""
    infos = {info.attribute: info for info in fields(cls)}
    names = [field.name for field in array.type]
    columns = [_values(array.field(number), infos.get(name)) for number, name in enumerate(names)]
    valid = array.is_valid().to_pylist()
    rows: Iterable[Any] = zip(*columns, strict=True) if columns else repeat((), len(array))
    return [
        cls(**dict(zip(names, row, strict=True))) if there else None for there, row in zip(valid, rows, strict=True)
    ]


def _values(column: pa.Array, info: FieldInfo | None) -> list[Any]:
    if info is None:
        return [tuple(sorted(tags)) if tags else () for tags in column.to_pylist()]
    if not info.is_array:
        return _scalars(column, info)
    elements = iter(_scalars(column.flatten(), info))
    return [
        None if count is None else tuple(next(elements) for _ in range(count))
        for count in column.value_lengths().to_pylist()
    ]


def _scalars(column: pa.Array, info: FieldInfo) -> list[Any]:
    if info.struct is not None:
        return to_objects(column, info.struct)
    values = _pylist(column)
    return [_uuid(text) for text in values] if info.element_type == "uuid" else values


def _pylist(column: pa.Array) -> list[Any]:
    """Return the values. Text that is not UTF-8, which Arrow accepts, gets surrogates, and the codec refuses it."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if data is None else data.decode("utf-8", "surrogateescape") for data in raw]


def _uuid(text: Any) -> Any:
    """Parse a text as a UUID. Any other value is returned unchanged, and the codec refuses it."""
    try:
        raw = bytes.fromhex(text.replace("-", ""))
    except (ValueError, TypeError, AttributeError):
        return text
    return uuid_from_bytes(raw) if len(raw) == 16 else text
