"""Encoding of a coordinator's appends as record batches of its topic.

``decode_batches`` of ``kafka_msgs.internal_topics.batch_decoding`` is the inverse: it returns the records that
``CoordinatorRuntime.load`` accepts.
"""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.runtime.output import MarkerAppend, RecordAppend
from kafka_msgs.internal_topics.records import NO_PRODUCER, encode_record
from kafka_msgs.messages.end_txn_marker import EndTxnMarker
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType

__all__ = ["encode_batch"]

_SEQUENCE: Final = 0
"""The sequence of each coordinator batch. Unlike a producer, a coordinator does not number its batches."""


def encode_batch(
    batch: RecordAppend | MarkerAppend,
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    coordinator_epoch: int = 0,
) -> bytes:
    """Return the record batch that a coordinator appends, or the control batch that ends a transaction.

    ``timestamp`` is the time in milliseconds. ``leader_epoch`` is the leader epoch of the partition; -1 leaves it
    unset. ``coordinator_epoch`` is the epoch of the transaction coordinator that ends the transaction. Raises
    ``EncodeError`` and ``RecordWriteError`` for records that cannot be written. Source: ``CoordinatorRuntime`` and
    ``EndTransactionMarker`` of Kafka.
    """
    header = BatchHeader(
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=_SEQUENCE if isinstance(batch, RecordAppend) else -1,
        transactional=batch.producer_id != NO_PRODUCER,
        control=isinstance(batch, MarkerAppend),
    )
    builder = BatchBuilder(header)
    if isinstance(batch, MarkerAppend):
        kind = ControlType.COMMIT if batch.committed else ControlType.ABORT
        builder.append_control(kind, EndTxnMarker(coordinator_epoch=coordinator_epoch), timestamp=timestamp)
    else:
        for record in batch.records:
            key, value = encode_record(record)
            builder.append(key, value, timestamp=timestamp)
    return builder.build()
