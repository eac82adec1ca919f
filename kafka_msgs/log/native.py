"""The count over the headers of batches in C."""

from __future__ import annotations

from crc32c import crc32c

from kafka_msgs._core import extension
from kafka_msgs.log.headers import Counted
from kafka_msgs.log.mapping import Mapped

__all__ = ["count_batches"]


def count_batches(data: Mapped, position: int, stop: int, check_crc: bool, *limits: int) -> Counted:
    """Do what ``python.count_batches`` does."""
    checksum = crc32c if check_crc else None
    *counts, by_codec, producers = extension.count_batches(data, position, stop, checksum, *limits)
    return Counted._make((*counts, tuple(memoryview(by_codec).cast("q")), producers))
