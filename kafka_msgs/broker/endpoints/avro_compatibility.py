"""Compatibility of Avro schemas: whether data of one schema can be read with another.

The rules are the schema resolution of the Avro specification, as in Avro's ``SchemaCompatibility``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from attrs import Factory, define

__all__ = ["AvroSchema", "incompatibilities", "parse_avro"]

_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_PROMOTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""The writer types that each reader type also accepts."""

_MAX_DEPTH: Final = 100
_MAX_PAIRS: Final = 100_000


@define(eq=False)
class AvroSchema:
    """A parsed schema. ``parts`` are the branches of a union, the items of an array or the values of a map."""

    kind: str
    name: str = ""
    aliases: frozenset[str] = frozenset()
    parts: list[AvroSchema] = Factory(list)
    fields: list[_Field] = Factory(list)
    symbols: Collection[str] = ()
    default: str | None = None
    size: int = 0


@define(eq=False)
class _Field:
    names: tuple[str, ...]
    """The name and the aliases."""
    schema: AvroSchema
    has_default: bool


def parse_avro(schema: Any, named: dict[str, AvroSchema]) -> AvroSchema:
    """Return a parsed schema. ``named`` holds known named types, and receives the types of the schema.

    Raises ``ValueError`` for an invalid schema.
    """
    return _Parser(named).parse(schema, "", 0)


class _Parser:
    """The parser of one schema."""

    def __init__(self, named: dict[str, AvroSchema]) -> None:
        self._named = named
        self._kinds: Mapping[str, Callable[[Mapping[str, Any], str, int], AvroSchema]] = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": lambda schema, space, depth: self._container(schema, "items", space, depth),
            "map": lambda schema, space, depth: self._container(schema, "values", space, depth),
        }

    def parse(self, schema: Any, space: str, depth: int) -> AvroSchema:
        if depth > _MAX_DEPTH:
            raise ValueError("the schema is nested too deeply")
        if isinstance(schema, str):
            return self._reference(schema, space)
        if isinstance(schema, list):
            return AvroSchema("union", parts=[self.parse(each, space, depth + 1) for each in schema])
        if not isinstance(schema, dict):
            raise ValueError(f"{schema!r} is not a schema")
        kind = schema.get("type")
        if isinstance(kind, str) and kind in self._kinds:
            return self._kinds[kind](schema, space, depth)
        return self.parse(kind, space, depth + 1)

    def _reference(self, name: str, space: str) -> AvroSchema:
        if name in _PRIMITIVES:
            return AvroSchema(name)
        for full in (_full_name(name, space), name):
            if full in self._named:
                return self._named[full]
        raise ValueError(f"the type {name} is undefined")

    def _new(self, schema: Mapping[str, Any], kind: str, space: str) -> tuple[AvroSchema, str]:
        """Return a new named type and its namespace."""
        name = _text(schema, "name")
        full = _full_name(name, schema.get("namespace", space))
        space = full.rpartition(".")[0]
        if full in self._named:
            raise ValueError(f"the type {full} is defined twice")
        aliases = frozenset(_full_name(each, space) for each in schema.get("aliases", ()))
        found = self._named[full] = AvroSchema(kind, full, aliases)
        return found, space

    def _record(self, schema: Mapping[str, Any], space: str, depth: int) -> AvroSchema:
        found, space = self._new(schema, "record", space)
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(each, dict) for each in fields):
            raise ValueError(f"the record {found.name} has no fields")
        for each in fields:
            names = _text(each, "name"), *each.get("aliases", ())
            found.fields.append(_Field(names, self.parse(each.get("type"), space, depth + 1), "default" in each))
        return found

    def _enum(self, schema: Mapping[str, Any], space: str, depth: int) -> AvroSchema:
        found, _ = self._new(schema, "enum", space)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list) or not symbols:
            raise ValueError(f"the enum {found.name} has no symbols")
        found.symbols, found.default = dict.fromkeys(map(str, symbols)), schema.get("default")
        return found

    def _fixed(self, schema: Mapping[str, Any], space: str, depth: int) -> AvroSchema:
        found, _ = self._new(schema, "fixed", space)
        size = schema.get("size")
        if not isinstance(size, int):
            raise ValueError(f"the type {found.name} has no size")
        found.size = size
        return found

    def _container(self, schema: Mapping[str, Any], key: str, space: str, depth: int) -> AvroSchema:
        return AvroSchema(str(schema["type"]), parts=[self.parse(schema.get(key), space, depth + 1)])


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _text(schema: Mapping[str, Any], key: str) -> str:
    value = schema.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"a {key} is missing")
    return value


