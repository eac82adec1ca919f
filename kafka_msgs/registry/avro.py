"""Avro: single values and columns, decoded from a writer's schema to a reader's schema.

Defines the Arrow type of an Avro schema. ``fastavro`` reads the bytes and resolves the schemas by Avro's rules.

===================================  ==============================================================================
Avro                                 Arrow
===================================  ==============================================================================
int, long, float, double, boolean    int32, int64, float, double, bool
string, enum, uuid                   string
bytes, fixed                         binary
decimal                              decimal128, or decimal256 above 38 digits; bytes if its precision is invalid
date                                 date32
timestamp, local-timestamp           timestamp in microseconds, with UTC or without a zone; nanoseconds are int64
time-millis, time-micros             int32, int64: Spark has no such type
duration, uuid of a fixed            binary
array, map                           list, map with string keys
record                               struct
union of null and one other          the other one
another union                        struct with one field for each: ``member0``, ``member1``, ...; one is not null
===================================  ==============================================================================

A payload with the schema ``bytes`` contains only these bytes, without their length, as Confluent writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
from attrs import frozen

from kafka_msgs.errors import MissingExtraError, RegisteredSchemaError, shown
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.registry.arrow_shapes import ColumnShape, Decode, FieldCounter
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver, resolve_references

try:
    from fastavro import parse_schema, schemaless_reader, schemaless_writer, validate
    from fastavro.validation import ValidationError
except ImportError as error:
    raise MissingExtraError(feature="Avro", extra="registry", package="fastavro") from error

from kafka_msgs.registry.avro_logical import NOTE, Purpose, annotate_types, hooked_types
from kafka_msgs.registry.avro_names import distinct_names, rename_types
from kafka_msgs.registry.avro_payloads import check_arrays, check_payload, convert_defaults, is_recursive, load_schema

__all__ = ["columns", "decoder", "encoder"]

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
_ROOT: Final = "kafka_msgs_root"
_VALUE: Final = "value"
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


def columns(
    schema: RegisteredSchema, schemas: SchemaResolver, message: str | None
) -> tuple[ColumnShape, Callable[[RegisteredSchema], Decode]]:
    """Return the shape of columns with a reader's schema, and the function that returns the decoder of a writer's one.

    See the table in the module docstring for the Arrow types. Raises ``RegisteredSchemaError`` for a schema that is not
    Avro, is recursive, or has too many fields, and the errors of ``schemas``.
    """
    parsed = _parse(schema, schemas, "columns")
    with _schema_errors(schema.id):
        shape = _Shapes(schema.id, parsed.named).of(parsed.schema)

    def decoder_of(writer: RegisteredSchema) -> Decode:
        return shape.decoder(_decoder(writer, None if writer.id == schema.id else parsed, schemas, "columns"))

    return shape, decoder_of


def encoder(schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
    """Return the function that encodes values with a schema."""
    found = _parse(schema, schemas, "write")
    check_arrays(schema.id, found.schema, found.named)

    def encode(value: Any) -> bytes:
        content = {_VALUE: value}
        try:
            validate(content, found.root, strict=True)
        except ValidationError as error:
            reasons = (f"{each.field} is {shown(each.datum)}, not {_kind(each.schema)}" for each in error.errors)
            prefix = f"{_ROOT}.{_VALUE}"
            raise ValueError("; ".join(reasons).replace(f"{prefix}.", "").replace(prefix, "it")) from error
        if found.is_raw:
            return bytes(value)
        stream = BytesIO()
        schemaless_writer(stream, found.root, content, strict_allow_default=True)
        return stream.getvalue()

    return encode


def decoder(
    writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
) -> Decode:
    """Return the function that decodes values of ``writer``, resolved to ``reader``."""
    read_as = None if reader is None or reader.id == writer.id else _parse(reader, schemas, "values")
    return _decoder(writer, read_as, schemas, "values")


@frozen
class _Parsed:
    """A schema as ``fastavro`` represents it, its named types, and their names there if they differ.

    ``root`` is a record whose only field has the schema: such a record has the same bytes, and ``fastavro`` would parse
    other schemas again for each value, without their references. ``is_recursive`` is whether a type contains itself,
    and ``is_raw`` whether payloads are bytes without their length.
    """

    root: Any
    named: dict[str, Any]
    names: dict[str, str]
    is_recursive: bool
    is_raw: bool

    @property
    def schema(self) -> Any:
        return self.root["fields"][0]["type"]


@contextmanager
def _schema_errors(schema_id: int) -> Iterator[None]:
    """Turn the errors of the library, some of which derive from ``Exception`` only, into ``RegisteredSchemaError``."""
    try:
        yield
    except (RegisteredSchemaError, MemoryError):
        raise
    except Exception as error:
        reason = f"it is not a schema of Avro: {error!r}"
        raise RegisteredSchemaError(schema_id=schema_id, reason=reason) from error


def _parse(
    schema: RegisteredSchema, schemas: SchemaResolver, purpose: Purpose, reader: _Parsed | None = None
) -> _Parsed:
    """Return a parsed schema with its references, and with the values of its defaults.

    ``reader`` is the schema with which values of this one are read. Raises ``RegisteredSchemaError``, and the errors of
    ``schemas``.
    """
    hooked = frozenset[str]() if reader is None else hooked_types(purpose, (reader.schema, reader.named))
    texts = [*(other.text for _, other in resolve_references(schema, schemas)), schema.text]
    with _schema_errors(schema.id):
        *others, own = map(load_schema, texts)
        root = {"type": "record", "name": _ROOT, "fields": [{"name": _VALUE, "type": own}]}
        parts, named = _parse_all([annotate_types(each, purpose, hooked) for each in (*others, root)])
        recursive = is_recursive(parts[-1], named)
        names = {} if purpose == "write" else distinct_names(named, reader)
        if names:
            parts, named = _parse_all([rename_types(part, names) for part in parts])
        convert_defaults(parts[-1], named, purpose)
        return _Parsed(parts[-1], named, names, recursive, _kind(own) == "bytes" and '"decimal"' not in schema.text)


def _parse_all(schemas: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return schemas as ``fastavro`` represents them, each of which may use types of those before, and all types."""
    named: dict[str, Any] = {}
    return [parse_schema(each, named_schemas=named) for each in schemas], named


