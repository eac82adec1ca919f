"""What the formats share: how a part of a schema becomes a column, and the bounds on what a schema may ask for.

Owns the change from values of Python to those that Arrow takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pyarrow as pa
from attrs import frozen

from kafka_msgs.errors import RegisteredSchemaError

__all__ = ["Change", "ColumnShape", "FieldCounter"]

Change: TypeAlias = Callable[[Any], Any]
"""Makes of a value that is not None what Arrow takes for it."""

_STRING: Final = pa.string()
MOST_FIELDS: Final = 10_000


@frozen
class ColumnShape:
    """A part of a schema: ``raw``, the type that its values are made with, and their ``change`` before that."""

    raw: pa.DataType
    change: Change | None = None

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        return _in_microseconds(self.raw)

    def array(self, values: Sequence[object]) -> pa.Array:
        """Return changed values as an array of ``type``; raises ``pa.ArrowException`` for one that does not fit."""
        made, type_ = pa.array(values, self.raw), self.type
        return made if made.type == type_ else made.cast(type_)

    def listed(self) -> ColumnShape:
        """Return the shape of a list of such parts."""
        change, raw = self.change, pa.list_(pa.field("element", self.raw))
        return (
            ColumnShape(raw)
            if change is None
            else ColumnShape(raw, lambda value: [_changed(change, each) for each in value])
        )

    def mapped(self, key: pa.DataType = _STRING) -> ColumnShape:
        """Return the shape of a map to such parts."""
        change, raw = self.change, pa.map_(key, self.raw)
        if change is None:
            return ColumnShape(raw)
        return ColumnShape(raw, lambda value: {name: _changed(change, each) for name, each in value.items()})

    def after(self, earlier: Change) -> ColumnShape:
        """Return the shape of values that ``earlier`` changes first."""
        change = self.change
        return ColumnShape(self.raw, earlier if change is None else lambda value: change(earlier(value)))

    @classmethod
    def of_fields(cls, parts: Mapping[str, ColumnShape]) -> ColumnShape:
        """Return the shape of a struct whose fields have these shapes. Its values are dicts."""
        raw = pa.struct([pa.field(name, part.raw) for name, part in parts.items()])
        changes = [(name, part.change) for name, part in parts.items() if part.change is not None]

        def changed(value: Mapping[str, Any]) -> dict[str, Any]:
            return {**value, **{name: _changed(change, value.get(name)) for name, change in changes}}

        return cls(raw, changed if changes else None)


def _changed(change: Change, value: Any) -> Any:
    return None if value is None else change(value)


class FieldCounter:
    """Counts the fields of a schema, and refuses one with too many, or one that contains itself.

    Types may be used by name again and again, so a short schema can have more fields than any memory.
    """

    def __init__(self, schema_id: int) -> None:
        self._id = schema_id
        self._count = 0
        self._inside: set[object] = set()

    def count(self) -> None:
        """Count one field; raises ``RegisteredSchemaError`` for one too many."""
        self._count += 1
        if self._count > MOST_FIELDS:
            raise RegisteredSchemaError(schema_id=self._id, reason=f"it has more than {MOST_FIELDS:,} fields")

    @contextmanager
    def inside(self, key: object, name: str) -> Iterator[None]:
        """Look at the fields of the type ``key``; raises ``RegisteredSchemaError`` if that is in progress already."""
        if key in self._inside:
            raise RegisteredSchemaError(schema_id=self._id, reason=f"{name} contains itself: a column cannot")
        self._inside.add(key)
        try:
            yield
        finally:
            self._inside.discard(key)


def _in_microseconds(given: pa.DataType) -> pa.DataType:
    """Return a type with microseconds for all other units of time: those are what Spark has."""
    if pa.types.is_struct(given):
        return pa.struct([pa.field(each.name, _in_microseconds(each.type)) for each in given])
    if pa.types.is_list(given):
        return pa.list_(pa.field("element", _in_microseconds(given.value_type)))
    if pa.types.is_map(given):
        return pa.map_(given.key_type, _in_microseconds(given.item_type))
    return pa.timestamp("us", given.tz) if pa.types.is_timestamp(given) else given
