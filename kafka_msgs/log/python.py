"""Counts over batch headers, implemented in Python; ``native`` computes the same counts faster."""

from __future__ import annotations

from typing import Final

from kafka_msgs.binary_layouts import (
    CODEC_MASK,
    CRC_START,
    HEADER_SIZE,
    LENGTH_AND_OFFSET_STRUCT,
    NO_PRODUCER,
    NO_TIMESTAMP,
    header_struct,
)
from kafka_msgs.checksums import crc32c
from kafka_msgs.log.batch_counts import BASE_IS_NO_TIME, BatchCounts
from kafka_msgs.log.mapped_file import Mapped

__all__ = ["count_batches"]

_HEADER: Final = header_struct(
    "base_offset",
    "size",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "count",
)
_NEVER: Final = 2**63


def count_batches(
    data: Mapped,
    position: int,
    stop: int,
    check_crc: bool,
    without: int = 0,
    first: int = -(2**63),
    last_offset: int = 2**63 - 1,
) -> BatchCounts:
    """Count valid batches of magic 2 from ``position`` up to the first one that starts at ``stop`` or later.

    A batch that the last three arguments exclude also ends the count; see ``batch_counts``. A scan of small batches
    spends most of its time in this loop, so the counts are local variables.
    """
    length, unpack = len(data), _HEADER.unpack_from
    by_codec, producers, producer = [0] * (CODEC_MASK + 1), set[int](), NO_PRODUCER
    last, batches, records, first_time, last_time = position, 0, 0, _NEVER, -_NEVER
    with memoryview(data) as view:
        while position < stop and length - position >= HEADER_SIZE:
            offset, size, magic, crc, flags, delta, base, latest, writer, count = unpack(data, position)
            end = position + size + LENGTH_AND_OFFSET_STRUCT
            if magic != 2 or end - position < HEADER_SIZE or end > length:
                break
            if flags & without or delta < 0 or not first <= offset <= offset + delta <= last_offset:
                break
            if check_crc and crc32c(view[position + CRC_START : end]) != crc:
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
    first_of_all, latest_of_all = (None, None) if first_time > last_time else (first_time, last_time)
    return BatchCounts(position, last, batches, records, first_of_all, latest_of_all, tuple(by_codec), producers)


def _range_of_times(flags: int, base: int, latest: int) -> tuple[int, int]:
    """Return the lowest and highest timestamp in a header, or ``(_NEVER, -_NEVER)`` without timestamps."""
    found = [latest] if flags & BASE_IS_NO_TIME else [base, latest]
    known = [timestamp for timestamp in found if timestamp != NO_TIMESTAMP]
    return (min(known), max(known)) if known else (_NEVER, -_NEVER)