def _decoder(writer: RegisteredSchema, reader: _Parsed | None, schemas: SchemaResolver, purpose: Purpose) -> Decode:
    """Return the function that decodes values, for columns with the names of named types in unions."""
    written, read_as = _parse(writer, schemas, purpose, reader), None if reader is None else reader.root
    root, named, recursive, is_raw = written.root, written.named, written.is_recursive, written.is_raw
    check_arrays(writer.id, root, named)

    def decode(data: bytes) -> Any:
        if is_raw:
            data = write_uvarint(len(data) << 1) + data
        check_payload(data, root, named, recursive=recursive)
        stream = BytesIO(data)
        try:
            content: Any = schemaless_reader(stream, root, read_as, return_named_type=purpose == "columns")
        except (EOFError, IndexError):
            raise ValueError(f"its {len(data)} bytes end within the value") from None
        if left := len(data) - stream.tell():
            raise ValueError(f"{left} bytes follow the value")
        return content[_VALUE]

    return decode


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
                fields = {each["name"]: self._fields.counted(self.of(each["type"])) for each in schema["fields"]}
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

    def _union(self, branches: list[Any]) -> ColumnShape:
        others = [each for each in branches if _kind(each) != "null"]
        if len(others) <= 1:
            return self.of(others[0]) if others else ColumnShape(pa.null())
        shapes = {f"member{number}": self._fields.counted(self.of(each)) for number, each in enumerate(others)}
        members = dict(zip(map(_kind, others), shapes, strict=True))

        def member(value: Any) -> dict[str, Any]:
            if isinstance(value, tuple):
                return {members[value[0]]: value[1] if value[0] in _PLAIN else value}
            return {next(members[each] for each in _PYTHON[type(value)] if each in members): value}

        return ColumnShape.of_fields(shapes).after(member)


def _without_name(value: Any) -> Any:
    """Return the value of a record, enum or fixed. In a union, it is paired with its type name."""
    return value[1] if isinstance(value, tuple) else value


def _kind(schema: Any) -> str:
    """Return the name of a type, or else its kind, which is also the name of a union branch."""
    if isinstance(schema, list):
        return "union"
    return schema if isinstance(schema, str) else str(schema.get("name", schema["type"]))


def _decimal(schema: Any) -> pa.DataType:
    precision, scale = schema["precision"], schema.get("scale", 0)
    return pa.decimal128(precision, scale) if precision <= _MOST_DIGITS else pa.decimal256(precision, scale)
