"""Attrs objects from plain data, such as a TOML table or a JSON object. Unknown names and wrong types are refused."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from attrs import NOTHING, fields, has

from kafka_msgs.errors import OptionError
from kafka_msgs.suggestions import no_such

__all__ = ["check_names", "parse_kind", "parse_object", "to_plain"]

T = TypeVar("T")

_DECODERS: Final[Mapping[str, Callable[[str], bytes]]] = {
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}
"""The decoders of bytes that are not UTF-8: ``{"hex": "00ff"}``."""


def parse_object(cls: Callable[..., T], data: object, place: str) -> T:
    """Return an object of an attrs class, whose attributes are the entries of a table.

    Enum members are names in any case, or numbers. Bytes are UTF-8 text, or a table with ``hex`` or ``base64``.
    ``place`` is the name of the table in errors. Raises ``OptionError``.
    """
    table = _expect(data, Mapping, place, "a table")
    attributes = {each.alias: each for each in fields(cast("Any", cls)) if each.init}
    check_names(table, attributes, place)
    missing = [name for name, each in attributes.items() if each.default is NOTHING and name not in table]
    if missing:
        raise OptionError(source=place, option=missing[0], value=None, reason="it is missing")
    hints = _hints(cls)
    values = {
        name: _parse_value(hints[attributes[name].name], value, f"{place}.{name}") for name, value in table.items()
    }
    return cls(**values)


def parse_kind(kinds: Mapping[str, Callable[..., T]], data: object, place: str, key: str) -> T:
    """Return an object of one of several classes. The entry ``key`` of the table is the name of its class."""
    table = dict(_expect(data, Mapping, place, "a table"))
    name = table.pop(key, None)
    if name not in kinds:
        raise OptionError(source=place, option=key, value=name, reason=no_such("kind", str(name), kinds))
    return parse_object(kinds[name], table, place)


def to_plain(value: object) -> Any:
    """Return the attributes of an object as a table. Enum members are names."""
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, tuple):
        return [to_plain(each) for each in value]
    if has(type(value)):
        return {
            each.alias: to_plain(getattr(value, each.name)) for each in fields(cast("Any", type(value))) if each.init
        }
    return value


def check_names(table: Mapping[str, object], known: Collection[str], place: str) -> None:
    """Raise ``OptionError`` for the first unknown name in a table, with similar known names."""
    for name in table:
        if name not in known:
            raise OptionError(source=place, option=str(name), value=None, reason=no_such("entry", str(name), known))


@cache
def _hints(cls: Callable[..., object]) -> dict[str, Any]:
    return get_type_hints(cls)


def _parse_value(hint: Any, value: object, place: str) -> Any:
    """Return a value of an annotated type. Raises ``OptionError``."""
    if get_origin(hint) in (Union, UnionType):
        kinds = get_args(hint)
        if value is None and NoneType in kinds:
            return None
        return _parse_value(next(kind for kind in kinds if kind is not NoneType), value, place)
    if get_origin(hint) is tuple:
        items = _expect(value, list, place, "a list")
        return tuple(_parse_value(get_args(hint)[0], each, f"{place}[{index}]") for index, each in enumerate(items))
    if get_origin(hint) in _MAPPINGS:
        table = _expect(value, Mapping, place, "a table")
        return {name: _parse_value(get_args(hint)[1], each, f"{place}.{name}") for name, each in table.items()}
    return _SIMPLE[hint](value, place) if hint in _SIMPLE else _parse_class(hint, value, place)


_MAPPINGS: Final = (Mapping, dict)


def _parse_class(hint: Any, value: object, place: str) -> Any:
    return _parse_member(hint, value, place) if issubclass(hint, IntEnum) else parse_object(hint, value, place)


def _parse_member(kind: type[IntEnum], value: object, place: str) -> IntEnum:
    names = kind.__members__
    if isinstance(value, str) and value.upper() in names:
        return names[value.upper()]
    if isinstance(value, int) and not isinstance(value, bool) and value in list(kind):
        return kind(value)
    raise _wrong(place, value, no_such("value", str(value), names))


def _parse_int(value: object, place: str) -> int:
    if isinstance(value, bool):
        raise _wrong(place, value, "a whole number is needed")
    number: int = _expect(value, int, place, "a whole number")
    return number


def _parse_bytes(value: object, place: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    table = _expect(value, Mapping, place, "a text, or a table with hex or base64,")
    check_names(table, _DECODERS, place)
    if len(table) != 1:
        raise _wrong(place, value, "one of hex and base64 is needed")
    ((form, text),) = table.items()
    try:
        return _DECODERS[form](_expect(text, str, place, "a text"))
    except (ValueError, binascii.Error) as error:
        raise _wrong(place, text, str(error)) from None


def _expect(value: object, kind: Any, place: str, shown: str) -> Any:
    if not isinstance(value, kind):
        raise _wrong(place, value, f"{shown} is needed")
    return value


def _wrong(place: str, value: object, reason: str) -> OptionError:
    source, _, option = place.rpartition(".")
    return OptionError(source=source or place, option=option, value=value, reason=reason)


_SIMPLE: Final[Mapping[Any, Callable[[object, str], Any]]] = {
    bool: lambda value, place: _expect(value, bool, place, "true or false"),
    int: _parse_int,
    float: lambda value, place: _expect(value, int | float, place, "a number"),
    str: lambda value, place: _expect(value, str, place, "a text"),
    bytes: _parse_bytes,
}
