"""Avro: decodes values from a writer's schema to a reader's schema, as Arrow arrays.

Defines the Arrow type of an Avro schema. ``fastavro`` reads the bytes and resolves the schemas by Avro's rules.

===================================  ==============================================================================
Avro                                 Arrow
===================================  ==============================================================================
int, long, float, double, boolean    int32, int64, float, double, bool
string, enum, uuid                   string
bytes, fixed                         binary
decimal                              decimal128, or decimal256 above 38 digits; bytes if its precision is invalid
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

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
from attrs import frozen

from kafka_msgs.errors import MissingExtraError, RegisteredSchemaError
from kafka_msgs.registry.arrow_shapes import ColumnShape, FieldCounter
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver, resolve_references

try:
    from fastavro import parse_schema, schemaless_reader
except ImportError as error:
    raise MissingExtraError(feature="reading Avro", extra="registry", package="fastavro") from error

from kafka_msgs.registry.avro_logical import NOTE, Purpose, annotate_types, hooked_types
from kafka_msgs.registry.avro_payloads import check_payload, convert_defaults, is_recursive, load_schema

__all__ = ["AvroReader", "ParsedAvro", "check_arrays", "parse_avro", "read_value"]

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
    "date": ColumnShape(pa.date32()),
    "timestamp-millis": ColumnShape(pa.timestamp("us", "UTC"), lambda value: value * 1000),
    "timestamp-micros": ColumnShape(pa.timestamp("us", "UTC")),
    "local-timestamp-millis": ColumnShape(pa.timestamp("us"), lambda value: value * 1000),
    "local-timestamp-micros": ColumnShape(pa.timestamp("us")),
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
        self._parsed = parse_avro(schema, source, "columns")
        self._id = schema.id
        try:
            self._shape = _Shapes(schema.id, self._parsed.named).of(self._parsed.schema)
        except RegisteredSchemaError:
            raise
        except Exception as error:
            raise _refused(schema.id, error) from error

    @property
    def type(self) -> pa.DataType:
        """The type of the arrays."""
        return self._shape.type

    def decoder(self, writer: RegisteredSchema) -> Callable[[bytes], object]:
        """Return the function that decodes the bytes after the header, written with the schema ``writer``.

        It may raise any ``Exception`` for invalid bytes.
        """
        read_as, change = None if writer.id == self._id else self._parsed, self._shape.change
        written = parse_avro(writer, self._source, "columns", read_as)
        check_arrays(writer.id, written.schema, written.named)

        def decoded(payload: bytes) -> object:
            value = read_value(payload, written, read_as, with_names=True)
            return value if change is None or value is None else change(value)

        return decoded

    def array(self, values: Sequence[object]) -> pa.Array:
        """Return values as an array. Raises ``pa.ArrowException`` for a value that does not fit its type."""
        return self._shape.array(values)


@frozen
class ParsedAvro:
    """A schema as ``fastavro`` represents it, its named types, and whether a type contains itself."""

    schema: Any
    named: dict[str, Any]
    is_recursive: bool


def parse_avro(
    schema: RegisteredSchema, source: SchemaResolver, purpose: Purpose, reader: ParsedAvro | None = None
) -> ParsedAvro:
    """Return a parsed schema with its references, and with the values of its defaults.

    ``reader`` is the schema with which values of this one are read. Raises ``RegisteredSchemaError``, and the errors of
    ``source``.
    """
    hooked = frozenset[str]() if reader is None else hooked_types(purpose, (reader.schema, reader.named))
    named: dict[str, Any] = {}
    references = resolve_references(schema, source)
    try:
        for _, other in references:
            parse_schema(annotate_types(load_schema(other.text), purpose, hooked), named_schemas=named)
        own = annotate_types(load_schema(schema.text), purpose, hooked)
        parsed = parse_schema(own, named_schemas=named)
        recursive = is_recursive(parsed, named)
        convert_defaults(parsed, named, purpose)
    except MemoryError:
        raise
    # The library raises errors of many types, some of which derive from Exception only.
    except Exception as error:
        raise _refused(schema.id, error) from error
    return ParsedAvro(parsed, named, recursive)


def _refused(schema_id: int, error: Exception) -> RegisteredSchemaError:
    return RegisteredSchemaError(schema_id=schema_id, reason=f"it is not a schema of Avro: {error!r}")


def read_value(data: bytes, writer: ParsedAvro, reader: ParsedAvro | None, *, with_names: bool) -> Any:
    """Return the value in bytes, resolved to ``reader``. It may raise any ``Exception`` for invalid bytes.

    ``with_names`` pairs a value of a named type in a union with the name of the type.
    """
    check_payload(data, writer.schema, writer.named, recursive=writer.is_recursive)
    stream, read_as = BytesIO(data), None if reader is None else reader.schema
    try:
        value = schemaless_reader(stream, writer.schema, read_as, return_named_type=with_names)
    except (EOFError, IndexError):
        raise ValueError(f"its {len(data)} bytes end within the value") from None
    if left := len(data) - stream.tell():
        raise ValueError(f"{left} bytes follow the value")
    return value


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
        if schema.get(NOTE) == "decimal" and kind in ("bytes", "fixed"):
            return ColumnShape(_decimal(schema), _without_name)
        if kind in ("enum", "fixed"):
            return ColumnShape(_PLAIN[kind], _without_name)
        if kind == "array":
            return self.of(schema["items"]).listed()
        if kind == "map":
            return self.of(schema["values"]).mapped()
        note = schema.get(NOTE)
        return _TIMES[note] if _BASES.get(note, "") == kind else self.of(kind)

    def _field(self, schema: Any) -> ColumnShape:
        self._fields.count()
        return self.of(schema)

    def _union(self, branches: list[Any]) -> ColumnShape:
        others = [each for each in branches if _branch(each) != "null"]
        if len(others) <= 1:
            return self.of(others[0]) if others else ColumnShape(pa.null())
        shapes = {f"member{number}": self._field(each) for number, each in enumerate(others)}
        members = dict(zip(map(_branch, others), shapes, strict=True))

        def member(value: Any) -> dict[str, Any]:
            if isinstance(value, tuple):
                return {members[value[0]]: value[1] if value[0] in _PLAIN else value}
            return {next(members[each] for each in _PYTHON[type(value)] if each in members): value}

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
