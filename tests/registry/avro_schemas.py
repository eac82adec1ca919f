"""Random Avro schemas of every type, default and shape, and readers' schemas that a writer's schema may resolve to."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

__all__ = ["random_schema", "reader_of"]

_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_LOGICAL: Final[tuple[dict[str, Any], ...]] = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "local-timestamp-nanos"},
    *({"type": "bytes", "logicalType": "decimal", "precision": each, "scale": each // 3} for each in range(1, 65, 7)),
    {"type": "bytes", "logicalType": "decimal", "precision": 100, "scale": 50},
    {"type": "bytes", "logicalType": "decimal", "precision": 0},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 9},
    {"type": "string", "logicalType": "uuid"},
    {"type": "long", "logicalType": "unknown-type"},
    {"type": "int", "logicalType": "timestamp-millis"},
)
_MAX_DEPTH: Final = 3


class _Schemas:
    """Builds one schema. Named types are defined at their first use, and referenced afterwards."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.named: dict[str, Any] = {}
        self._count = 0

    def any(self, depth: int = 0) -> Any:
        if self.named and self._random.random() < 0.15:
            name = self._random.choice([*self.named])
            if self.named[name] is not None:
                return name
        makers: list[Callable[[int], Any]] = [self._primitive] * 3 + [self._logical] * 2 + [self._enum, self._fixed]
        if depth < _MAX_DEPTH:
            makers += [self.record, self._array, self._map, self._union, self._optional]
        return self._random.choice(makers)(depth + 1)

    def _primitive(self, depth: int) -> Any:
        return self._random.choice(_PRIMITIVES)

    def _logical(self, depth: int) -> Any:
        return dict(self._random.choice(_LOGICAL))

    def _name(self, kind: str) -> str:
        """Return a new name, which sometimes differs from another one only in its namespace."""
        self._count += 1
        return self._random.choice([f"a.b.{kind}{self._count}", f"org.x.{kind}{self._count}", f"n{self._count}.{kind}"])

    def _define(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self._random.random() < 0.3 and "." in schema["name"]:
            schema["namespace"], _, schema["name"] = schema["name"].rpartition(".")
        self.named[full_name(schema)] = schema
        return schema

    def _enum(self, depth: int) -> Any:
        symbols = [f"S{number}" for number in range(self._random.randint(1, 4))]
        return self._define({"type": "enum", "name": self._name("E"), "symbols": symbols})

    def _fixed(self, depth: int) -> Any:
        schema: dict[str, Any] = {"type": "fixed", "name": self._name("F"), "size": self._random.choice([1, 2, 12, 16])}
        if self._random.random() < 0.5:
            decimal = {"logicalType": "decimal", "precision": 2, "scale": 1}
            schema |= self._random.choice([decimal, {"logicalType": {12: "duration"}.get(schema["size"], "uuid")}])
        return self._define(schema)

    def record(self, depth: int) -> Any:
        schema: dict[str, Any] = {"type": "record", "name": self._name("R"), "fields": []}
        self._define(schema)
        self.named[full_name(schema)] = None  # until it is complete, only an optional field may refer to it
        for number in range(self._random.randint(0, 4)):
            schema["fields"].append({"name": f"f{number}", "type": self.any(depth)})
        if self._random.random() < 0.2:
            schema["fields"].append({"name": "next", "type": ["null", full_name(schema)], "default": None})
        self.named[full_name(schema)] = schema
        return schema

    def _array(self, depth: int) -> Any:
        return {"type": "array", "items": self.any(depth)}

    def _map(self, depth: int) -> Any:
        return {"type": "map", "values": self.any(depth)}

    def _optional(self, depth: int) -> Any:
        other = self.any(depth)
        return other if isinstance(other, list) or _kind(other) == "null" else ["null", other]

    def _union(self, depth: int) -> Any:
        branches: dict[str, Any] = {}
        for _ in range(self._random.randint(1, 4)):
            known = dict(self.named)
            each = self.any(depth)
            if isinstance(each, list) or _kind(each) in branches:
                self.named = known  # it is dropped, with the types that it defines
            else:
                branches[_kind(each)] = each
        return list(branches.values()) or ["null", "string"]


def full_name(schema: dict[str, Any]) -> str:
    """Return the full name of a named type."""
    return f"{schema['namespace']}.{schema['name']}" if "namespace" in schema else str(schema["name"])


def _kind(schema: Any) -> str:
    """Return the key of a schema in a union, which may have only one of each."""
    if isinstance(schema, str):
        return schema
    return full_name(schema) if "name" in schema else str(schema["type"])


def random_schema(random: Random) -> str:
    """Return a schema as text: mostly a record, because real topics have records."""
    schemas = _Schemas(random)
    return json.dumps(schemas.record(0) if random.random() < 0.8 else schemas.any())


def reader_of(writer: str, random: Random) -> str:
    """Return a schema that values of ``writer`` may resolve to, after some changes; it need not be compatible."""
    return json.dumps(_Reader(random, json.loads(writer)).changed(json.loads(writer), 0))


class _Reader:
    """Changes the parts of a schema, each with some probability."""

    def __init__(self, random: Random, schema: Any) -> None:
        self._random = random
        self._named = {full_name(each): each for each in _named_types(schema)}
        self._text = json.dumps(schema)
        self._fields = 0

    def _happens(self, share: float = 0.15) -> bool:
        return self._random.random() < share

    def changed(self, schema: Any, depth: int) -> Any:
        if isinstance(schema, str):
            if schema in _PRIMITIVES and self._happens(0.1):
                return self.changed({"type": schema}, depth)
            return self._random.choice(_PROMOTIONS[schema]) if schema in _PROMOTIONS and self._happens() else schema
        if isinstance(schema, list):
            return self._union(schema, depth)
        kind = schema["type"]
        if kind in _PRIMITIVES and self._happens(0.3):
            return self._random.choice([kind, *(dict(each) for each in _LOGICAL if each["type"] == kind)])
        if kind == "record":
            return self._record(schema, depth)
        if kind == "enum" and self._happens(0.3):
            changed = schema | {"symbols": [*schema["symbols"][1:], "NEW"]}
            return self._renamed(changed | ({"default": "NEW"} if self._happens(0.7) else {}))
        for part in ("items", "values"):
            if part in schema:
                return schema | {part: self.changed(schema[part], depth + 1)}
        return schema

    def _union(self, branches: list[Any], depth: int) -> Any:
        changed = [self.changed(each, depth + 1) for each in branches]
        if self._happens():
            self._random.shuffle(changed)
        if self._happens() and not any(each == "double" for each in changed):
            changed.append("double")
        found: dict[str, Any] = {}
        for each in changed:
            found.setdefault(_kind(each), each)
        return list(found.values())

    def _record(self, schema: dict[str, Any], depth: int) -> Any:
        fields = [self._field(each, depth) for each in schema["fields"]]
        kept = [each for each in fields if not self._happens(0.1) or _defines_type(each)]
        for _ in range(self._random.choice([0, 0, 1, 2])):
            kept.append(self._new_field())
        if self._happens():
            self._random.shuffle(kept)
            kept = (
                kept
                if not _named_types(schema["fields"])
                else [*fields, *(each for each in kept if each not in fields)]
            )
        return self._renamed(schema | {"fields": kept})

    def _renamed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a named type, sometimes with another name if nothing refers to it, and the former one as an alias."""
        if self._text.count(f'"{full_name(schema)}"') > 1 or not self._happens():
            return schema
        return schema | {"name": f"{schema['name']}Renamed", "aliases": [full_name(schema)]}

    def _field(self, field: dict[str, Any], depth: int) -> dict[str, Any]:
        changed = field | {"type": self.changed(field["type"], depth + 1)}
        return changed | {"name": f"{field['name']}x", "aliases": [field["name"]]} if self._happens() else changed

    def _new_field(self) -> dict[str, Any]:
        schemas = _Schemas(self._random)
        self._fields += 1
        type_ = _renamed(schemas.any(1), f"New{self._fields}_{self._random.randrange(10**6)}")
        known = {full_name(each): each for each in _named_types(type_)}
        return {"name": f"new{self._fields}", "type": type_, "default": default_of(type_, known, self._random, 0)}


def _defines_type(field: Any) -> bool:
    return bool(_named_types(field["type"]))


def _named_types(schema: Any) -> list[dict[str, Any]]:
    """Return the definitions of named types in a schema."""
    if isinstance(schema, list):
        return [each for part in schema for each in _named_types(part)]
    if not isinstance(schema, dict):
        return []
    inner = [schema[name] for name in ("items", "values", "fields", "type") if name in schema]
    return (
        [schema] if "name" in schema and "type" in schema and schema["type"] in ("record", "enum", "fixed") else []
    ) + [each for part in inner for each in _named_types(part)]


def _renamed(schema: Any, suffix: str) -> Any:
    """Return a schema whose named types have other names, so that they do not collide with existing ones."""
    text = json.dumps(schema)
    for each in _named_types(schema):
        text = text.replace(f'"{each["name"]}"', f'"{each["name"]}{suffix}"')
        text = text.replace(f'"{full_name(each)}"', f'"{full_name(each)}{suffix}"')
    return json.loads(text)


def default_of(schema: Any, named: dict[str, Any], random: Random, depth: int) -> Any:
    """Return a random default in its JSON form."""
    if isinstance(schema, list):
        is_null = random.random() < 0.2 and "null" in schema
        return None if is_null else default_of(schema[0], named, random, depth)
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    simple: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "boolean": lambda: random.random() < 0.5,
        "int": lambda: random.choice([0, -1, 2**31 - 1, 86_399]),
        "long": lambda: random.choice([0, -1, 2**40, 1_767_225_600_000]),
        "float": lambda: random.choice([0, 1.5, -2]),
        "double": lambda: random.choice([0, 1.5, -2e300]),
        "string": lambda: random.choice(["", "é", "text"]),
        "bytes": lambda: random.choice(["", "\u00ff\u0000", "\u0001b"]),
    }
    if kind in simple:
        return simple[kind]()
    if kind == "enum":
        return random.choice(schema["symbols"])
    if kind == "fixed":
        return "".join(chr(random.randrange(256)) for _ in range(schema["size"]))
    if kind == "array":
        return [default_of(schema["items"], named, random, depth + 1) for _ in range(random.randint(0, 2))]
    if kind == "map":
        return {f"k{n}": default_of(schema["values"], named, random, depth + 1) for n in range(random.randint(0, 2))}
    return {
        each["name"]: default_of(each["type"], named, random, depth + 1)
        for each in schema["fields"]
        if "default" not in each or random.random() < 0.5
    }
