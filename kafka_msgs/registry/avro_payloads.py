"""Checks of Avro schemas and payloads that the library under ``avro`` lacks, and the values of defaults.

``fastavro`` is native code: deep nesting ends the process instead of raising an error. So the depth of schemas is
checked before it parses them, and payloads of recursive schemas are walked before it reads them. The walk also finds
integers of more bytes than Avro allows. ``fastavro`` returns defaults in their JSON form; ``convert_defaults`` replaces
them by the values that Avro defines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafka_msgs.errors import RegisteredSchemaError, shown
from kafka_msgs.registry.avro_logical import BRANCHES, Purpose, convert

__all__ = ["check_arrays", "check_payload", "convert_defaults", "is_recursive", "load_schema"]

_MAX_NESTING: Final = 300
"""The maximum nesting of JSON in a schema."""
_MAX_DEPTH: Final = 200
"""The maximum nesting of types in a schema, and of values in a payload."""
_LONG_BYTES: Final = 10
_SUSPICIOUS: Final = re.compile(rb"[\x80-\xff]{10}")
"""Bytes that may be an integer of more bytes than Avro allows."""
_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_RECORDS: Final = ("record", "error")
_FLOATS: Final = ("float", "double")
_BITS: Final = {"int": 32, "long": 64}


def load_schema(text: str) -> Any:
    """Return the JSON of a schema. Raises ``ValueError`` if it is nested too deeply, and for other texts."""
    found = json.loads(text)
    waiting = [(found, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > _MAX_NESTING:
            raise ValueError(f"it is nested more than {_MAX_NESTING} levels deep")
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        waiting += ((each, depth + 1) for each in inner)
    return found


def is_recursive(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return whether a parsed schema contains itself. Raises ``ValueError`` for types that are nested too deeply."""
    depths: dict[int, int] = {}
    inside: set[int] = set()
    recursive = False
    waiting: list[tuple[Any, bool]] = [(_resolved(schema, named), False)]
    while waiting:
        part, left = waiting.pop()
        inner = [_resolved(each, named) for each in _inner(part)]
        if left:
            inside.discard(id(part))
            depths[id(part)] = 1 + max((depths.get(id(each), 0) for each in inner), default=0)
        elif id(part) not in depths and id(part) not in inside:
            inside.add(id(part))
            recursive |= any(id(each) in inside for each in inner)
            waiting += [(part, True), *((each, False) for each in inner)]
    if max(depths.values(), default=0) > _MAX_DEPTH:
        raise ValueError(f"its types are nested more than {_MAX_DEPTH} levels deep")
    return recursive


def _resolved(schema: Any, named: Mapping[str, Any]) -> Any:
    return named.get(schema, schema) if isinstance(schema, str) else schema


