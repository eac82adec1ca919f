"""The vocabulary of plans: the type of a value (``Op``), flags for the form of its length and for null, and limits."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from kafka_msgs.primitive_types import Op

__all__ = ["FIXED", "MAX_LENGTH", "MAX_STRING", "MAX_TAG", "MAX_TAGS", "SKIP", "LengthFlag", "Op"]

MAX_STRING: Final = 32767
"""The longest string in bytes of UTF-8. It is Kafka's limit, even for length types that allow more."""

MAX_LENGTH: Final = 0x7FFFFFFF
"""The longest bytes field and the longest array."""

MAX_TAG: Final = 0x7FFFFFFF
"""The highest tag number."""

MAX_TAGS: Final = 10_000
"""The maximum number of tagged fields in one section (Kafka's limit, since 4.4.0)."""


class LengthFlag(IntEnum):
    """Flags of a value: whether its length is compact, whether it is nullable, and whether it is decoded as a view."""

    COMPACT = 1
    NULLABLE = 2
    ZERO_COPY = 4
    SKIPPED = 8


SKIP: Final = len(Op)
"""A number that is not an op. In column programs it means bytes to skip."""

FIXED: Final = {op: (op.code, op.size) for op in Op if op.size}
"""The ``struct`` code (after ``>``) and the size in bytes of fixed-size values."""
