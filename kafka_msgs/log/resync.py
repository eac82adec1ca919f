"""Where a damaged file goes on: the next place that holds a whole batch, found among bytes that only look like one.

Owns what is believed: a batch of magic 2 by its checksum, an entry of magic 0 or 1 by its checksum and by lengths that
add up exactly, and of both an offset that is not before what was read. Owns too how much a search may cost: all
searches of one walk over a file together look at a fixed multiple of its bytes and no more. Reading batches is left to
``kafka_msgs.records``.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final

from kafka_msgs.errors import RecordError
from kafka_msgs.layouts import HEADER_SIZE, MAGIC_AT, SIZE_AND_OFFSET, header_struct
from kafka_msgs.log.mapping import WINDOW, Mapped, first_not_zero, release
from kafka_msgs.records import read_batches

__all__ = ["CHECKED_AT_LEAST", "CHECKED_AT_MOST", "Resync", "claims_a_batch", "stated_size"]

_START: Final = Struct(">qiib")
_HEADER: Final = header_struct(
    "leader_epoch", "last_offset_delta", "producer_id", "producer_epoch", "base_sequence", "count"
)
_LEAST: Final = (-1, 0, -1, -1, -1, 0)
"""The lowest value of each that a batch can have."""
_FROM_MAGIC: Final = re.compile(rb"\x02.{4}\x00[\x00-\x7f]", re.DOTALL)
"""The magic of a batch, its checksum, and its flags, of which the upper nine bits have no meaning."""
_FROM_ANY_MAGIC: Final = re.compile(
    rb"\x02.{4}\x00[\x00-\x7f]|(?<=[\x00-\x7f].{7})(?<!\x00{3}[\x00-\x0d].{4})(?:\x00[\x00-\x07]|\x01[\x00-\x0f])",
    re.DOTALL,
)
"""The same, or the magic and flags of an entry of magic 0 or 1 behind a size that one can have, and its checksum."""
_MATCH_SIZE: Final = 7
"""The most bytes that a match of either pattern has."""
CHECKED_AT_MOST: Final = 32
"""How many times the bytes of a file its searches may look at; a single wrong length can cost once all of them."""
CHECKED_AT_LEAST: Final = 2**26
"""Bytes that the searches in a small file may look at."""
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


class Resync:
    """The searches of one walk over ``data``.

    ``budget`` is how many bytes they may still look at beyond the walk itself: 32 times those of the file, and at least
    64 MiB, when the walk begins. A file of honest damage needs a small part of it. Bytes made to look like many long
    batches use it up: then the search ends, and the rest of the file counts as damage.
    """

    def __init__(self, data: Mapped) -> None:
        self._data = data
        self._zeros = (0, 0)
        self.budget = max(CHECKED_AT_MOST * len(data), CHECKED_AT_LEAST)

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up, so that no search goes on."""
        return self.budget <= 0

    def spend(self, size: int) -> None:
        """Count bytes that were looked at in vain."""
        self.budget -= size + _COST

    def is_zero(self, start: int, end: int) -> bool:
        """Whether all bytes from ``start`` up to ``end`` are zero."""
        return self._first_not_zero(start) >= end

    def next_batch(self, start: int, next_offset: int, *, legacy: bool) -> int:
        """Return where from ``start`` on a sound batch starts whose offset is not before ``next_offset``.

        It is the end of the data where none does, or where the budget ends. Entries of magic 0 and 1 are looked for
        only if ``legacy`` says so: a log has none behind batches of magic 2.
        """
        data = self._data
        pattern = _FROM_ANY_MAGIC if legacy else _FROM_MAGIC
        # A batch has at most these zeros before the last byte of its size.
        start = max(start, self._first_not_zero(start) - (SIZE_AND_OFFSET - 1))
        at = released = start + MAGIC_AT
        while at < len(data) and self.budget > 0:
            match = pattern.search(data, at, at + WINDOW)
            if match is None:
                at += WINDOW - _MATCH_SIZE + 1
                released = release(data, released, min(at, len(data)))
                continue
            position, at = match.start() - MAGIC_AT, match.start() + 1
            if self._is_batch(position, next_offset):
                return position
        return len(data)

    def _is_batch(self, position: int, next_offset: int) -> bool:
        data = self._data
        offset, size, _, magic = _START.unpack_from(data, position)
        end = position + size + SIZE_AND_OFFSET
        self.budget -= _COST
        if offset < next_offset or end > len(data) or not _fits(data, position, end, magic):
            return False
        try:
            next(read_batches(data[position:end]))
        except RecordError:
            self.budget -= end - position
            return False
        return True

    def _first_not_zero(self, start: int) -> int:
        """Return where from ``start`` on the first byte is that is not zero; the last run of zeros is remembered."""
        first, end = self._zeros
        if not first <= start < end:
            end = first_not_zero(self._data, start, len(self._data))
            self.budget -= end - start
            self._zeros = start, end
        return end


def _fits(data: Mapped, position: int, end: int, magic: int) -> bool:
    """Whether what is between the two bytes can be one batch, before its checksum is computed."""
    if magic == 2:
        if end - position < HEADER_SIZE:
            return False
        return all(value >= least for value, least in zip(_HEADER.unpack_from(data, position), _LEAST, strict=True))
    at = position + (26 if magic else 18)
    for _ in ("key", "value"):
        if end - at < 4:
            return False
        at += 4 + max(int.from_bytes(data[at : at + 4], "big", signed=True), 0)
    return at == end
