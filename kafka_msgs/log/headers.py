"""What the headers of batches come to: the value that ``native`` and ``python`` count.

Both have a function ``count_batches(data, position, stop, check_crc)``, which returns ``Counted``. It goes over bytes
at once, without an object for any batch, and ends at the first byte where no sound batch of magic 2 starts; what is
there is for ``scan`` to say.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_msgs.layouts import DELETE_HORIZON, LOG_APPEND_TIME

__all__ = ["BASE_IS_NO_TIME", "Counted"]

"""Producer id of a batch that was written without idempotence."""
BASE_IS_NO_TIME: Final = LOG_APPEND_TIME | DELETE_HORIZON
"""Flags with which the base timestamp is that of no record: with the broker's time it is still the producer's."""


class Counted(NamedTuple):
    """What the batches before ``position`` come to; ``last`` is the byte at which the last of them starts.

    Timestamps are in milliseconds since the epoch, None where no header has any. ``by_codec`` has the batches by the
    number of their codec.
    """

    position: int
    last: int
    batches: int
    records: int
    first_timestamp: int | None
    last_timestamp: int | None
    by_codec: tuple[int, ...]
    producers: set[int]
