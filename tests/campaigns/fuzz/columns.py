"""Columns, and what must hold for any input: in C and in Python the same rows are bad and the others equal.

The first two bytes of an input choose a message at a version, or with the version in front of each row; the third the
columns that are wanted. The rest is the rows, each behind a byte that tells its size; 255 stands for null. Seeds are
random messages, a few in a column.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.columns import native, python
from kafka_msgs.columns.types import arrow_type
from kafka_msgs.prefixed import encode_versioned
from kafka_msgs.testing.random_values import random_message
from tests.campaigns.fuzz.messages import PAIRS

__all__ = ["MAX_SIZE", "check", "seeds"]

MAX_SIZE: Final = 2048
"""The longest input, in bytes: enough for several rows, and for columns that grow."""

_HEAD: Final = 3
_NULL: Final = 255
_CHOICES: Final[list[tuple[Any, int | None]]] = [
    *PAIRS,
    *((cls, None) for cls in dict.fromkeys(cls for cls, _ in PAIRS)),
]


def seeds() -> Iterator[bytes]:
    """Yield the inputs to start from."""
    for number, (cls, version) in enumerate(_CHOICES):
        rng = Random(number)
        highest = cls.INFO.versions.highest
        rows = [random_message(cls, version if version is not None else highest, rng, max_elements=2) for _ in range(4)]
        encoded = [encode_versioned(row, highest) if version is None else row.encode(version) for row in rows]
        column = b"".join(bytes([len(row)]) + row for row in encoded if len(row) < _NULL)
        yield number.to_bytes(2, "big") + b"\0" + column + bytes([_NULL])


def check(data: bytes) -> None:
    """Check the property for one input of the fuzzer; ``AssertionError`` if it is broken."""
    if len(data) < _HEAD:
        return
    cls, version = _CHOICES[int.from_bytes(data[:2], "big") % len(_CHOICES)]
    whole = arrow_type(cls, version)
    names = [field.name for number, field in enumerate(whole) if not data[2] >> number % 8 & 1]
    type_ = arrow_type(cls, version, columns=names)
    array = pa.array(list(_rows(data[_HEAD:])), pa.binary())
    (found,) = native.decoder(cls, version, type_, DEFAULT_OPTIONS)(array)
    (expected,) = python.decoder(cls, version, type_, DEFAULT_OPTIONS)(array)
    found.values.validate(full=True)
    assert found.bad == expected.bad, f"{found.bad}, not {expected.bad}"
    # By their text, in which NaN is NaN.
    assert repr(found.values.to_pylist()) == repr(expected.values.to_pylist())


def _rows(data: bytes) -> Iterator[bytes | None]:
    at = 0
    while at < len(data):
        size = data[at]
        if size == _NULL:
            yield None
            size = 0
        else:
            yield data[at + 1 : at + 1 + size]
        at += 1 + size
