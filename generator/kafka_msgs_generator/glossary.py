"""The project's documentation of messages and fields, separate from the definitions that the import rewrites.

Defines the format of ``message_defs/glossary/*.toml`` and the lookup rule for entries. The emitter decides how to use
the sentences.

A file contains one table per message: ``message`` describes its purpose, and a key such as ``"groups.topics.name"``
documents one field by its path of names in lower camel case. A nested table ``structs.<Name>`` documents the fields of
a common struct. The tables of one message may be spread over several files. ``common.toml`` contains the tables
``fields`` and ``structs``, the fallback for messages without a specific entry. A key of ``fields`` is a path suffix,
such as ``throttleTimeMs`` or ``topics.name``; the longest matching suffix wins.

An entry serves every definition of that name, drafts and released messages alike. Sentences about versions newer than
the definition are omitted.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs.versions import MAX_VERSION, VersionRange

__all__ = ["Glossary", "MissingEntry", "dangling_entries", "gaps", "load_glossary", "number_of_fields"]

_COMMON_FILE: Final = "common.toml"
_ALL: Final = VersionRange(0, MAX_VERSION)
_END_OF_SENTENCE: Final = re.compile(r"(?<=\.) (?=[A-Z])")
_VERSION: Final = re.compile(r"\bversions? (?:\d+ (?:to|and) )?(\d+)")
"""Matches a version in a text; for a range, its last version."""
_Table = Mapping[str, str]
_Path = tuple[str, ...]


@frozen
class Glossary:
    """The entries of a glossary directory.

    Attributes: ``messages`` (message name to its table: ``message`` and field paths), ``structs`` (message and struct
    name to the struct's fields), ``common_structs`` (struct name to its fields) and ``common_fields`` (end of a path).
    """

    messages: Mapping[str, _Table]
    structs: Mapping[tuple[str, str], _Table]
    common_structs: Mapping[str, _Table]
    common_fields: _Table

    def message(self, name: str, versions: VersionRange = _ALL) -> str | None:
        """Return the purpose of the message ``name``, limited to ``versions``, or None."""
        return _concerning(versions, self.messages.get(name, {}).get("message"))

    def field(self, message_name: str, path: tuple[str, ...], struct: str, versions: VersionRange = _ALL) -> str | None:
        """Return the documentation of a field, limited to ``versions`` of the message, or None.

        ``path`` is the names from the message down to the field, in lower camel case; ``struct`` is the struct that
        declares the field, or ``message_name`` at the top. For a field of a common struct the path is its name alone.
        """
        in_common_struct = len(path) == 1 and struct != message_name
        found = self._of_struct(message_name, path[0], struct) if in_common_struct else None
        if not in_common_struct:
            found = self.messages.get(message_name, {}).get(".".join(path))
        found = found or next((self.common_fields[end] for end in _ends(path) if end in self.common_fields), None)
        return _concerning(versions, found)

    def _of_struct(self, message_name: str, name: str, struct: str) -> str | None:
        own = self.structs.get((message_name, struct), {}).get(name)
        return own or self.common_structs.get(struct, {}).get(name)


def _concerning(versions: VersionRange, text: str | None) -> str | None:
    """Return the text without sentences about versions later than ``versions``, or None if it is empty then."""
    sentences = _END_OF_SENTENCE.split(text or "")
    kept = (each for each in sentences if all(int(number) <= versions.highest for number in _VERSION.findall(each)))
    return " ".join(kept) or None


def load_glossary(directory: Path) -> Glossary:
    """Read every ``*.toml`` of a glossary directory; raise ``SchemaError`` with the name of an invalid file."""
    messages: dict[str, dict[str, str]] = {}
    structs: dict[tuple[str, str], dict[str, str]] = {}
    common: dict[str, Any] = {}
    for path in sorted(directory.glob("*.toml")):
        tables = _read(path)
        if path.name == _COMMON_FILE:
            common = tables
            continue
        for name, table in tables.items():
            for struct, entries in table.pop("structs", {}).items():
                _merge(structs.setdefault((name, struct), {}), entries, path)
            _merge(messages.setdefault(name, {}), table, path)
    return Glossary(messages, structs, common.get("structs", {}), common.get("fields", {}))


@frozen
class MissingEntry:
    """A missing glossary entry: ``key`` in the table of ``message``, and the ``facts`` of a field, such as its type."""

    message: str
    key: str
    facts: str = ""


def gaps(glossary: Glossary, definition: Mapping[str, Any]) -> list[MissingEntry]:
    """Return the missing entries for a definition: its purpose, under the key ``message``, and its fields."""
    name = definition["name"]
    lacking = [] if glossary.message(name) else [MissingEntry(name, "message")]
    return lacking + [
        MissingEntry(name, _key(name, path, struct), _facts(field))
        for path, struct, field in _fields(definition)
        if glossary.field(name, path, struct) is None
    ]


def number_of_fields(definition: Mapping[str, Any]) -> int:
    """Return how many fields a definition declares, including the fields of its structs."""
    return sum(1 for _ in _fields(definition))


def dangling_entries(glossary: Glossary, definitions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the entries that match no item in ``definitions``, as sorted dotted keys.

    Several definitions may share a name (a draft and the released message); an entry must match one of them.
    """
    known = {key for definition in definitions for key in _keys(definition)}
    entries = {f"{name}.{key}" for name, table in glossary.messages.items() for key in table}
    entries |= {f"{name}.structs.{struct}.{key}" for (name, struct), table in glossary.structs.items() for key in table}
    entries |= {f"structs.{struct}.{key}" for struct, table in glossary.common_structs.items() for key in table}
    entries |= {f"fields.{key}" for key in glossary.common_fields}
    return sorted(entries - known)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(str(error), source=path.name) from None


def _merge(into: dict[str, str], entries: Mapping[str, Any], path: Path) -> None:
    for key, text in entries.items():
        if not isinstance(text, str):
            raise SchemaError("expected a string", source=path.name, path=key)
        if key in into:
            raise SchemaError("documented twice", source=path.name, path=key)
        into[key] = text


def _keys(definition: Mapping[str, Any]) -> Iterator[str]:
    """Every key under which a definition could be documented."""
    name = definition["name"]
    yield f"{name}.message"
    for path, struct, _ in _fields(definition):
        yield from (f"fields.{end}" for end in _ends(path))
        yield f"{name}.{_key(name, path, struct)}"
        if len(path) == 1 and struct != name:
            yield f"structs.{struct}.{path[0]}"


def _key(message_name: str, path: _Path, struct: str) -> str:
    """The key of a field in the table of its message."""
    return ".".join(path) if len(path) > 1 or struct == message_name else f"structs.{struct}.{path[0]}"


def _ends(path: _Path) -> Iterator[str]:
    """The ends of a path, the longest first."""
    return (".".join(path[start:]) for start in range(len(path)))


def _facts(field: Mapping[str, Any]) -> str:
    """The facts of a field from its definition, in one line."""
    versions = field.get("versions", field.get("taggedVersions", ""))
    nullable = field.get("nullableVersions", "none")
    default = [f"default {field['default']}"] if "default" in field else []
    return ", ".join([field["type"], versions, *([f"null {nullable}"] if nullable != "none" else []), *default])


def _fields(definition: Mapping[str, Any]) -> Iterator[tuple[_Path, str, Mapping[str, Any]]]:
    """Every field with its path, the struct that declares it (as `Glossary.field` takes them) and its definition."""
    yield from _walk(definition.get("fields", ()), (), definition["name"])
    for struct in definition.get("commonStructs", ()):
        yield from _walk(struct.get("fields", ()), (), struct["name"])


def _walk(
    fields: Iterable[Mapping[str, Any]], parents: _Path, struct: str
) -> Iterator[tuple[_Path, str, Mapping[str, Any]]]:
    for field in fields:
        path = (*parents, field["name"][0].lower() + field["name"][1:])
        yield path, struct, field
        yield from _walk(field.get("fields", ()), path, field["type"].removeprefix("[]"))
