"""Where the fuzzer starts: the bytes of the vectors, those that must be refused too, and some larger messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from kafka_msgs import DescribeGroupsRequest
from kafka_msgs.testing.random_values import random_message
from tests.fuzz.target import MAX_SIZE, PAIRS, head
from tests.vectors.files import read_all

__all__ = ["write"]

_LARGE: Final = DescribeGroupsRequest(groups=("",) * 1500)
"""An array that is longer than what is made for a count before its elements are seen."""


def write(folder: Path) -> int:
    """Write one input for each seed into a folder; return how many."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for content in _contents():
        if len(content) <= MAX_SIZE:
            (folder / str(count)).write_bytes(content)
            count += 1
    return count


def _contents() -> Iterator[bytes]:
    for vectors in read_all():
        for vector in (*vectors.valid, *vectors.invalid):
            yield head(vectors.message, vector.version) + bytes.fromhex(vector.hex)
    for cls, version in PAIRS:
        if version == cls.INFO.versions.highest:
            message = random_message(cls, version, Random(cls.__name__), max_elements=6)
            yield head(cls.INFO.name, version) + message.encode(version)
    yield head("DescribeGroupsRequest", 0) + _LARGE.encode(0)
