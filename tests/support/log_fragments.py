"""Batches for building parts of a log."""

from __future__ import annotations

from typing import Any

from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, MessageSetBuilder


def batch(*timestamps: int, codec: CompressionType = CompressionType.NONE, **header: Any) -> bytes:
    builder = BatchBuilder(BatchHeader(**header), codec=codec)
    for timestamp in timestamps:
        builder.append(b"key", b"value", timestamp=timestamp)
    return builder.build()


def entries(*timestamps: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    builder = MessageSetBuilder(magic=1, codec=codec)
    for timestamp in timestamps:
        builder.append(b"key", b"value", timestamp=timestamp)
    return builder.build()


PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}


PLAIN = batch(3, 1, 8)


PIECES = (
    PLAIN,
    batch(),
    batch(-1),
    batch(5, codec=CompressionType.GZIP, base_offset=10, **PRODUCER),
    batch(2, 9, log_append_timestamp=700),
    batch(2, 9, delete_horizon=900),
    batch(6, **PRODUCER | {"producer_id": 8, "transactional": True}),
    entries(4, 11),
    entries(4, 12, codec=CompressionType.GZIP),
    PLAIN[:-1] + b"?",
    PLAIN[:40],
    bytes(40),
)
