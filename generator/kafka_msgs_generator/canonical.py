"""The canonical layout of definitions: Kafka's keys, nesting and facts, without its prose.

Defines the layout of definition files under ``message_defs``. `read_definition` reads the text of a definition from
Kafka or a KIP page and returns its facts in normal form; `canonical_text` writes that form. This module refuses only
unknown keys, and values that do not fit their key. `kafka_msgs_generator.spec` and the later stages check whether the
facts are a valid message.

The normal form has no comments and no ``about``. Numbers and booleans have their JSON type, a default is a string, and
ranges have a uniform spelling. Keys whose value equals their absence (null, false, an empty list) are omitted. Keys
have a fixed order. The errors that a comment lists as supported become the additional key ``supportedErrors``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.json_tree import Node, parse_definition
from kafka_msgs_generator.source_object import SourceObject

__all__ = ["Definition", "canonical_text", "normal_form", "read_definition", "supported_errors"]

Definition: TypeAlias = dict[str, Any]
"""A definition in normal form: the keys of Kafka's format, each with a plain value."""

_WIDTH: Final = 110
_NO_BINDINGS: Final[Mapping[str, str]] = {}
_ERROR_LIST = re.compile(
    r"^[ \t]*//[^\n]*\bsupported errors\b[^\n]*:[ \t]*\n((?:[ \t]*//[ \t]*-[^\n]*\n)+)", re.MULTILINE | re.IGNORECASE
)
_ERROR = re.compile(r"//[ \t]*-[ \t]*([A-Z][A-Z0-9_]*)(?:[ \t]*\(versions?[ \t]+([0-9+-]+)\))?")


def read_definition(
    text: str, source: str | None = None, *, lenient: bool = False, bindings: Mapping[str, str] = _NO_BINDINGS
) -> Definition:
    """Return the facts of one definition in normal form.

    ``text`` is JSON with ``//`` and ``/* */`` comments; ``source`` names it in errors; ``lenient`` and ``bindings`` are
    as in `kafka_msgs_generator.json_tree.parse_definition`. Raises ``SchemaError`` for text that is not such JSON, for
    unknown or repeated keys, and for values of a wrong kind.
    """
    return normal_form(parse_definition(text, source, lenient=lenient, bindings=bindings), text, source)


def normal_form(root: Node, text: str, source: str | None) -> Definition:
    """Return the facts of the definition in ``root``; ``text``, its source, may list supported errors."""
    definition = _normal(root, source, "", _MESSAGE)
    listed = supported_errors(text)
    if listed:
        lowest = VersionRange.parse(definition.get("validVersions", "0")).lowest
        definition["supportedErrors"] = {name: versions or f"{lowest}+" for name, versions in listed.items()}
    return definition


def supported_errors(text: str) -> dict[str, str | None]:
    """Return the error names that a comment of ``text`` lists as supported, each with its version range if it has one.

    The list is a comment line that contains "supported errors" and ends in a colon, directly followed by comment lines
    that start with a dash.
    """
    lists = "".join(match[1] for match in _ERROR_LIST.finditer(text))
    return {match[1]: match[2] for match in _ERROR.finditer(lists)}


def canonical_text(definition: Definition) -> str:
    """Return the text of a definition file: one field per line if it fits 110 columns, a newline at the end."""
    body = ",\n".join(_key_lines(key, definition[key]) for key in _MESSAGE if key in definition)
    return f"{{\n{body}\n}}\n"


# Each reader below returns the value of a key in normal form, or None if the value equals an absent key.

_Reader: TypeAlias = Callable[[SourceObject, str], Any]


def _versions(site: SourceObject, key: str) -> str | None:
    versions = site.versions(key)
    return None if versions is None else str(versions)


def _flexible_versions(site: SourceObject, key: str) -> str:
    """Read a message's flexible versions. A blank string means ``none``; it does not count as a missing key."""
    return _versions(site, key) or "none"


def _flag(site: SourceObject, key: str) -> bool | None:
    return site.flag(key) or None


def _trimmed(site: SourceObject, key: str) -> str | None:
    text = site.text(key)
    return text.strip() if text else None


def _default(site: SourceObject, key: str) -> str | None:
    return site.text(key) or None


