"""Counts over batch headers, which ``native`` and ``python`` compute.

Both have a function ``count_batches(data, position, stop, check_crc, without, first, last)``, which returns
``BatchCounts``. It reads all bytes in one call without creating an object per batch. It ends at the first byte that
does not start a valid batch of magic 2, and at a batch that has an attribute of ``without`` or may contain an offset
before ``first`` or after ``last``. ``file_scan`` then reports the bytes there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_msgs.binary_layouts import DELETE_HORIZON, LOG_APPEND_TIME

__all__ = ["BASE_IS_NO_TIME", "BatchCounts"]

BASE_IS_NO_TIME: Final = LOG_APPEND_TIME | DELETE_HORIZON
"""With one of these flags the base timestamp is not the timestamp of a record."""


class BatchCounts(NamedTuple):
    """The counts of the batches before ``position``. ``last`` is the byte position of the last batch.

    Timestamps are in milliseconds since the epoch, and None if no header contains one. ``by_codec`` counts batches by
    the number of their compression type.
    """

    position: int
    last: int
    batches: int
    records: int
    first_timestamp: int | None
    last_timestamp: int | None
    by_codec: tuple[int, ...]
    producers: set[int]
