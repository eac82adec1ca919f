"""Helpers for column tests: columns of random messages, and their expected contents."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from kafka_msgs import iter_message_classes
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Message
from kafka_msgs.schema import Struct
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.versioned import encode_versioned

CLASSES: Final = sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
NAMES: Final = [cls.INFO.name for cls in CLASSES]


def random_rows(cls: type[Message], version: int, count: int, *, max_elements: int = 3) -> list[Message]:
    """Return values of a message; every call returns the same ones."""
    rng = Random(f"{cls.INFO.name} {version}")
    return [random_message(cls, version, rng, max_elements=max_elements) for _ in range(count)]


def prefixed_rows(cls: type[Message], each: int) -> Iterator[tuple[Message, bytes]]:
    """Return values of all versions of a message in turn, with their bytes, which start with the version."""
    for version in cls.INFO.versions:
        for row in random_rows(cls, version, each):
            yield row, encode_versioned(row, version)


def plain(value: Any, type_: pa.DataType) -> Any:
    """Return the ``to_pylist`` result for a message value that Arrow represents without loss."""
    if value is None:
        return None
    if pa.types.is_struct(type_):
        assert isinstance(value, Struct)
        return {field.name: plain(getattr(value, field.name), field.type) for field in type_}
    if pa.types.is_list(type_):
        return [plain(each, type_.value_type) for each in value]
    if pa.types.is_map(type_):
        return list(value) or None
    return str(value) if isinstance(value, UUID) else value


def facts(error: KafkaMsgsError) -> dict[str, Any]:
    """Return the expected row of a column's errors for an exception."""
    known = vars(error)
    if "reason" not in known:
        return {"path": "", "offset": None, "reason": str(error)}
    return {"path": known["path"], "offset": known["offset"], "reason": known["reason"]}


def sliced(array: pa.Array) -> pa.Array:
    """Return the same rows as a slice of a longer array, at an offset that is not a multiple of eight."""
    around = pa.array([b"\0" * 5, None, b"\xff"], array.type)
    return pa.concat_arrays([around, array, around]).slice(3, len(array))
