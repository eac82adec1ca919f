"""The numbers in the names of partition directories and of their files, which have the sizes of Kafka's numbers."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["OFFSET_IN_NAME", "REPLACEMENT", "named_partition"]

OFFSET_IN_NAME: Final = r"0[0-8][0-9]{18}"
"""The pattern of an offset in a file name. Numbers of more than 63 bits are not offsets."""
REPLACEMENT: Final = re.compile(rf"(?P<segment>{OFFSET_IN_NAME}\.log)\.swap")
"""The name of a compacted segment during its swap: the broker renames the old segments first, then this file.

Listings contain the segment under its final name. Until the second rename, reading that name is an error; after a crash
of the broker it remains an error.
"""
_PARTITION: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<number>[0-9]{1,10})")
_LAST_PARTITION: Final = 2**31 - 1


def named_partition(name: str) -> tuple[str, int] | None:
    """Return the topic and number in the name of a partition directory, or None for another name."""
    match = _PARTITION.fullmatch(name)
    return (match["topic"], int(match["number"])) if match and int(match["number"]) <= _LAST_PARTITION else None
