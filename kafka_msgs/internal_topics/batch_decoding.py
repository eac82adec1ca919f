"""The records of an internal topic, taken out of the record batches of its log.

A batch adds two facts to its records: the producer id of a transaction, and the control record that ends it.
``records`` decodes keys and values. ``replay`` makes the state from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, decode_record
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.records import Batch, ControlRecord, ControlType, RecordBatch

__all__ = ["decode_batches"]


def decode_batches(topic: str, batches: Iterable[Batch]) -> Iterator[InternalRecord | TransactionEnd]:
    """Yield the records in ``batches`` of the internal topic of that name, in order, as ``replay`` takes them.

    The control records of a transaction become ``TransactionEnd``. Those of KRaft are left out. Raises what
    ``decode_record`` and the ``records`` of a batch raise.
    """
    for batch in batches:
        if isinstance(batch, RecordBatch) and batch.is_control:
            yield from _transaction_ends(batch.producer_id, batch.control_records())
            continue
        producer = batch.producer_id if isinstance(batch, RecordBatch) and batch.is_transactional else NO_PRODUCER
        for record in batch:
            yield decode_record(topic, record.key, record.value, producer_id=producer)


def _transaction_ends(producer: int, records: Iterable[ControlRecord]) -> Iterator[TransactionEnd]:
    for record in records:
        if record.type in (ControlType.ABORT, ControlType.COMMIT):
            yield TransactionEnd(producer_id=producer, committed=record.type is ControlType.COMMIT)
