"""The bytes that a coordinator appends: the record batches of a real broker, encoded and decoded."""

from __future__ import annotations

from kafka_msgs.groups.runtime.output import MarkerAppend, RecordAppend
from kafka_msgs.groups.runtime.record_batches import encode_batch
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.records import RecordBatch, read_batches
from tests.support.recorded_groups import OFFSETS, PARTITIONS, batches


def _as_written() -> list[tuple[int, RecordBatch]]:
    """Return batches of a real broker as its coordinator appended them, neither merged nor compacted."""
    return [
        (partition.partition, batch)
        for partition in PARTITIONS
        if partition.topic == OFFSETS
        for batch in batches(partition)
        if not batch.attributes and len({record.timestamp for record in batch}) == 1
        if len(list(batch)) == batch.last_offset - batch.base_offset + 1
    ]


def test_batches_are_those_of_a_real_broker_to_the_byte() -> None:
    written = _as_written()
    assert len(written) > 10
    for partition, batch in written:
        records = tuple(each for each in decode_batches(OFFSETS, [batch]) if isinstance(each, TopicRecord))
        ours = encode_batch(
            RecordAppend(partition=partition, records=records),
            timestamp=next(iter(batch)).timestamp,
            base_offset=batch.base_offset,
            leader_epoch=batch.partition_leader_epoch,
        )
        assert ours == bytes(batch.stored_bytes)


def test_a_transaction_comes_back_as_it_was_written() -> None:
    key, value = OffsetCommitKey(group="g", topic="t", partition=0), OffsetCommitValue(offset=5, commit_timestamp=7)
    record = TopicRecord(topic=OFFSETS, key=key, value=value, version=3, producer_id=9)
    batch = RecordAppend(partition=0, records=(record,), producer_id=9, producer_epoch=1)
    marker = MarkerAppend(partition=0, producer_id=9, producer_epoch=1, committed=True)

    log = encode_batch(batch, timestamp=7) + encode_batch(marker, timestamp=8, base_offset=1, coordinator_epoch=2)

    found = list(read_batches(log))
    assert [(each.base_offset, each.is_transactional) for each in found if isinstance(each, RecordBatch)] == [
        (0, True),
        (1, True),
    ]
    assert list(decode_batches(OFFSETS, found)) == [record, TransactionEnd(producer_id=9, committed=True)]