def _listeners(site: SourceObject, key: str) -> list[str] | None:
    return [str(node.value) for node in site.items(key)] or None


def _map(site: SourceObject, key: str) -> dict[str, str] | None:
    node = site.value(key)
    if node is None:
        return None
    inner = SourceObject.of(node, site.source, f"{site.path}.{key}", node.value if isinstance(node.value, dict) else ())
    return {name: inner.required_text(name) for name in inner.members} or None


def _dropped(site: SourceObject, key: str) -> None:
    return None


def _fields(site: SourceObject, key: str) -> list[Definition]:
    return [_normal(node, site.source, site.path, _FIELD) for node in site.items(key)]


def _inline_fields(site: SourceObject, key: str) -> list[Definition] | None:
    return _fields(site, key) or None


def _structs(site: SourceObject, key: str) -> list[Definition] | None:
    return [_normal(node, site.source, site.path, _STRUCT) for node in site.items(key)] or None


_FIELD: Final[Mapping[str, _Reader]] = {
    "name": _trimmed,
    "type": _trimmed,
    "versions": _versions,
    "nullableVersions": _versions,
    "taggedVersions": _versions,
    "tag": SourceObject.integer,
    "flexibleVersions": _versions,
    "default": _default,
    "ignorable": _flag,
    "mapKey": _flag,
    "entityType": _trimmed,
    "zeroCopy": _flag,
    "about": _dropped,
    "fields": _inline_fields,
}
"""The keys of a field in canonical order, each with the reader of its value."""

_STRUCT: Final[Mapping[str, _Reader]] = {
    "name": _trimmed,
    "versions": _versions,
    "deprecatedVersions": _versions,
    "about": _dropped,
    "fields": _fields,
}

_MESSAGE: Final[Mapping[str, _Reader]] = {
    "name": _trimmed,
    "type": _trimmed,
    "apiKey": SourceObject.integer,
    "listeners": _listeners,
    "validVersions": _versions,
    "deprecatedVersions": _versions,
    "flexibleVersions": _flexible_versions,
    "latestVersionUnstable": _flag,
    "headerVersions": _map,
    "supportedErrors": _map,
    "about": _dropped,
    "fields": _fields,
    "commonStructs": _structs,
}


def _normal(node: Node, source: str | None, parent: str, keys: Mapping[str, _Reader]) -> Definition:
    site = SourceObject.of(node, source, parent, keys)
    values = ((key, reader(site, key)) for key, reader in keys.items() if site.value(key) is not None)
    return {key: value for key, value in values if value is not None}


_dump = partial(json.dumps, ensure_ascii=False)


def _key_lines(key: str, value: Any) -> str:
    if key in ("fields", "commonStructs"):
        return f"  {_dump(key)}: {_children(value, 2)}"
    if isinstance(value, dict):
        lines = ",\n".join(f"    {_dump(name)}: {_dump(text)}" for name, text in value.items())
        return f"  {_dump(key)}: {{\n{lines}\n  }}"
    return f"  {_dump(key)}: {_dump(value)}"


def _children(items: list[Definition], indent: int) -> str:
    if not items:
        return "[]"
    lines = ",\n".join(_object_lines(item, indent + 2) for item in items)
    return f"[\n{lines}\n{' ' * indent}]"


def _object_lines(item: Definition, indent: int) -> str:
    """Write a field or struct: its facts on as few lines as possible, followed by its fields."""
    pairs = [f"{_dump(key)}: {_dump(value)}" for key, value in item.items() if key != "fields"]
    children = item.get("fields")
    if children is not None:
        pairs.append('"fields": [')
    head = _filled(pairs, indent, closing=2 if children is None else 0)
    return head + "}" if children is None else head[:-1] + _children(children, indent) + "}"


def _filled(pairs: list[str], indent: int, closing: int) -> str:
    """Fill lines up to the width, with ``closing`` columns to spare on the last one."""
    lines = [" " * indent + "{" + pairs[0]]
    for number, pair in enumerate(pairs[1:], 2):
        spare = closing if number == len(pairs) else 1
        if len(lines[-1]) + 2 + len(pair) + spare <= _WIDTH:
            lines[-1] += ", " + pair
        else:
            lines[-1] += ","
            lines.append(" " * (indent + 1) + pair)
    return "\n".join(lines)
