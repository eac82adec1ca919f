"""The records of an internal topic, taken out of the batches of its log.

Owns what the batch adds to a record: the producer of a transaction, and the marker that ends one. What keys and values
mean is left to ``internal_topics``, what the records add up to to ``topic_state``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_msgs.log.internal_topics import NO_PRODUCER, InternalRecord, decode_record
from kafka_msgs.log.scan import AnyBatch
from kafka_msgs.log.topic_state import TransactionEnd
from kafka_msgs.records import ControlRecord, ControlType, RecordBatch

__all__ = ["topic_records"]


def topic_records(topic: str, batches: Iterable[AnyBatch]) -> Iterator[InternalRecord | TransactionEnd]:
    """Yield what ``batches`` of the internal topic of that name hold, in order, in the form that ``state_of`` takes.

    Control records become the ends of transactions; those of KRaft, which end none, are left out. Raises what
    ``decode_record`` and ``records`` of a batch raise.
    """
    for batch in batches:
        if isinstance(batch, RecordBatch) and batch.is_control:
            yield from _ends(batch.producer_id, batch.control_records())
            continue
        producer = batch.producer_id if isinstance(batch, RecordBatch) and batch.is_transactional else NO_PRODUCER
        for record in batch:
            yield decode_record(topic, record.key, record.value, producer_id=producer)


def _ends(producer: int, records: Iterable[ControlRecord]) -> Iterator[TransactionEnd]:
    for record in records:
        if record.type in (ControlType.ABORT, ControlType.COMMIT):
            yield TransactionEnd(producer_id=producer, committed=record.type is ControlType.COMMIT)
