"""The records of an internal topic, extracted from the record batches of its log.

A batch adds two facts to its records: the producer id of a transaction, and the control record that ends it.
``records`` decodes keys and values. ``replay`` builds the state from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, decode_record
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.records import Batch, ControlRecord, ControlType, RecordBatch

__all__ = ["decode_batches"]


def decode_batches(topic: str, batches: Iterable[Batch]) -> Iterator[InternalRecord | TransactionEnd]:
    """Yield the records in ``batches`` of an internal topic, in order, as input for ``replay``.

    The control records of transactions become ``TransactionEnd``. KRaft control records are skipped. Raises the errors
    of ``decode_record`` and of the ``records`` of a batch.
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