def _inner(schema: Any) -> Iterator[Any]:
    """Yield the parts of a type."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, dict):
        yield from (schema[name] for name in ("items", "values") if name in schema)
        yield from (each["type"] for each in schema.get("fields", ()))
        if isinstance(schema.get("type"), dict | list):
            yield schema["type"]


def _parts(schema: Any, named: Mapping[str, Any]) -> Iterator[Any]:
    """Yield each part of a schema and of its named types once, except types without parts."""
    seen: set[int] = set()
    waiting = [schema, *named.values()]
    while waiting:
        part = _resolved(waiting.pop(), named)
        if id(part) not in seen and not isinstance(part, str):
            seen.add(id(part))
            yield part
            waiting += _inner(part)


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
        if part["type"] in _RECORDS:
            return all(empty(each["type"]) for each in part["fields"])
        return part["size"] == 0 if part["type"] == "fixed" else empty(part["type"])

    if any("items" in part and empty(part["items"]) for part in _parts(schema, named) if isinstance(part, dict)):
        raise RegisteredSchemaError(schema_id=schema_id, reason="it has an array of items without bytes")


def check_payload(data: bytes, schema: Any, named: Mapping[str, Any], *, recursive: bool) -> None:
    """Raise ``ValueError`` for values that are nested too deeply, and for integers of more than ten bytes.

    Only payloads that may have such values are walked.
    """
    if recursive or _SUSPICIOUS.search(data) is not None:
        _Walk(data, named).value(schema, 0)


class _Walk:
    """Walks over the bytes of a value, without building it."""

    def __init__(self, data: bytes, named: Mapping[str, Any]) -> None:
        self._data = data
        self._named = named
        self._at = 0

    def value(self, schema: Any, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ValueError(f"its values are nested more than {_MAX_DEPTH} levels deep")
        schema = _resolved(schema, self._named)
        if isinstance(schema, list):
            self._union(schema, depth + 1)
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in _RECORDS:
            for each in schema["fields"]:
                self.value(each["type"], depth + 1)
        elif kind in ("array", "map"):
            self._blocks(schema, kind == "map", depth + 1)
        elif isinstance(kind, str):
            self._plain(kind, schema)
        else:
            self.value(kind, depth + 1)

    def _union(self, branches: list[Any], depth: int) -> None:
        index = self._long()
        if not 0 <= index < len(branches):
            raise ValueError(f"its union has no branch {index}")
        self.value(branches[index], depth)

    def _plain(self, kind: str, schema: Any) -> None:
        if kind in ("int", "long", "enum"):
            self._long()
        elif kind in ("bytes", "string"):
            self._skip(self._long())
        else:
            self._skip(schema["size"] if kind == "fixed" else _SIZES[kind])

    def _blocks(self, schema: Any, has_keys: bool, depth: int) -> None:
        while count := self._long():
            if count < 0:
                self._long()
            for _ in range(abs(count)):
                if has_keys:
                    self._skip(self._long())
                self.value(schema["values" if has_keys else "items"], depth)

    def _skip(self, size: int) -> None:
        if not 0 <= size <= len(self._data) - self._at:
            raise ValueError(f"its {len(self._data)} bytes end within the value")
        self._at += size

    def _long(self) -> int:
        found = 0
        for number, byte in enumerate(self._data[self._at : self._at + _LONG_BYTES]):
            found |= (byte & 0x7F) << (7 * number)
            if byte < 0x80:
                self._at += number + 1
                return found >> 1 ^ -(found & 1)
        if len(self._data) - self._at >= _LONG_BYTES:
            raise ValueError(f"its integer at byte {self._at} has more than {_LONG_BYTES} bytes")
        raise ValueError(f"its {len(self._data)} bytes end within the value")


def convert_defaults(schema: Any, named: Mapping[str, Any], purpose: Purpose) -> None:
    """Replace the defaults of all fields of a parsed schema by their values, in the form of values that were read.

    For columns the value of a named type in a union is paired with the name of the type. Raises ``ValueError``,
    ``TypeError``, ``KeyError`` or ``AttributeError`` for a default that does not have the type of its field.
    """
    records = (each for each in _parts(schema, named) if isinstance(each, dict))
    fields = [each for record in records for each in record.get("fields", ()) if "default" in each]
    defaults = _Defaults(named, purpose, {id(each): each["default"] for each in fields})
    for each, value in [(each, defaults.value(each["type"], each["default"], 0)) for each in fields]:
        each["default"] = value


class _Defaults:
    """Converts defaults in their JSON form. ``given`` contains the defaults of fields by their identity."""

    def __init__(self, named: Mapping[str, Any], purpose: Purpose, given: Mapping[int, Any]) -> None:
        self._named = named
        self._purpose = purpose
        self._given = given

    def value(self, schema: Any, given: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError(f"a default is nested more than {_MAX_DEPTH} levels deep")
        schema = _resolved(schema, self._named)
        if isinstance(schema, list):
            return self._union(schema, given, depth + 1)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if not (isinstance(kind, dict) or _may_be(schema, given) or (kind in _FLOATS and isinstance(given, str))):
            raise ValueError(f"a default of the type {kind} is {shown(given)}")
        if kind in _RECORDS:
            return {each["name"]: self._field(each, given, depth + 1) for each in schema["fields"]}
        if kind == "array":
            return [self.value(schema["items"], each, depth + 1) for each in given]
        if kind == "map":
            return {name: self.value(schema["values"], each, depth + 1) for name, each in given.items()}
        if kind in ("bytes", "fixed"):
            return convert(given.encode("latin-1"), schema, self._purpose)
        return convert(given, schema, self._purpose) if isinstance(kind, str) else self.value(kind, given, depth + 1)

    def _union(self, branches: list[Any], given: Any, depth: int) -> Any:
        """Return the default of a union, which belongs to the first branch whose JSON form it may be."""
        resolved = [_resolved(each, self._named) for each in branches]
        branch = next((each for each in resolved if _may_be(each, given)), resolved[0])
        found = self.value(branch, given, depth)
        if self._purpose != "columns" or not isinstance(branch, dict):
            return found
        return (branch["name"], found) if "name" in branch else (branch["type"], found) if BRANCHES in branch else found

    def _field(self, field: Any, given: Any, depth: int) -> Any:
        name = field["name"]
        return self.value(field["type"], given[name] if name in given else self._given[id(field)], depth)


_JSON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "array": (list,),
    **dict.fromkeys(_FLOATS, (int, float)),
    **dict.fromkeys(("string", "bytes", "fixed"), (str,)),
    **dict.fromkeys(("map", *_RECORDS), (dict,)),
}
"""The types of defaults in JSON, by the types of Avro."""


def _may_be(schema: Any, given: Any) -> bool:
    """Return whether a JSON value may be the default of a type, whose parts are not checked."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in _BITS:
        return type(given) is int and given.bit_length() < _BITS[kind]
    if kind == "enum":
        return given in schema["symbols"]
    return type(given) in _JSON_TYPES.get(kind, ()) and (kind != "fixed" or len(given) == schema["size"])
