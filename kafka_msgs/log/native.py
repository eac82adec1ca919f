"""Counts over batch headers, implemented in C."""

from __future__ import annotations

from kafka_msgs._core import extension
from kafka_msgs.checksums import crc32c
from kafka_msgs.log.batch_counts import BatchCounts
from kafka_msgs.log.mapped_file import Mapped

__all__ = ["count_batches"]


def count_batches(
    data: Mapped,
    position: int,
    stop: int,
    check_crc: bool,
    without: int = 0,
    first: int = -(2**63),
    last_offset: int = 2**63 - 1,
) -> BatchCounts:
    """Count batches like ``python.count_batches``."""
    checksum = crc32c if check_crc else None
    found = extension.count_batches(data, position, stop, checksum, without, first, last_offset)
    *counts, first_time, last_time, by_codec, producers = found
    times = (None, None) if first_time > last_time else (first_time, last_time)
    return BatchCounts._make((*counts, *times, tuple(memoryview(by_codec).cast("q")), producers))
