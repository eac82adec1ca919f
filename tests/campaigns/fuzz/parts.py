"""Selected fields of messages, and their property: reading and patching them gives the same result in C and in Python.

The first two bytes of an input choose a message at a version, the third the fields and the results of edits, which may
not fit their fields. The rest is the message. Seeds are random messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions, DecodeBudget
from kafka_msgs.codec.executors import part_functions
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.codec.selection import select_fields
from kafka_msgs.testing.random_values import random_message
from tests.campaigns.fuzz.messages import HEAD, PAIRS
from tests.support.damage import outcome, same
from tests.support.field_paths import chosen

__all__ = ["MAX_SIZE", "check", "seeds"]

MAX_SIZE: Final = 4096
"""The maximum input size in bytes: enough for output beyond the first buffer."""

_OPTIONS: Final = (
    DEFAULT_OPTIONS,
    CodecOptions(memoryview_records=True),
    CodecOptions(budget=DecodeBudget(elements=3, bytes=40)),
)
_EDITS: Final[tuple[Callable[[Any], Any], ...]] = (
    lambda old: old,
    lambda _: None,
    lambda old: (old,) * 3,
    lambda old: old * 2 if isinstance(old, str | bytes | tuple) else old,
    lambda _: "text" * 100,
    lambda _: 2**31,
    lambda _: -1,
    lambda _: b"\xff" * 700,
)


def seeds() -> Iterator[bytes]:
    """Yield the initial inputs."""
    for number, (cls, version) in enumerate(PAIRS):
        message = random_message(cls, version, Random(number), max_elements=2)
        yield number.to_bytes(2, "big") + bytes([number % 256]) + message.encode(version)


def check(data: bytes) -> None:
    """Check the property for one input of the fuzzer; raises ``AssertionError`` if it is violated."""
    if len(data) < HEAD:
        return
    cls, version = PAIRS[int.from_bytes(data[:2], "big") % len(PAIRS)]
    rng = Random(data[2])
    options = _OPTIONS[data[2] % len(_OPTIONS)]
    paths = chosen(cls, version, rng)
    if not paths:
        return
    plan = select_fields(compile_plan(cls, version), paths)
    edits = tuple(rng.choice(_EDITS) for _ in range(3))
    (read, patch), (slow_read, slow_patch) = (part_functions(plan, options, each) for each in ("c", "reference"))
    rest = data[HEAD:]
    found, expected = outcome(lambda buffer: read(buffer, 0), rest), outcome(lambda buffer: slow_read(buffer, 0), rest)
    assert same(found, expected), f"c: {found}; reference: {expected}"
    found = outcome(lambda buffer: patch(buffer, 0, edits), rest)
    expected = outcome(lambda buffer: slow_patch(buffer, 0, edits), rest)
    assert same(found, expected), f"c: {found}; reference: {expected}"
