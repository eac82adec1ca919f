"""Batches and logs for tests of partitions."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from kafka_msgs.broker.storage import MemoryPartitionStore, PartitionLog, TopicConfig
from kafka_msgs.broker.storage.store import PartitionStore
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, read_batches

__all__ = ["NOW", "TOPIC_ID", "batch", "new_log", "values"]

NOW: Final = 1_700_000_000_000
TOPIC_ID: Final = UUID("12345678-1234-4234-8234-123456789abc")


def batch(
    *values: bytes | None,
    keys: tuple[bytes | None, ...] | None = None,
    timestamp: int = NOW,
    codec: int = 0,
    **header: Any,
) -> bytes:
    """Return a batch as sent by a producer: base offset 0, and timestamps one millisecond apart."""
    builder = BatchBuilder(BatchHeader(**header), codec=CompressionType(codec))
    for at, value in enumerate(values):
        builder.append(keys[at] if keys else b"key", value, timestamp=timestamp + at)
    return builder.build()


def new_log(store: PartitionStore | None = None, *, now: int = NOW, **configs: Any) -> PartitionLog:
    """Return the log of a partition, by default in memory. ``configs`` are fields of ``TopicConfig``."""
    return PartitionLog("orders", TOPIC_ID, 0, TopicConfig(**configs), store or MemoryPartitionStore(), now=now)


def values(log: PartitionLog, start: int = 0, max_bytes: int = 2**20, **how: Any) -> list[tuple[int, bytes]]:
    """Return the offsets and values of all records from ``start`` on, using as many reads as necessary."""
    found: list[tuple[int, bytes]] = []
    offset = start
    while (read := log.read(offset, max_bytes, **how)).size:
        for each in read_batches(b"".join(read.data)):
            found += [(record.offset, bytes(record.value or b"")) for record in each if record.offset >= start]
        assert read.next_offset > offset
        offset = read.next_offset
    return found
