"""Reading and changing selected fields of every message and version gives the same result as decoding everything."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from kafka_msgs import evolve, iter_message_classes
from kafka_msgs.codec.error_explanation import Edit
from kafka_msgs.codec.executors import EXECUTORS, part_functions
from kafka_msgs.codec.options import DEFAULT_OPTIONS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.codec.selection import select_fields
from kafka_msgs.schema import FieldInfo, Struct, fields
from kafka_msgs.testing.random_values import random_message
from tests.support.field_paths import chosen

CLASSES: Final = sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
NEW: Final = {"string": "a patched text", "int32": 7_700_077, "int16": 7_707, "bytes": b"patched" * 30}
"""Values that are not the default of any field."""


def reached(value: Any, parts: list[str], change: Callable[[Any], Any]) -> Any:
    """Return a message with a function applied to the values at a path."""
    if not parts:
        return change(value)
    if value is None:
        return None
    if parts[0] == "[]":
        return tuple(reached(each, parts[1:], change) for each in value)
    return evolve(value, **{parts[0]: reached(getattr(value, parts[0]), parts[1:], change)})


def only(value: Any, tree: Any) -> Any:
    """Return a message with only the selected fields; all other fields have their defaults."""
    if tree is None or value is None:
        return value
    if "[]" in tree:
        return tuple(only(each, tree["[]"]) for each in value)
    return type(value)(**{name: only(getattr(value, name), below) for name, below in tree.items()})


def tree_of(found: list[str]) -> Any:
    tree: dict[str, Any] = {}
    for path in found:
        below, parts = tree, split(path)
        for each in parts[:-1]:
            below = below.setdefault(each, {})
        below[parts[-1]] = None
    return tree


def split(path: str) -> list[str]:
    return path.replace("[]", ".[]").split(".")


def info_of(cls: Any, path: str) -> FieldInfo:
    found: FieldInfo | None = None
    for name in split(path):
        if name != "[]":
            (found,) = (each for each in fields(cls) if each.attribute == name)
            cls = found.struct
    assert found is not None
    return found


def change_of(cls: Any, path: str) -> Edit:
    """Return an edit that keeps defaults. A tagged field with its default is not encoded, so edits skip it."""
    info = info_of(cls, path)

    def change(old: Any) -> Any:
        if isinstance(old, tuple) and info.is_array:
            return (*old, *old) if old else old
        if isinstance(old, Struct) or old is None or old == info.default:
            return old
        return NEW.get(info.element_type, old)

    return change


@pytest.mark.parametrize("cls", CLASSES, ids=[cls.INFO.name for cls in CLASSES])
def test_parts_of_every_message_at_every_version(cls: Any) -> None:
    """Read, change, and leave unchanged, with every executor, and with other bytes before and after the message."""
    rng = Random(cls.INFO.name)
    for version in cls.INFO.versions:
        message = random_message(cls, version, rng, max_elements=2)
        data = b"before" + message.encode(version) + b"behind"
        found = chosen(cls, version, rng)
        edits = {path: change_of(cls, path) for path in found}
        expected = message
        for path, change in edits.items():
            expected = reached(expected, split(path), change)
        plan = select_fields(compile_plan(cls, version), found)
        for executor in ("python", "c") if "c" in EXECUTORS else ("python",):
            read, patch = part_functions(plan, DEFAULT_OPTIONS, executor)
            assert read(data, 6)[0] == only(message, tree_of(found)), found
            assert patch(data, 6, tuple(edits.values())) == b"before" + expected.encode(version) + b"behind", found
            assert patch(data, 6, (lambda old: old,) * len(found)) is data
