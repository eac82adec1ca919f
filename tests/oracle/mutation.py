"""Damages the bytes of a message at critical positions (lengths, counts, markers and tags) and at random positions.

Half of the damage targets the start of a value, as located by ``annotate``; the other half is at random. All damage
comes from a seeded generator, so failing inputs are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, TypeAlias

from kafka_msgs.codec.plan import Plan
from kafka_msgs.codec.reference import annotate
from kafka_msgs.primitives import write_uvarint

__all__ = ["mutations"]

_Damage: TypeAlias = Callable[[bytearray, int, Random], None]

_BYTES: Final = (0x00, 0x01, 0x02, 0x03, 0x7F, 0x80, 0x81, 0xFE, 0xFF)

_LENGTHS: Final = tuple(
    bytes.fromhex(text)
    for text in (
        "ffff",
        "fffe",
        "8000",
        "7fff",
        "ffffffff",
        "fffffffe",
        "80000000",
        "7fffffff",
        "00000001",
        "8000",
        "8100",
        "818000",
        "ffffffff07",
        "ffffffff0f",
        "feffffff0f",
        "8080808008",
        "ffffffff7f",
        "8180808010",
        "8080808080",
        "ffffffffff01",
    )
)
"""Extreme lengths and counts: null, negative, huge, longer than needed, and with more bits than an int32."""


def mutations(plan: Plan, data: bytes, count: int, rng: Random) -> Iterator[bytes]:
    """Yield ``count`` damaged copies of an encoded message; some happen to be valid."""
    spans, _ = annotate(plan, data)
    starts = [span.start for span in spans] or [0]
    sections = [span.start for span in spans if span.kind == "tag section"]
    for _ in range(count):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2))):
            if sections and rng.random() < 0.3:
                _tag(damaged, rng.choice(sections), rng)
            else:
                place = rng.choice(starts) if rng.random() < 0.5 else rng.randint(0, len(data))
                rng.choice(_DAMAGES)(damaged, min(place, len(damaged)), rng)
        yield bytes(damaged)


def _flip(data: bytearray, at: int, rng: Random) -> None:
    if at < len(data):
        data[at] ^= 1 << rng.randrange(8)


def _set(data: bytearray, at: int, rng: Random) -> None:
    data[at : at + 1] = bytes([rng.choice(_BYTES)])


def _length(data: bytearray, at: int, rng: Random) -> None:
    length = rng.choice(_LENGTHS)
    replaced = rng.choice((0, 1, len(length)))
    data[at : at + replaced] = length


def _cut(data: bytearray, at: int, rng: Random) -> None:
    del data[at : at + rng.randint(1, 4)]


def _truncate(data: bytearray, at: int, rng: Random) -> None:
    del data[at:]


def _insert(data: bytearray, at: int, rng: Random) -> None:
    data[at:at] = rng.randbytes(rng.randint(1, 3))


def _repeat(data: bytearray, at: int, rng: Random) -> None:
    data[at:at] = data[at : at + rng.randint(1, 8)]


def _append(data: bytearray, at: int, rng: Random) -> None:
    data += rng.randbytes(rng.randint(1, 3))


_DAMAGES: Final[tuple[_Damage, ...]] = (_flip, _set, _set, _length, _length, _cut, _truncate, _insert, _repeat, _append)


def _tag(data: bytearray, at: int, rng: Random) -> None:
    """Add one or two tagged fields at the start of a tag section, possibly with invalid numbers and sizes."""
    fields = bytearray()
    count = rng.choice((1, 1, 2))
    for _ in range(count):
        tag = rng.choice((0, 0, 1, 2, 3, 5, 9, 127, 2**31 - 1, 2**31, 2**32 - 1))
        content = rng.choice((b"", b"\0", b"\1", b"\1\0", b"\2a", b"\0\0\0\1", bytes(8), b"\xff\xff\xff\xff\x0f\0"))
        size = len(content) + rng.choice((0, 0, 0, 1, -1))
        fields += write_uvarint(tag) + write_uvarint(max(0, size)) + content
    if at < len(data) and data[at] < 0x7D:
        data[at] += count
        data[at + 1 : at + 1] = fields
