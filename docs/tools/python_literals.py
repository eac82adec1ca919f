"""Messages as the Python code that constructs them, for the message pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from kafka_msgs.message import Message
from kafka_msgs.schema import Struct, fields

__all__ = ["construction"]

_WIDTH: Final = 100


def construction(message: Message) -> str:
    """Return statements that import the classes and assign an equal message to ``message``.

    Fields with their default are omitted.
    """
    code = f"message = {_expression(message, 0)}"
    cls = type(message)
    nested = sorted({name for name in _structs(message) if name != cls.__name__})
    lines = ["from uuid import UUID", ""] if "UUID(" in code else []
    lines.append(f"from kafka_msgs import {cls.__name__}")
    if nested:
        lines.append(_import(cls.__module__, nested))
    return "\n".join([*lines, "", code])


def _import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])


def _structs(value: Any) -> Iterator[str]:
    if isinstance(value, Struct):
        yield type(value).__name__
        for info in fields(type(value)):
            field = getattr(value, info.attribute)
            if field != info.default:
                yield from _structs(field)
    elif isinstance(value, tuple):
        for element in value:
            yield from _structs(element)


def _expression(value: Any, depth: int) -> str:
    if isinstance(value, Struct):
        pairs = ((info.attribute, info.default) for info in fields(type(value)))
        set_fields = [(name, getattr(value, name)) for name, default in pairs if getattr(value, name) != default]
        parts = [f"{name}={_expression(field, depth + 1)}" for name, field in set_fields]
        return _joined(f"{type(value).__name__}(", parts, ")", depth)
    if isinstance(value, tuple):
        parts = [_expression(element, depth + 1) for element in value]
        return _joined("(", parts, ",)" if len(parts) == 1 else ")", depth)
    if isinstance(value, bytes):
        return _bytes(value, depth)
    return f'UUID("{value}")' if isinstance(value, UUID) else _plain(value)


def _plain(value: object) -> str:
    text = repr(value)
    return f'"{text[1:-1]}"' if isinstance(value, str) and '"' not in text else text


def _bytes(value: bytes, depth: int) -> str:
    text = value.hex()
    size = _WIDTH - 4 * depth - 20
    parts = [f'"{text[start : start + size]}"' for start in range(0, len(text), size)]
    if len(parts) == 1:
        return f"bytes.fromhex({parts[0]})"
    indent = "    " * (depth + 1)
    return "\n".join(["bytes.fromhex(", *(f"{indent}{part}" for part in parts), "    " * depth + ")"])


def _joined(opening: str, parts: list[str], closing: str, depth: int) -> str:
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) + 4 * depth <= _WIDTH - 20 and "\n" not in line:
        return line
    indent = "    " * (depth + 1)
    inner = "".join(f"{indent}{part},\n" for part in parts)
    return f"{opening}\n{inner}{'    ' * depth}{closing.lstrip(',')}"
