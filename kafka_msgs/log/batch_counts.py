"""The counts over the headers of batches, which ``native`` and ``python`` make.

Both have a function ``count_batches(data, position, stop, check_crc, without, first, last)``, which returns
``BatchCounts``. It reads all bytes in one call and does not make an object per batch. It ends at the first byte where
no sound batch of magic 2 starts, or one that has an attribute of ``without``, or may hold an offset before ``first`` or
after ``last``. ``file_scan`` then reports what is there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_msgs.binary_layouts import DELETE_HORIZON, LOG_APPEND_TIME

__all__ = ["BASE_IS_NO_TIME", "BatchCounts"]

"""The producer id of a batch that was written without idempotence."""
BASE_IS_NO_TIME: Final = LOG_APPEND_TIME | DELETE_HORIZON
"""With one of these flags the base timestamp is not the timestamp of a record."""


class BatchCounts(NamedTuple):
    """The counts of the batches before ``position``. ``last`` is the byte where the last of them starts.

    Timestamps are in milliseconds since the epoch, and None if no header has one. ``by_codec`` has the number of
    batches by the number of their codec.
    """

    position: int
    last: int
    batches: int
    records: int
    first_timestamp: int | None
    last_timestamp: int | None
    by_codec: tuple[int, ...]
    producers: set[int]
