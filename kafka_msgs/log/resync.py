"""Where a damaged file goes on: the next place that holds a whole batch, told from bytes that only look like one.

Owns what is believed: a batch of magic 2 by its checksum, an entry of magic 0 or 1 by its checksum and by lengths that
add up exactly, and of both an offset that is not before what was read. Reading them is left to ``kafka_msgs.records``.
"""

from __future__ import annotations

import mmap
import re
from struct import Struct
from typing import Final, TypeAlias

from kafka_msgs.errors import RecordError
from kafka_msgs.records import read_batches
from kafka_msgs.records.batch import HEADER_SIZE
from kafka_msgs.records.common import MAGIC_AT, SIZE_AND_OFFSET

__all__ = ["Mapped", "claims_a_batch", "is_zero", "next_batch", "stated_size"]

Mapped: TypeAlias = mmap.mmap | bytes
"""The bytes of a file; an empty one cannot be mapped."""

_START: Final = Struct(">qiib")
_FROM_MAGIC: Final = re.compile(rb"\x02.{4}\x00[\x00-\x7f]", re.DOTALL)
"""The magic of a batch, its checksum, and its flags, of which the upper nine bits have no meaning."""
_FROM_ANY_MAGIC: Final = re.compile(
    rb"\x02.{4}\x00[\x00-\x7f]|(?<=[\x00-\x7f].{7})(?<!\x00{3}[\x00-\x0d].{4})(?:\x00[\x00-\x07]|\x01[\x00-\x0f])",
    re.DOTALL,
)
"""The same, or the magic and flags of an entry of magic 0 or 1 behind a size that one can have, and its checksum."""
_ZEROS: Final = bytes(2**20)
_NOT_ZERO: Final = re.compile(rb"[^\0]")
_CHECKED_AT_MOST: Final = 4
_CHECKED_AT_LEAST: Final = 2**20
_COST: Final = 64
"""What it costs to look at a candidate, in bytes of which the checksum is computed meanwhile."""


def stated_size(data: Mapped, position: int) -> int:
    """Return the bytes that the batch at ``position`` says it has; its first ``MAGIC_AT`` bytes must be there."""
    return int.from_bytes(data[position + 8 : position + SIZE_AND_OFFSET], "big", signed=True) + SIZE_AND_OFFSET


def claims_a_batch(data: Mapped, position: int) -> bool:
    """Whether the bytes at ``position`` say that a batch is there which the file can hold."""
    if len(data) - position <= MAGIC_AT:
        return False
    return data[position + MAGIC_AT] <= 2 and SIZE_AND_OFFSET < stated_size(data, position) <= len(data) - position


def next_batch(data: Mapped, start: int, next_offset: int, *, legacy: bool) -> int:
    """Return where from ``start`` on a sound batch starts whose offset is not before ``next_offset``.

    It is the end of the data where none does. Entries of magic 0 and 1 are looked for only if ``legacy`` says so: a
    log has none behind batches of magic 2. Candidates are few, unless someone made many: then the search ends when it
    has computed checksums over a few times the bytes of the file.
    """
    pattern = _FROM_ANY_MAGIC if legacy else _FROM_MAGIC
    # A batch has at most these zeros before the last byte of its size.
    start = max(start, _first_not_zero(data, start, len(data)) - (SIZE_AND_OFFSET - 1))
    at, budget = start + MAGIC_AT, max(_CHECKED_AT_MOST * len(data), _CHECKED_AT_LEAST)
    while budget > 0 and (match := pattern.search(data, at)):
        position, at = match.start() - MAGIC_AT, match.start() + 1
        offset, size, _, magic = _START.unpack_from(data, position)
        end = position + size + SIZE_AND_OFFSET
        budget -= _COST
        if offset < next_offset or end > len(data) or not _fits(data, position, end, magic):
            continue
        budget -= end - position
        try:
            next(read_batches(data[position:end]))
        except RecordError:
            continue
        return position
    return len(data)


def _fits(data: Mapped, position: int, end: int, magic: int) -> bool:
    """Whether what is between the two bytes can be one batch, before its checksum is computed."""
    if magic == 2:
        return end - position >= HEADER_SIZE
    at = position + (26 if magic else 18)
    for _ in ("key", "value"):
        if end - at < 4:
            return False
        at += 4 + max(int.from_bytes(data[at : at + 4], "big", signed=True), 0)
    return at == end


def is_zero(data: Mapped, start: int, end: int) -> bool:
    """Whether all bytes from ``start`` up to ``end`` are zero."""
    return _first_not_zero(data, start, end) == end


def _first_not_zero(data: Mapped, start: int, end: int) -> int:
    """Return where from ``start`` on the first byte is that is not zero, ``end`` if none before it is."""
    at = start
    while at < end and data[at : at + len(_ZEROS)] == _ZEROS:
        at += len(_ZEROS)
    found = _NOT_ZERO.search(data, at, end)
    return found.start() if found else end
