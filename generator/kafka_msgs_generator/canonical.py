"""One layout for every definition: Kafka's keys and nesting, its facts, none of its prose.

Owns what a definition file under ``message_defs`` looks like. `read_definition` takes the text of a definition as
Kafka or a KIP page writes it and returns its facts in normal form; `canonical_text` writes that form. Whether the
facts make a legal message is the loader's business: here only keys that the format does not know, and values that
cannot be what their key says, are refused.

The normal form differs from the source in this: comments and ``about`` are gone; numbers are numbers, booleans are
booleans, a default is a string, ranges are spelled one way; a key that says nothing beyond its absence (null, false,
an empty list) is gone; keys stand in one order. The errors that a comment lists as supported become the data
``supportedErrors``, a key of our own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kafka_msgs.errors import SchemaError
from kafka_msgs.versions import VersionRange

__all__ = ["canonical_text", "normalise", "read_definition", "strip_comments", "supported_errors"]

Definition = dict[str, Any]
"""A definition in normal form, as `read_definition` returns it."""

_WIDTH: Final = 110
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_ERROR_LIST = re.compile(
    r"^[ \t]*//[^\n]*\bsupported errors\b[^\n]*:[ \t]*\n((?:[ \t]*//[ \t]*-[^\n]*\n)+)", re.M | re.I
)
_ERROR = re.compile(r"//[ \t]*-[ \t]*([A-Z][A-Z0-9_]*)(?:[ \t]*\(versions?[ \t]+([0-9+-]+)\))?")


def read_definition(text: str, source: str | None = None) -> Definition:
    """Return the facts of one definition in normal form.

    ``text`` is JSON with ``//`` and ``/* */`` comments; ``source`` names it in errors. Raises ``SchemaError`` for text
    that is not such JSON, for unknown or repeated keys, and for values of a wrong kind.
    """
    parsed = _parse(text, source)
    errors = supported_errors(text)
    if errors:
        lowest = VersionRange.parse(str(parsed.get("validVersions", "0"))).lowest
        parsed["supportedErrors"] = {name: versions or f"{lowest}+" for name, versions in errors.items()}
    return normalise(parsed, source)


def supported_errors(text: str) -> dict[str, str | None]:
    """Return the error names that a comment of ``text`` lists as supported, each with its version range if it has one.

    The list is a comment line that says "supported errors" and ends in a colon, followed directly by comment lines
    that start with a dash.
    """
    lists = "".join(match[1] for match in _ERROR_LIST.finditer(text))
    return {match[1]: match[2] for match in _ERROR.finditer(lists)}


def strip_comments(text: str) -> str:
    """Return ``text`` with each comment replaced by blanks, so that positions stay what they were."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        return token if token.startswith('"') else re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text)


def normalise(definition: Mapping[str, Any], source: str | None = None) -> Definition:
    """Return ``definition`` in normal form; normalising twice changes nothing. Raises as `read_definition` does."""
    return _normalise_object(definition, _MESSAGE, source, str(definition.get("name", "")))


def canonical_text(definition: Mapping[str, Any]) -> str:
    """Return the text of a definition file: a field a line where it fits 110 columns, a newline at the end."""
    body = ",\n".join(_key_lines(key, value) for key, value in normalise(definition).items())
    return f"{{\n{body}\n}}\n"


def _parse(text: str, source: str | None) -> Definition:
    try:
        parsed = json.loads(
            strip_comments(text), object_pairs_hook=_unique_keys, parse_float=str, parse_constant=_no_constant
        )
    except json.JSONDecodeError as error:
        raise SchemaError(error.msg, source=source, line=error.lineno, column=error.colno, rule="V3") from None
    except ValueError as error:
        raise SchemaError(str(error), source=source, rule="V3") from None
    if not isinstance(parsed, dict):
        raise SchemaError("a definition is one JSON object", source=source, rule="V3")
    return parsed


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"repeated key {next(key for key in keys if keys.count(key) > 1)!r}")
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON; write it as a string")


# Each function below turns the value of a key into its normal form, or into None when the key may as well be absent.


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value.strip()


def _versions(value: Any) -> str | None:
    text = value if isinstance(value, str) else str(_number(value))
    return str(VersionRange.parse(text)) if text.strip() else None


def _number(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]+", str(value).strip()):
        raise ValueError("expected a whole number")
    return int(value)


def _flag(value: Any) -> bool | None:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true" or None


def _default(value: Any) -> str | None:
    if isinstance(value, (list, dict)):
        raise ValueError("expected a string, a number or a boolean")
    return (str(value).lower() if isinstance(value, bool) else str(value)) or None


