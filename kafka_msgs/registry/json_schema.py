"""JSON Schema: columns of JSON values.

Defines the Arrow type of a JSON Schema. Values keep only the content that their type has fields for. Other constraints
of a schema, such as patterns and ranges, are not checked. This is also the default of Confluent's deserializer.

====================================  =============================================================
JSON Schema                           Arrow
====================================  =============================================================
boolean, integer, number, string      bool, int64, double, string
object with ``properties``            struct
object with ``additionalProperties``  map with string keys, if that is a schema
array with ``items``                  list, if all items have one schema
null and one other, in any notation   the other one
anything else                         string: the text of the value in JSON
====================================  =============================================================

A schema that describes a value in two places, such as ``properties`` next to ``allOf`` or ``$ref``, is also text: a
struct with the fields of one place would lose the fields of the other place.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from json import JSONDecodeError
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.errors import MissingExtraError, RegisteredSchemaError, shown
from kafka_msgs.registry.arrow_shapes import ColumnShape, Decode, FieldCounter
from kafka_msgs.registry.json_values import parse_json
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver, resolve_references

try:
    from referencing import Registry, Resource
    from referencing._core import Resolver
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7, specification_with
except ImportError as error:
    raise MissingExtraError(feature="reading JSON Schema", extra="registry", package="referencing") from error

__all__ = ["columns"]

_PLAIN: Final = {"boolean": pa.bool_(), "integer": pa.int64(), "string": pa.string()}


def _of(type_: type, value: Any) -> Any:
    """Check and return a value of a type, because Arrow would also accept a list of pairs as an object."""
    if not isinstance(value, type_):
        raise TypeError(f"{shown(value)} is not of the type {type_.__name__}")
    return value


def _number(value: Any) -> float:
    """Return a number as a float, and refuse booleans, which Arrow would accept."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{shown(value)} is not a number")
    return float(value)


_NUMBER: Final = ColumnShape(pa.float64(), _number)
_TEXT: Final = ColumnShape(pa.string(), partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
_COMBINED: Final = ("oneOf", "anyOf", "allOf")
_DESCRIBING: Final = frozenset(["$ref", *_COMBINED, "properties", "additionalProperties", "items"])
"""The keywords that describe the content of a value."""


def columns(
    schema: RegisteredSchema, schemas: SchemaResolver, message: str | None
) -> tuple[ColumnShape, Callable[[RegisteredSchema], Decode]]:
    """Return the shape of columns with a reader's schema, and the function that returns the decoder of a writer's one.

    See the table in the module docstring for the Arrow types. Writers' schemas are ignored. Raises
    ``RegisteredSchemaError`` for a schema that is not JSON Schema, is recursive, or has too many fields, and the errors
    of ``schemas``.
    """
    registry: Registry[Any] = Registry()
    try:
        root, addresses = _document(schema.text)
        for name, other in resolve_references(schema, schemas):
            content, own = _document(other.text)
            registry = registry.with_resources((each, content) for each in (name, *own))
        registry = registry.with_resources((each, root) for each in addresses)
        shape = _Shapes(schema.id).of(root.contents, registry.resolver_with_root(root))
    except (TypeError, KeyError, AttributeError, RecursionError, Unresolvable, JSONDecodeError) as error:
        reason = f"it is not a JSON Schema: {error!r}"
        raise RegisteredSchemaError(schema_id=schema.id, reason=reason) from error
    return shape, lambda _: shape.decoder(parse_json)


def _document(text: str) -> tuple[Resource[Any], list[str]]:
    """Return a schema without its address, and the address, because registry references use separate names."""
    content = json.loads(text)
    if not isinstance(content, dict):
        return DRAFT7.create_resource(content), []
    addresses = [content.pop(name) for name in ("$id", "id") if name in content]
    return specification_with(content.get("$schema", ""), default=DRAFT7).create_resource(content), addresses


class _Shapes:
    """Builds the shape of each part of a schema."""

    def __init__(self, schema_id: int) -> None:
        self._fields = FieldCounter(schema_id)

    def of(self, schema: Any, resolver: Resolver[Any]) -> ColumnShape:
        if not isinstance(schema, dict):
            return _TEXT
        if "$id" in schema:
            resolver = resolver.in_subresource(DRAFT7.create_resource(schema))
        if ("$ref" in schema or not schema.keys().isdisjoint(_COMBINED)) and not _describes_once(schema):
            return _TEXT
        if "$ref" in schema:
            found = resolver.lookup(schema["$ref"])
            with self._fields.inside(id(found.contents), schema["$ref"]):
                return self.of(found.contents, found.resolver)
        for name in schema.keys() & _COMBINED:
            others = [each for each in schema[name] if not _is_null(each)]
            return self.of(others[0], resolver) if len(others) == 1 else _TEXT
        kinds = _kinds(schema)
        return self._of_kind(kinds[0], schema, resolver) if len(kinds) == 1 else _TEXT

    def _of_kind(self, kind: str, schema: dict[str, Any], resolver: Resolver[Any]) -> ColumnShape:
        if kind == "number":
            return _NUMBER
        if kind in _PLAIN:
            return ColumnShape(_PLAIN[kind])
        if kind == "array" and isinstance(schema.get("items"), dict):
            return self.of(schema["items"], resolver).listed().after(partial(_of, list))
        if kind == "object" and schema.get("properties"):
            given = schema["properties"].items()
            fields = {name: self._fields.counted(self.of(each, resolver)) for name, each in given}
            return ColumnShape.of_fields(fields).after(partial(_of, dict))
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return self.of(schema["additionalProperties"], resolver).mapped().after(partial(_of, dict))
        return _TEXT


def _describes_once(schema: dict[str, Any]) -> bool:
    """Return whether only one keyword describes the content, apart from those that allow or refuse all properties."""
    return sum(name in _DESCRIBING and not isinstance(value, bool) for name, value in schema.items()) <= 1


def _is_null(schema: Any) -> bool:
    """Return whether a schema allows only null, whatever its title and description."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return False
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return schema.get("type") in ("null", ["null"]) or values == [None]


def _kinds(schema: dict[str, Any]) -> list[str]:
    """Return the types other than null that a schema allows, declared or derived from its values."""
    if "type" in schema:
        named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return [each for each in named if each != "null"]
    if "properties" in schema:
        return ["object"]
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return ["string"] if values and all(each is None or isinstance(each, str) for each in values) else []
