"""Random messages and mutated bytes for every version of every message: all executors behave the same.

The seed is the message and version, so failures are reproducible.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafka_msgs import iter_message_classes
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.schema import MessageStruct
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import codec
from tests.support.damage import (
    corrupted,
    mutated,
    outcome,
    same,
)

PAIRS = [
    pytest.param(cls, version, id=f"{cls.INFO.name}-v{version}")
    for cls in sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
    for version in cls.INFO.versions
]
FAST = [name for name in EXECUTORS if name != "reference"]
EXAMPLES = 4
MUTATIONS = 12
CORRUPTIONS = 6


def messages(cls: type[MessageStruct], version: int) -> list[Any]:
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
    """Decode with every executor. Check that all encode the result alike, and that it then round-trips."""
    expected = outcome(codec("reference", cls, version).decode, data)
    for name in FAST:
        assert same(outcome(codec(name, cls, version).decode, data), expected), data.hex()
    if expected[0] != "value":
        return
    rewritten = codec("reference", cls, version).encode(expected[1])
    for name in FAST:
        assert codec(name, cls, version).encode(expected[1]) == rewritten, data.hex()
        assert same(codec(name, cls, version).decode(rewritten), expected[1]), data.hex()


@pytest.mark.parametrize(("cls", "version"), PAIRS)
def test_executors_agree_on_what_cannot_be_written(cls: Any, version: int) -> None:
    rng = Random(f"values of {cls.__name__} {version}")
    for message in messages(cls, version):
        for _ in range(CORRUPTIONS):
            broken = corrupted(rng, message)
            expected = outcome(codec("reference", cls, version).encode, broken)
            for name in FAST:
                assert outcome(codec(name, cls, version).encode, broken) == expected
