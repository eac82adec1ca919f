"""Damaged message bytes, and the results of decoding them: a value or a library error."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs

from kafka_msgs.errors import DecodeError, EncodeError
from kafka_msgs.schema import Struct, attribute_names

INTERESTING = (0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def outcome(action: Callable[[Any], Any], subject: Any) -> tuple[str, Any]:
    """Return the outcome of an action: a value, or the class, text and offset of a library error.

    Any other exception, including ``InternalError``, fails the test.
    """
    try:
        return "value", action(subject)
    except (DecodeError, EncodeError) as error:
        return type(error).__name__, (str(error), getattr(error, "offset", None))


def same(one: Any, other: Any) -> bool:
    """Return whether two outcomes are equal, treating not-a-number as equal to itself."""
    return bool(one == other) or repr(one) == repr(other)


def flip(rng: Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def put(rng: Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] = rng.choice(INTERESTING)


def insert(rng: Random, data: bytearray) -> None:
    data.insert(rng.randrange(len(data) + 1), rng.choice(INTERESTING))


def remove(rng: Random, data: bytearray) -> None:
    del data[rng.randrange(len(data))]


def cut(rng: Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def double(rng: Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start:start] = data[start : start + rng.randrange(1, 9)]


def overwrite(rng: Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start : start + 5] = bytes.fromhex(rng.choice(("feffffff0f", "ffffffff07", "7fffffff", "80000000", "ffff")))


MUTATORS = (flip, put, insert, remove, cut, double, overwrite)


def mutated(rng: Random, data: bytes) -> bytes:
    """Draw one to three changes to ``data``."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if changed:
            rng.choice(MUTATORS)(rng, changed)
        else:
            insert(rng, changed)
    return bytes(changed)


ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**63, 1.5, "x", "\ud800", b"x", object(),
    (), [], (None,), (2**40,), ("x",), (1.5,), ((5, b""),),
)  # fmt: skip


def corrupted(rng: Random, value: Any) -> Any:
    """Put an invalid value somewhere inside a struct or array."""
    if isinstance(value, Struct):
        attribute = rng.choice(attribute_names(type(value)))
        return attrs.evolve(value, **{attribute: corrupted(rng, getattr(value, attribute))})
    if isinstance(value, tuple) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        return (*value[:place], corrupted(rng, value[place]), *value[place + 1 :])
    return rng.choice(ODD)
