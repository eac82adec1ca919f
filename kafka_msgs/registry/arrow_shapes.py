"""Shared code of the formats: the conversion of schema parts to columns, and the limits on schemas.

Converts Python values to values that Arrow accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pyarrow as pa
from attrs import frozen

from kafka_msgs.errors import RegisteredSchemaError

__all__ = ["Change", "ColumnShape", "Decode", "FieldCounter"]

Change: TypeAlias = Callable[[Any], Any]
"""Converts a value other than None to a value that Arrow accepts."""
Decode: TypeAlias = Callable[[bytes], Any]
"""Decodes the bytes after the header of a payload. It may raise any ``Exception`` for invalid bytes."""

_STRING: Final = pa.string()
MOST_FIELDS: Final = 10_000


@frozen
class ColumnShape:
    """A part of a schema: the Arrow type of the array, and the ``change`` that converts values for it.

    Values have the units of the type, because Arrow builds invalid arrays if it casts lists of null.
    """

    type: pa.DataType
    change: Change | None = None

    def array(self, values: Sequence[object]) -> pa.Array:
        """Return converted values as an array of ``type``. Raises ``pa.ArrowException`` if a value does not fit."""
        return pa.array(values, self.type)

    def listed(self) -> ColumnShape:
        """Return the shape of a list with this item shape."""
        change, type_ = self.change, pa.list_(pa.field("element", self.type))
        return (
            ColumnShape(type_)
            if change is None
            else ColumnShape(type_, lambda value: [_changed(change, each) for each in value])
        )

    def mapped(self, key: pa.DataType = _STRING) -> ColumnShape:
        """Return the shape of a map with this value shape."""
        change, type_ = self.change, pa.map_(key, self.type)
        if change is None:
            return ColumnShape(type_)
        return ColumnShape(type_, lambda value: {name: _changed(change, each) for name, each in value.items()})

    def after(self, earlier: Change) -> ColumnShape:
        """Return the shape of values that ``earlier`` converts first."""
        change = self.change
        return ColumnShape(self.type, earlier if change is None else lambda value: change(earlier(value)))

    def decoder(self, decode: Decode) -> Decode:
        """Return a decoder of values for ``array``."""
        change = self.change
        return decode if change is None else lambda data: _changed(change, decode(data))

    @classmethod
    def of_fields(cls, parts: Mapping[str, ColumnShape]) -> ColumnShape:
        """Return the shape of a struct whose fields have these shapes. Its values are dicts."""
        type_ = pa.struct([pa.field(name, part.type) for name, part in parts.items()])
        changes = [(name, part.change) for name, part in parts.items() if part.change is not None]

        def changed(value: Mapping[str, Any]) -> dict[str, Any]:
            return {**value, **{name: _changed(change, value.get(name)) for name, change in changes}}

        return cls(type_, changed if changes else None)


def _changed(change: Change, value: Any) -> Any:
    return None if value is None else change(value)


class FieldCounter:
    """Counts the fields of a schema, and refuses schemas with too many fields or with recursion.

    Schemas can reference named types repeatedly, so a short schema can expand to more fields than fit in memory.
    """

    def __init__(self, schema_id: int) -> None:
        self._id = schema_id
        self._count = 0
        self._inside: set[object] = set()

    def counted(self, shape: ColumnShape) -> ColumnShape:
        """Count a field with this shape. Raises ``RegisteredSchemaError`` if the limit is exceeded."""
        self._count += 1
        if self._count > MOST_FIELDS:
            raise RegisteredSchemaError(schema_id=self._id, reason=f"it has more than {MOST_FIELDS:,} fields")
        return shape

    @contextmanager
    def inside(self, key: object, name: str) -> Iterator[None]:
        """Enter the fields of the type ``key``. Raises ``RegisteredSchemaError`` if it is already entered."""
        if key in self._inside:
            raise RegisteredSchemaError(schema_id=self._id, reason=f"{name} contains itself: a column cannot")
        self._inside.add(key)
        try:
            yield
        finally:
            self._inside.discard(key)
