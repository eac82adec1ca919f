"""Avro: decodes values from a writer's schema to a reader's schema, as Arrow arrays.

Defines the Arrow type of an Avro schema. ``fastavro`` reads the bytes and resolves the schemas by Avro's rules.

===================================  ==============================================================================
Avro                                 Arrow
===================================  ==============================================================================
int, long, float, double, boolean    int32, int64, float, double, bool
string, enum, uuid                   string
bytes, fixed                         binary
decimal                              decimal128, or decimal256 above 38 digits
date                                 date32
timestamp, local-timestamp           timestamp in microseconds, with UTC or without a zone
time-millis, time-micros             int32, int64: Spark has no such type
array, map                           list, map with string keys
record                               struct
union of null and one other          the other one
another union                        struct with one field for each: ``member0``, ``member1``, ...; one is not null
===================================  ==============================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.errors import MissingExtraError, RegisteredSchemaError
from kafka_msgs.registry.arrow_shapes import ColumnShape, FieldCounter
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver, resolve_references

try:
    from fastavro import parse_schema, schemaless_reader
except ImportError as error:
    raise MissingExtraError(feature="reading Avro", extra="registry", package="fastavro") from error

__all__ = ["AvroReader", "check_arrays"]

_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_MOST_DIGITS: Final = 38
_TIMES: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_BASES: Final = {"date": "int"} | dict.fromkeys(list(_TIMES)[1:], "long")
_PYTHON: Final = {
    bool: ("boolean",),
    int: ("long", "int"),
    float: ("double", "float"),
    str: ("string",),
    bytes: ("bytes",),
    Decimal: ("bytes",),
    list: ("array",),
    dict: ("map",),
}
"""Maps Python types to the union branches that their values may belong to. Values of named types include their name."""


class AvroReader:
    """Reads values with one reader's schema. See the table in the module docstring for the Arrow types.

    Raises ``RegisteredSchemaError`` for a schema that is not Avro, is recursive, or has too many fields, and the errors
    of ``source``.
    """

    def __init__(self, schema: RegisteredSchema, source: SchemaResolver) -> None:
        self._source = source
        self._schema, named = self._parsed(schema)
        self._id = schema.id
        self._shape = _Shapes(schema.id, named).of(self._schema)

    @property
    def type(self) -> pa.DataType:
        """The type of the arrays."""
        return self._shape.type

    def decoder(self, writer: RegisteredSchema) -> Callable[[bytes], object]:
        """Return the function that decodes the bytes after the header, written with the schema ``writer``.

        It may raise any ``Exception`` for invalid bytes.
        """
        written, named = self._parsed(writer)
        check_arrays(writer.id, written, named)
        read_as, change = None if writer.id == self._id else self._schema, self._shape.change

        def decoded(payload: bytes) -> object:
            stream = BytesIO(payload)
            try:
                value = schemaless_reader(stream, written, read_as, return_named_type=True)
            except (EOFError, IndexError):
                raise ValueError(f"its {len(payload)} bytes end within the value") from None
            if left := len(payload) - stream.tell():
                raise ValueError(f"{left} bytes follow the value")
            return value if change is None or value is None else change(value)

        return decoded

    def array(self, values: Sequence[object]) -> pa.Array:
        """Return values as an array. Raises ``pa.ArrowException`` for a value that does not fit its type."""
        return self._shape.array(values)

    def _parsed(self, schema: RegisteredSchema) -> tuple[Any, dict[str, Any]]:
        named: dict[str, Any] = {}
        try:
            for _, other in resolve_references(schema, self._source):
                parse_schema(_bare(json.loads(other.text)), named_schemas=named)
            return parse_schema(_bare(json.loads(schema.text)), named_schemas=named), named
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = f"it is not a schema of Avro: {error!r}"
            raise RegisteredSchemaError(schema_id=schema.id, reason=reason) from error


def _bare(schema: Any) -> Any:
    """Return a schema without logical types other than decimals. Times are converted later, per column."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {
        name: value if name in ("default", "symbols", "aliases") else _bare(value) for name, value in schema.items()
    }
    if "logicalType" in schema and schema["logicalType"] != "decimal":
        bare[_NOTE] = bare.pop("logicalType")
    return bare


