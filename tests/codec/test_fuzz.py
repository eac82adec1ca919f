"""Random messages and mutated bytes, for every version of every message: the executors agree in everything.

Seeded by message and version, so that a failure is found again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs
import pytest

from kafka_msgs import message_classes
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.errors import DecodeError, EncodeError
from kafka_msgs.schema import Described, Struct, attribute_names
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import codec

PAIRS = [
    pytest.param(cls, version, id=f"{cls.INFO.name}-v{version}")
    for cls in sorted(message_classes(), key=lambda cls: cls.INFO.name)
    for version in cls.INFO.versions
]
FAST = [name for name in EXECUTORS if name != "reference"]
EXAMPLES = 4
MUTATIONS = 12
CORRUPTIONS = 6
INTERESTING = (0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def outcome(action: Callable[[Any], Any], subject: Any) -> tuple[str, Any]:
    """What came of an action: a value, or an error of the library by class, text and offset.

    Any other exception, an ``InternalError`` included, fails the test.
    """
    try:
        return "value", action(subject)
    except (DecodeError, EncodeError) as error:
        return type(error).__name__, (str(error), getattr(error, "offset", None))


def same(one: Any, other: Any) -> bool:
    """Whether two outcomes are the same, not-a-number included, which does not equal itself."""
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
    """One to three changes to ``data``."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if changed:
            rng.choice(MUTATORS)(rng, changed)
        else:
            insert(rng, changed)
    return bytes(changed)


def messages(cls: type[Described], version: int) -> list[Any]:
    rng = Random(f"{cls.__name__} {version}")
    return [random_message(cls, version, rng, max_elements=2) for _ in range(EXAMPLES)]


@pytest.mark.parametrize(("cls", "version"), PAIRS)
def test_executors_write_the_same_bytes_and_read_them_back(cls: Any, version: int) -> None:
    for message in messages(cls, version):
        written = {name: codec(name, cls, version).encode(message) for name in EXECUTORS}
        assert len(set(written.values())) == 1
        for name, data in written.items():
            decoded = codec(name, cls, version).decode(data)
            assert decoded == message
            assert codec(name, cls, version).encode(decoded) == data


@pytest.mark.parametrize(("cls", "version"), PAIRS)
def test_executors_agree_on_mutated_bytes(cls: Any, version: int) -> None:
    rng = Random(f"mutations of {cls.__name__} {version}")
    for message in messages(cls, version):
        data = codec("reference", cls, version).encode(message)
        for _ in range(MUTATIONS if len(data) < 2000 else 2):
            check_agreement(cls, version, mutated(rng, data))


def check_agreement(cls: Any, version: int, data: bytes) -> None:
    """Decode with every executor; what decodes is written the same by all, and is then a value that stays."""
    expected = outcome(codec("reference", cls, version).decode, data)
    for name in FAST:
        assert same(outcome(codec(name, cls, version).decode, data), expected), data.hex()
    if expected[0] != "value":
        return
    rewritten = codec("reference", cls, version).encode(expected[1])
    for name in FAST:
        assert codec(name, cls, version).encode(expected[1]) == rewritten, data.hex()
        assert same(codec(name, cls, version).decode(rewritten), expected[1]), data.hex()


ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**63, 1.5, "x", "\ud800", b"x", object(),
    (), [], (None,), (2**40,), ("x",), (1.5,), ((5, b""),),
)  # fmt: skip


def corrupted(rng: Random, value: Any) -> Any:
    """Put an odd value somewhere inside a struct or array."""
    if isinstance(value, Struct):
        attribute = rng.choice(attribute_names(type(value)))
        return attrs.evolve(value, **{attribute: corrupted(rng, getattr(value, attribute))})
    if isinstance(value, tuple) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        return (*value[:place], corrupted(rng, value[place]), *value[place + 1 :])
    return rng.choice(ODD)


@pytest.mark.parametrize(("cls", "version"), PAIRS)
def test_executors_agree_on_what_cannot_be_written(cls: Any, version: int) -> None:
    rng = Random(f"values of {cls.__name__} {version}")
    for message in messages(cls, version):
        for _ in range(CORRUPTIONS):
            broken = corrupted(rng, message)
            expected = outcome(codec("reference", cls, version).encode, broken)
            for name in FAST:
                assert outcome(codec(name, cls, version).encode, broken) == expected
