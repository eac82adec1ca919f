"""State of the groups in the recorded log directory."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_msgs.internal_topics.records import InternalRecord, decode_record
from kafka_msgs.internal_topics.replay import TopicState, TransactionEnd, replay
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.records import ControlType, RecordBatch
from tests.support.recordings import GROUP_LOGS

OFFSETS = "__consumer_offsets"


PARTITIONS = LogDirectory(GROUP_LOGS).partitions


def batches(partition: Partition) -> Iterator[RecordBatch]:
    for batch in partition.batches():
        assert isinstance(batch, RecordBatch)
        yield batch


def records(batch: RecordBatch) -> Iterator[InternalRecord | TransactionEnd]:
    if batch.is_control:
        for control in batch.control_records():
            yield TransactionEnd(producer_id=batch.producer_id, committed=control.type is ControlType.COMMIT)
        return
    producer = batch.producer_id if batch.is_transactional else -1
    for record in batch:
        key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
        yield decode_record(OFFSETS, key, value, producer_id=producer)


def offsets_records() -> Iterator[InternalRecord | TransactionEnd]:
    for partition in PARTITIONS:
        if partition.topic == OFFSETS:
            for batch in batches(partition):
                yield from records(batch)


def state() -> TopicState:
    return replay(offsets_records())