def incompatibilities(reader: AvroSchema, writer: AvroSchema) -> list[str]:
    """Return the reasons why data of ``writer`` cannot be read with ``reader``. An empty list means compatible.

    Raises ``ValueError`` for schemas that are too large to compare.
    """
    try:
        return _Comparison().reasons(reader, writer, "")
    except RecursionError:
        raise ValueError("the schema is nested too deeply") from None


class _Comparison:
    """The comparison of two schemas. Each pair of types is compared once, and counts as readable meanwhile."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[str]] = {}
        self._kinds: Mapping[str, Callable[[AvroSchema, AvroSchema, str], Iterator[str]]] = {
            "record": self._record,
            "enum": _compare_enums,
            "fixed": _compare_fixed,
            "array": self._parts,
            "map": self._parts,
        }

    def reasons(self, reader: AvroSchema, writer: AvroSchema, path: str) -> list[str]:
        pair = id(reader), id(writer)
        if pair not in self._known:
            if len(self._known) >= _MAX_PAIRS:
                raise ValueError("the schema is too large to compare")
            self._known[pair] = []
            self._known[pair] = list(self._compare(reader, writer, path))
        return self._known[pair]

    def _compare(self, reader: AvroSchema, writer: AvroSchema, path: str) -> Iterator[str]:
        if writer.kind == "union":
            for branch in writer.parts:
                yield from self.reasons(reader, branch, path)
        elif reader.kind == "union":
            if all(self.reasons(branch, writer, path) for branch in reader.parts):
                yield f"{path or '/'}: the reader's union has no branch for {writer.name or writer.kind}"
        elif reader.kind != writer.kind:
            if writer.kind not in _PROMOTIONS.get(reader.kind, ()):
                yield f"{path or '/'}: the reader expects {reader.kind}, the writer has {writer.kind}"
        elif reader.kind in self._kinds:
            yield from self._kinds[reader.kind](reader, writer, path)

    def _parts(self, reader: AvroSchema, writer: AvroSchema, path: str) -> Iterator[str]:
        yield from self.reasons(reader.parts[0], writer.parts[0], path)

    def _record(self, reader: AvroSchema, writer: AvroSchema, path: str) -> Iterator[str]:
        yield from _compare_names(reader, writer, path)
        written = {field.names[0]: field.schema for field in writer.fields}
        for field in reader.fields:
            found = next((written[name] for name in field.names if name in written), None)
            if found is not None:
                yield from self.reasons(field.schema, found, f"{path}/{field.names[0]}")
            elif not field.has_default:
                yield f"{path}/{field.names[0]}: the writer lacks the field, and the reader has no default"


def _compare_enums(reader: AvroSchema, writer: AvroSchema, path: str) -> Iterator[str]:
    yield from _compare_names(reader, writer, path)
    missing = [each for each in writer.symbols if each not in reader.symbols]
    if missing and reader.default is None:
        yield f"{path or '/'}: the reader lacks the symbols {', '.join(missing)}"


def _compare_fixed(reader: AvroSchema, writer: AvroSchema, path: str) -> Iterator[str]:
    yield from _compare_names(reader, writer, path)
    if reader.size != writer.size:
        yield f"{path or '/'}: the reader expects {reader.size} bytes, the writer has {writer.size}"


def _compare_names(reader: AvroSchema, writer: AvroSchema, path: str) -> Iterator[str]:
    if writer.name != reader.name and writer.name not in reader.aliases:
        yield f"{path or '/'}: the reader expects {reader.name}, the writer has {writer.name}"