_NOTE: Final = "kafka_msgs.logical"


class _Shapes:
    """Builds the shape of each part of a schema."""

    def __init__(self, schema_id: int, named: dict[str, Any]) -> None:
        self._named = named
        self._fields = FieldCounter(schema_id)

    def of(self, schema: Any) -> ColumnShape:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return ColumnShape(_PLAIN[schema]) if schema in _PLAIN else self.of(self._named[schema])
        kind = schema["type"]
        if kind in ("record", "error"):
            with self._fields.inside(schema["name"], schema["name"]):
                fields = {each["name"]: self._field(each["type"]) for each in schema["fields"]}
                return ColumnShape.of_fields(fields).after(_without_name)
        if kind in ("enum", "fixed") and "logicalType" not in schema:
            return ColumnShape(_PLAIN[kind], _without_name)
        if kind == "array":
            return self.of(schema["items"]).listed()
        if kind == "map":
            return self.of(schema["values"]).mapped()
        if schema.get("logicalType") == "decimal":
            return ColumnShape(_decimal(schema), _without_name)
        note = schema.get(_NOTE)
        return ColumnShape(_TIMES[note]) if _BASES.get(note, "") == kind else self.of(kind)

    def _field(self, schema: Any) -> ColumnShape:
        self._fields.count()
        return self.of(schema)

    def _union(self, branches: list[Any]) -> ColumnShape:
        others = [each for each in branches if each != "null"]
        if len(others) <= 1:
            return self.of(others[0]) if others else ColumnShape(pa.null())
        shapes = {f"member{number}": self._field(each) for number, each in enumerate(others)}
        members = dict(zip(map(_branch, others), shapes, strict=True))

        def member(value: Any) -> dict[str, Any]:
            possible = (value[0],) if isinstance(value, tuple) else _PYTHON[type(value)]
            return {next(members[each] for each in possible if each in members): value}

        return ColumnShape.of_fields(shapes).after(member)


def _without_name(value: Any) -> Any:
    """Return the value of a record, enum or fixed. In a union, it is paired with its type name."""
    return value[1] if isinstance(value, tuple) else value


def _branch(schema: Any) -> str:
    """Return the name of a union branch: the name of its type, or of its kind."""
    if isinstance(schema, str):
        return schema
    return str(schema["name"] if "name" in schema else schema["type"])


def _decimal(schema: Any) -> pa.DataType:
    precision, scale = schema["precision"], schema.get("scale", 0)
    return pa.decimal128(precision, scale) if precision <= _MOST_DIGITS else pa.decimal256(precision, scale)


def check_arrays(schema_id: int, schema: Any, named: Mapping[str, Any]) -> None:
    """Raise ``RegisteredSchemaError`` for an array of zero-byte items, whose count a few bytes could inflate."""
    known = {"null": True}

    def empty(part: Any) -> bool:
        if isinstance(part, list):
            return False
        if isinstance(part, str):
            if part not in known:
                known[part] = False
                known[part] = part in named and empty(named[part])
            return known[part]
        if part["type"] in ("record", "error"):
            return all(empty(each["type"]) for each in part["fields"])
        return part["size"] == 0 if part["type"] == "fixed" else empty(part["type"])

    waiting = [schema, *named.values()]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            if part["type"] == "array" and empty(part["items"]):
                raise RegisteredSchemaError(schema_id=schema_id, reason="it has an array of items without bytes")
            waiting += (part[name] for name in ("items", "values", "type") if name in part)
            waiting += (each["type"] for each in part.get("fields", ()))
