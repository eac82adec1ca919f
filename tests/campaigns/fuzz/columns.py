"""Columns, and their property: C and Python reject the same rows and decode the others alike.

Decoded columns are encoded like their rows. The first two bytes of an input choose a message at a version, or with the
version as a prefix of each row; the third byte chooses the columns. The rest are the rows, each prefixed with a size
byte; 255 is a null row. Seeds are random messages, several per column.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.columns import encode_column, native, python
from kafka_msgs.columns.objects import to_objects
from kafka_msgs.columns.types import arrow_type
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.versioned import encode_versioned
from tests.campaigns.fuzz.messages import PAIRS
from tests.support.damage import outcome

__all__ = ["MAX_SIZE", "check", "seeds"]

MAX_SIZE: Final = 2048
"""The maximum input size in bytes: enough for several rows, and for columns that grow."""

_HEAD: Final = 3
_NULL: Final = 255
_CHOICES: Final[list[tuple[Any, int | None]]] = [
    *PAIRS,
    *((cls, None) for cls in dict.fromkeys(cls for cls, _ in PAIRS)),
]


def seeds() -> Iterator[bytes]:
    """Yield the initial inputs."""
    for number, (cls, version) in enumerate(_CHOICES):
        rng = Random(number)
        highest = cls.INFO.versions.highest
        rows = [random_message(cls, version if version is not None else highest, rng, max_elements=2) for _ in range(4)]
        encoded = [encode_versioned(row, highest) if version is None else row.encode(version) for row in rows]
        column = b"".join(bytes([len(row)]) + row for row in encoded if len(row) < _NULL)
        yield number.to_bytes(2, "big") + b"\0" + column + bytes([_NULL])


def check(data: bytes) -> None:
    """Check the property for one input of the fuzzer; raises ``AssertionError`` if it is violated."""
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
    assert found.bad_rows == expected.bad_rows, f"{found.bad_rows}, not {expected.bad_rows}"
    # Compare texts, because NaN does not equal itself.
    assert repr(found.values.to_pylist()) == repr(expected.values.to_pylist())
    versions = cls.INFO.versions
    _check_encoding(cls, versions.lowest + data[2] % (versions.highest - versions.lowest + 1), found.values)


def _check_encoding(cls: Any, version: int, values: pa.StructArray) -> None:
    """Check that columns are encoded or refused like their rows, including at versions other than their own."""
    found = encode_column(values, cls, version)
    found.values.validate(full=True)
    expected = [
        row if row is None else outcome(lambda each: each.encode(version), row) for row in to_objects(values, cls)
    ]
    bad = [number for number, each in enumerate(expected) if each is not None and each[0] != "value"]
    assert [number for number, error in enumerate(found.errors.to_pylist()) if error is not None] == bad
    rows = [each[1] if each is not None and each[0] == "value" else None for each in expected]
    assert found.values.to_pylist() == rows


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
