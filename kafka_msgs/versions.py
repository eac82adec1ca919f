"""Version ranges in the syntax of Kafka's message definitions, and their set operations.

This module owns the syntax (``none``, ``3``, ``1-4``, ``2+``) and the set operations. The generated classes, the codec
and the generator share it, so a range has the same meaning everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from operator import index
from typing import Final, SupportsIndex

from attrs import frozen

__all__ = ["MAX_VERSION", "NONE", "VersionRange", "version_number"]

MAX_VERSION: Final = 32767
"""The highest version that an int16 can hold. ``N+`` goes up to it."""

_RANGE = re.compile(r"(\d+)(?:(\+)|-(\d+))?", re.ASCII)


@frozen
class VersionRange:
    """A contiguous, possibly empty set of versions; ``NONE`` is the empty one.

    >>> VersionRange.parse("2+").intersect(VersionRange.parse("0-5"))
    VersionRange(2-5)
    >>> 3 in VersionRange.parse("0-2")
    False
    """

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Return the range of a text: ``none``, ``N``, ``A-B`` or ``N+``. Raises ``ValueError`` for any other text, and
        for a reversed range.
        """
        return _parse(text)

    @property
    def empty(self) -> bool:
        """True for ``NONE``."""
        return self.lowest > self.highest

    @property
    def open_ended(self) -> bool:
        """True if the range has no explicit upper bound (``N+``)."""
        return self.highest == MAX_VERSION

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def contains(self, other: VersionRange) -> bool:
        """Whether every version of ``other`` is in this range. Every range covers ``NONE``."""
        return other.empty or (self.lowest <= other.lowest and other.highest <= self.highest)

    def intersect(self, other: VersionRange) -> VersionRange:
        """Return the versions in both ranges."""
        lowest, highest = max(self.lowest, other.lowest), min(self.highest, other.highest)
        return VersionRange(lowest, highest) if lowest <= highest else NONE

    def subtract(self, other: VersionRange) -> VersionRange | None:
        """Return the versions of this range that ``other`` lacks, or None if they are not one range."""
        shared = self.intersect(other)
        if shared.empty:
            return self
        if shared == self:
            return NONE
        if shared.lowest == self.lowest:
            return VersionRange(shared.highest + 1, self.highest)
        if shared.highest == self.highest:
            return VersionRange(self.lowest, shared.lowest - 1)
        return None

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))

    def __str__(self) -> str:
        if self.empty:
            return "none"
        if self.open_ended:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"

    def __repr__(self) -> str:
        return f"VersionRange({self})"


def version_number(version: object) -> int | None:
    """Return a version as an int, or None if it is not a whole number. The type may be another, such as NumPy's.

    A bool is not a version, and a float is not a version, although both compare equal to integers.
    """
    if type(version) is int:
        return version
    if isinstance(version, bool) or not isinstance(version, SupportsIndex):
        return None
    return int(index(version))


NONE: Final = VersionRange(0, -1)
"""The empty range."""


@lru_cache(maxsize=1024)
def _parse(text: str) -> VersionRange:
    text = text.strip()
    if text == "none":
        return NONE
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"bad version range {text!r}: expected 'none', 'N', 'A-B' or 'N+'")
    low, plus, high = match.groups()
    lowest = int(low)
    highest = MAX_VERSION if plus else int(high if high is not None else low)
    if max(lowest, highest) > MAX_VERSION:
        raise ValueError(f"bad version range {text!r}: a version is at most {MAX_VERSION}")
    if lowest > highest:
        raise ValueError(f"bad version range {text!r}: {lowest} is above {highest}")
    return VersionRange(lowest, highest)
