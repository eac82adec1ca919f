"""What the headers of batches come to, in one go over bytes and without an object for any batch.

Owns the loop, in Python and, where there is an extension, in C; ``KAFKA_MSGS_BACKEND`` chooses as it does elsewhere.
The loop ends at the first byte where no sound batch of magic 2 starts; what is there is for ``scan`` to say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from crc32c import crc32c

from kafka_msgs._backend import BACKENDS, CORE, backend
from kafka_msgs.log.resync import Mapped
from kafka_msgs.records import NO_TIMESTAMP
from kafka_msgs.records.batch import CRC_FROM, HEADER_SIZE
from kafka_msgs.records.common import CODEC_MASK, DELETE_HORIZON, LOG_APPEND_TIME, SIZE_AND_OFFSET

__all__ = ["BASE_IS_NO_TIME", "NO_PRODUCER", "CountForm", "Counted", "count_in_python", "counting", "native"]

NO_PRODUCER: Final = -1
BASE_IS_NO_TIME: Final = LOG_APPEND_TIME | DELETE_HORIZON
"""Flags with which the base timestamp is that of no record: with the broker's time it is still the producer's."""

_HEADER: Final = Struct(">8xi4xbIh4xqqq6xi")
"""Size, magic, checksum, flags, base and greatest timestamp, producer, count of records."""
_NEVER: Final = 2**63


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


CountForm: TypeAlias = Callable[[Mapped, int, int, bool], Counted]


def count_in_python(data: Mapped, position: int, stop: int, check_crc: bool) -> Counted:
    """Count sound batches of magic 2 from ``position`` up to the first that starts at ``stop`` or later.

    The loop is what a scan of small batches takes its time for: what it counts has local names.
    """
    length, unpack = len(data), _HEADER.unpack_from
    by_codec, producers, producer = [0] * (CODEC_MASK + 1), set[int](), NO_PRODUCER
    last, batches, records, first_time, last_time = position, 0, 0, _NEVER, -_NEVER
    with memoryview(data) as view:
        while position < stop and length - position >= HEADER_SIZE:
            size, magic, crc, flags, base, latest, writer, count = unpack(data, position)
            end = position + size + SIZE_AND_OFFSET
            if magic != 2 or end - position < HEADER_SIZE or end > length:
                break
            if check_crc and crc32c(view[position + CRC_FROM : end]) != crc:
                break
            if flags & BASE_IS_NO_TIME or not 0 <= base <= latest:
                base, latest = _range_of_times(flags, base, latest)
            if base < first_time:
                first_time = base
            if latest > last_time:
                last_time = latest
            if writer != producer:
                producer = writer
                producers.add(producer)
            by_codec[flags & CODEC_MASK] += 1
            batches += 1
            records += count
            last, position = position, end
    producers.discard(NO_PRODUCER)
    first, latest_of_all = (None, None) if first_time > last_time else (first_time, last_time)
    return Counted(position, last, batches, records, first, latest_of_all, tuple(by_codec), producers)


def _range_of_times(flags: int, base: int, latest: int) -> tuple[int, int]:
    """Return the lowest and highest timestamp of a header; ``_NEVER`` and its opposite where it has none."""
    found = [latest] if flags & BASE_IS_NO_TIME else [base, latest]
    known = [timestamp for timestamp in found if timestamp != NO_TIMESTAMP]
    return (min(known), max(known)) if known else (_NEVER, -_NEVER)


@cache
def native() -> CountForm | None:
    """Return the form in C, or None where there is no extension."""
    if "c" not in BACKENDS:
        return None
    count = import_module(CORE).count_batches

    def count_in_c(data: Mapped, position: int, stop: int, check_crc: bool) -> Counted:
        return Counted._make(count(data, position, stop, crc32c if check_crc else None))

    return count_in_c


@cache
def counting() -> CountForm:
    """Return the form that ``KAFKA_MSGS_BACKEND`` chooses."""
    return (native() if backend() == "c" else None) or count_in_python