def _names(value: Any) -> list[str] | None:
    return [_text(item) for item in _listed(value)] or None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _range_map(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    return {str(_versions(key)): str(item) for key, item in value.items()} or None


def _error_map(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    return {name: str(_versions(versions)) for name, versions in value.items()} or None


def _dropped(value: Any) -> None:
    return None


_Normaliser = Callable[[Any], Any]
_NESTED = ("fields", "commonStructs")

_FIELD: Final[Mapping[str, _Normaliser]] = {
    "name": _text,
    "type": _text,
    "versions": _versions,
    "nullableVersions": _versions,
    "taggedVersions": _versions,
    "tag": _number,
    "flexibleVersions": _versions,
    "default": _default,
    "ignorable": _flag,
    "mapKey": _flag,
    "entityType": _text,
    "zeroCopy": _flag,
    "about": _dropped,
    "fields": _listed,
}
"""The keys of a field, in canonical order, each with what makes its value normal."""

_STRUCT: Final[Mapping[str, _Normaliser]] = {
    "name": _text,
    "versions": _versions,
    "deprecatedVersions": _versions,
    "about": _dropped,
    "fields": _listed,
}

_MESSAGE: Final[Mapping[str, _Normaliser]] = {
    "name": _text,
    "type": _text,
    "apiKey": _number,
    "listeners": _names,
    "validVersions": _versions,
    "deprecatedVersions": _versions,
    "flexibleVersions": _versions,
    "latestVersionUnstable": _flag,
    "headerVersions": _range_map,
    "supportedErrors": _error_map,
    "about": _dropped,
    "fields": _listed,
    "commonStructs": _listed,
}


def _normalise_object(
    item: Mapping[str, Any], keys: Mapping[str, _Normaliser], source: str | None, path: str
) -> Definition:
    unknown = sorted(item.keys() - keys.keys())
    if unknown:
        raise SchemaError(f"unknown key {unknown[0]!r}", source=source, path=path, rule="V1")
    values = ((key, _value(key, item[key], keys, source, path)) for key in keys if item.get(key) is not None)
    return {key: value for key, value in values if value is not None}


def _value(key: str, value: Any, keys: Mapping[str, _Normaliser], source: str | None, path: str) -> Any:
    try:
        normal = keys[key](value)
    except ValueError as error:
        raise SchemaError(f"{key} is {value!r}: {error}", source=source, path=path, rule="V5") from None
    if key in _NESTED:
        inner = _STRUCT if key == "commonStructs" else _FIELD
        normal = [_nested(child, inner, source, path) for child in normal]
        return normal if normal or (key == "fields" and keys is not _FIELD) else None
    return normal


def _nested(child: Any, keys: Mapping[str, _Normaliser], source: str | None, path: str) -> Definition:
    if not isinstance(child, dict):
        raise SchemaError(f"expected an object, not {child!r}", source=source, path=path, rule="V3")
    return _normalise_object(child, keys, source, f"{path}.{child.get('name', '?')}")


_dump = partial(json.dumps, ensure_ascii=False)


def _key_lines(key: str, value: Any) -> str:
    if key in _NESTED and value:
        return f"  {_dump(key)}: {_children(value, 2)}"
    if key in ("supportedErrors", "headerVersions"):
        lines = ",\n".join(f"    {_dump(name)}: {_dump(versions)}" for name, versions in value.items())
        return f"  {_dump(key)}: {{\n{lines}\n  }}"
    return f"  {_dump(key)}: {_dump(value)}"


def _children(items: list[Definition], indent: int) -> str:
    lines = ",\n".join(_object_lines(item, indent + 2) for item in items)
    return f"[\n{lines}\n{' ' * indent}]"


def _object_lines(item: Definition, indent: int) -> str:
    """Write a field or struct: its facts filled into as few lines as fit, its own fields below."""
    pairs = [f"{_dump(key)}: {_dump(value)}" for key, value in item.items() if key != "fields"]
    children = item.get("fields")
    if children is not None:
        pairs.append('"fields": [')
    lines = [" " * indent + "{" + pairs[0]]
    for number, pair in enumerate(pairs[1:], 2):
        closing = 0 if children is not None and number == len(pairs) else 2
        if len(lines[-1]) + 2 + len(pair) + closing <= _WIDTH:
            lines[-1] += ", " + pair
        else:
            lines[-1] += ","
            lines.append(" " * (indent + 1) + pair)
    head = "\n".join(lines)
    return head + "}" if children is None else head[:-1] + _children(children, indent) + "}"
