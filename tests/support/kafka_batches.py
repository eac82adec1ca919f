"""Batches as Kafka's own classes read and print them."""

from __future__ import annotations

import json
from typing import Any

from kafka_msgs.records import (
    Batch,
    RecordBatch,
)
from tests.oracle import Oracle, OracleReject
from tests.support.batches import record_for_kafka

NAMES = (
    "base_offset", "partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence", "last_sequence",
    "is_transactional", "is_control", "crc", "delete_horizon",
)  # fmt: skip


def as_kafka_prints(batch: Batch) -> dict[str, Any]:
    """Return a batch that this library read, in the oracle's format."""
    printed = {
        "magic": batch.magic,
        "codec": batch.codec,
        "timestamp_type": batch.timestamp_type,
        "size": batch.size,
        "last_offset": batch.last_offset,
        "max_timestamp": batch.max_timestamp,
        "records": [record_for_kafka(record) for record in batch],
    }
    if isinstance(batch, RecordBatch):
        printed |= {name: getattr(batch, name) for name in NAMES}
    return printed


def kafka_reads(oracle: Oracle, data: bytes) -> list[dict[str, Any]]:
    (answer,) = oracle.read_batches_many([data])
    if isinstance(answer, OracleReject):
        raise answer
    found: list[dict[str, Any]] = json.loads(answer)
    for batch in found:
        if batch["magic"] == 0:
            batch["timestamp_type"] = 0  # Kafka has a third type for a format without timestamps
    return found
