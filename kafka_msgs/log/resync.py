"""The search for the next complete batch after damage in a file.

Other bytes can look like a batch. A batch of magic 2 is accepted if its checksum is correct. An entry of magic 0 or 1
is accepted if its checksum is correct and its lengths add up exactly. In both cases, the offset must not be below the
offsets that were already read. This module also limits the cost: all searches of one scan together examine at most a
fixed multiple of the file size. ``kafka_msgs.records`` reads the batches.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final

from kafka_msgs.binary_layouts import HEADER_SIZE, LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET, header_struct
from kafka_msgs.errors import RecordError
from kafka_msgs.log.mapped_file import WINDOW, Mapped, end_of_hole, first_not_zero, release
from kafka_msgs.records import read_batches

__all__ = ["CHECKED_AT_LEAST", "CHECKED_AT_MOST", "START", "BatchResync", "looks_like_batch", "stated_size"]

START: Final = Struct(">qiib")
"""The start of a batch: its base offset, size, leader epoch or checksum, and magic."""
_HEADER: Final = header_struct(
    "leader_epoch", "last_offset_delta", "producer_id", "producer_epoch", "base_sequence", "count"
)
_LEAST: Final = (-1, 0, -1, -1, -1, 0)
"""The lowest possible value of each batch field."""
_FROM_MAGIC: Final = re.compile(rb"\x02.{4}\x00[\x00-\x7f]", re.DOTALL)
"""The magic of a batch, its checksum, and its attributes, whose upper nine bits are unused."""
_FROM_ANY_MAGIC: Final = re.compile(
    rb"\x02.{4}\x00[\x00-\x7f]|(?<=[\x00-\x7f].{7})(?<!\x00{3}[\x00-\x0d].{4})(?:\x00[\x00-\x07]|\x01[\x00-\x0f])",
    re.DOTALL,
)
"""The same, or a possible size, the checksum, the magic and the attributes of an entry of magic 0 or 1."""
_MATCH_SIZE: Final = 7
"""The longest match of the two patterns, in bytes."""
CHECKED_AT_MOST: Final = 32
"""The search limit as a multiple of the file size. One wrong length can cost one pass over all bytes."""
CHECKED_AT_LEAST: Final = 2**26
"""The minimum search limit in bytes, for small files."""
_COST: Final = 64
"""The cost of one candidate in bytes: the time of a checksum over this number of bytes."""


def stated_size(data: Mapped, position: int) -> int:
    """Return the stated size in bytes of the batch at ``position``. Its first ``MAGIC_OFFSET`` bytes must exist."""
    return (
        int.from_bytes(data[position + 8 : position + LENGTH_AND_OFFSET_STRUCT], "big", signed=True)
        + LENGTH_AND_OFFSET_STRUCT
    )


def looks_like_batch(data: Mapped, position: int) -> bool:
    """Return whether the bytes at ``position`` look like a batch that fits into the file."""
    if len(data) - position <= MAGIC_OFFSET:
        return False
    return (
        data[position + MAGIC_OFFSET] <= 2
        and LENGTH_AND_OFFSET_STRUCT < stated_size(data, position) <= len(data) - position
    )


class BatchResync:
    """The searches of one scan of ``data``.

    ``budget`` is the number of bytes that the searches may still examine, in addition to the scan itself. It starts at
    32 times the size of the file, and at least 64 MiB. Accidental damage uses a small part of it. Hostile bytes, which
    look like many long batches, can use all of it. The search then ends, and the rest of the file counts as damage.
    """

    def __init__(self, data: Mapped) -> None:
        self._data = data
        self._zeros = (0, 0)
        self.budget = max(CHECKED_AT_MOST * len(data), CHECKED_AT_LEAST)

    @property
    def exhausted(self) -> bool:
        """Whether the budget is exhausted, which ends all searches."""
        return self.budget <= 0

    def spend(self, size: int) -> None:
        """Subtract unsuccessfully examined bytes from the budget."""
        self.budget -= size + _COST

    def is_zero(self, start: int, end: int) -> bool:
        """Return whether all bytes from ``start`` up to ``end`` are zero."""
        return self._first_not_zero(start) >= end

    def next_batch(self, start: int, next_offset: int, *, legacy: bool) -> int:
        """Return the position of the next valid batch from ``start`` on, with an offset of at least ``next_offset``.

        Return the end of the data without such a batch, or if the budget is exhausted. Entries of magic 0 and 1 are
        included only with ``legacy``: in a log they never follow batches of magic 2.
        """
        data = self._data
        pattern = _FROM_ANY_MAGIC if legacy else _FROM_MAGIC
        # A batch has at most this number of zeros before the last byte of its size.
        start = max(start, self._first_not_zero(start) - (LENGTH_AND_OFFSET_STRUCT - 1))
        at = released = start + MAGIC_OFFSET
        while at < len(data) and self.budget > 0:
            match = pattern.search(data, at, at + WINDOW)
            if match is None:
                at = self._after_window(at)
                released = release(data, released, min(at, len(data)))
                continue
            position, at = match.start() - MAGIC_OFFSET, match.start() + 1
            if self._is_batch(position, next_offset):
                return position
        return len(data)

    def _after_window(self, at: int) -> int:
        """Return the position at which to continue if no match starts in the window at ``at``.

        No match starts in a hole that begins before the header, because the size of that batch would be zero.
        """
        at += WINDOW - _MATCH_SIZE + 1
        return max(at, end_of_hole(self._data, at - MAGIC_OFFSET))

    def _is_batch(self, position: int, next_offset: int) -> bool:
        data = self._data
        offset, size, _, magic = START.unpack_from(data, position)
        end = position + size + LENGTH_AND_OFFSET_STRUCT
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
        """Return the position of the first nonzero byte from ``start`` on. The last run of zeros is cached."""
        first, end = self._zeros
        if not first <= start < end:
            end = first_not_zero(self._data, start, len(self._data))
            self.budget -= end - start
            self._zeros = start, end
        return end


def _fits(data: Mapped, position: int, end: int, magic: int) -> bool:
    """Return whether the bytes between the two positions may be one batch. The checksum is not computed."""
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
