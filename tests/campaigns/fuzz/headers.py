"""Headers of batches, and their property: both implementations count the same and stop at the same byte.

The first byte of an input chooses whether checksums are verified, and where counting starts and stops; the rest is the
content of a log file. Seeds are files of intact batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka_msgs.log import native, python
from tests.support.log_fragments import PIECES

__all__ = ["MAX_SIZE", "check", "seeds"]

MAX_SIZE: Final = 2048
"""The maximum input size in bytes: a few small batches."""

_STOPS: Final = (0, 1, 61, 200, MAX_SIZE, 2**40)


def seeds() -> Iterator[bytes]:
    """Yield the initial inputs."""
    for choice in range(0, 256, 7):
        for number in range(len(PIECES)):
            yield bytes([choice]) + b"".join(PIECES[number : number + 3])[: MAX_SIZE - 1]


def check(data: bytes) -> None:
    """Check the property for one input of the fuzzer; raises ``AssertionError`` if it is violated."""
    if not data:
        return
    rest, check_crc = divmod(data[0], 2)
    start, stop = divmod(rest, len(_STOPS))
    place = (data[1:], start, _STOPS[stop], bool(check_crc))
    found, expected = native.count_batches(*place), python.count_batches(*place)
    assert found == expected, f"c: {found}; python: {expected}"
