"""Internal topic records in real logs add up to their brokers' state."""

from __future__ import annotations

import pytest

from kafka_msgs import EndTxnMarker, ListTransactionsResponse, OffsetCommitKey, OffsetCommitValue
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TOPICS, TopicRecord, decode_record, encode_record
from kafka_msgs.internal_topics.replay import TransactionEnd, replay
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType, MessageSetBuilder, RecordBatch, read_batches
from tests.support.recorded_answers import answers
from tests.support.recordings import GROUP_LOGS, LOGS, TIERED_LOGS

OFFSETS = "__consumer_offsets"
COMMIT = TopicRecord(
    topic=OFFSETS,
    key=OffsetCommitKey(group="billing", topic="orders", partition=0),
    value=OffsetCommitValue(offset=42),
    version=3,
)
KEY, VALUE = encode_record(COMMIT)


def test_offsets_of_a_transaction_have_their_producer_and_its_end() -> None:
    data = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    data.append(KEY, VALUE, timestamp=0)
    marker = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, transactional=True, control=True))
    marker.append_control(ControlType.ABORT, EndTxnMarker(), timestamp=0)
    batches = list(read_batches(data.build() + marker.build()))
    assert list(decode_batches(OFFSETS, batches)) == [
        decode_record(OFFSETS, KEY, VALUE, producer_id=7),
        TransactionEnd(producer_id=7, committed=False),
    ]


def test_offsets_of_an_idempotent_producer_and_of_old_formats_are_in_no_transaction() -> None:
    new, old = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, base_sequence=0)), MessageSetBuilder(magic=1)
    for builder in (new, old):
        builder.append(KEY, VALUE, timestamp=0)
    assert list(decode_batches(OFFSETS, read_batches(new.build() + old.build()))) == [COMMIT, COMMIT]


def test_a_recorded_group_topic_adds_up_to_what_the_broker_listed() -> None:
    partitions = (each for each in LogDirectory(GROUP_LOGS).partitions if each.topic == OFFSETS)
    state = replay(record for each in partitions for record in decode_batches(OFFSETS, each.batches()))
    kinds = {name: group.kind for name, group in state.groups().items()}
    assert {"classic", "consumer", "share", "streams"} <= set(kinds.values())
    (listed,) = answers(ListTransactionsResponse)
    open_ones = {each.producer_id for each in listed.transaction_states if each.transaction_state == "Ongoing"}
    assert state.pending.keys() == open_ones


def test_records_of_frames_come_without_those_of_the_quorum() -> None:
    for name in ("__cluster_metadata-0", "__remote_log_metadata-0"):
        partition = Partition(TIERED_LOGS / name)
        records = list(decode_batches(partition.topic, partition.batches()))
        assert len(records) > 20
        assert all(isinstance(record, TopicRecord) for record in records)


def test_transactions_of_a_recorded_log() -> None:
    partition = Partition(LOGS / "__transaction_state-0")
    state = replay(decode_batches(partition.topic, partition.batches()))
    assert {*state.transactions()} == {"writer"}


INTERNAL = [
    each
    for folder in (LOGS, TIERED_LOGS, GROUP_LOGS)
    for each in LogDirectory(folder).partitions
    if each.topic.startswith("__")
]


def test_every_internal_topic_was_recorded() -> None:
    assert {each.topic for each in INTERNAL} == set(TOPICS)


@pytest.mark.parametrize("partition", INTERNAL, ids=lambda each: f"{each.path.parent.parent.name}/{each.path.name}")
def test_every_record_is_written_back_to_the_bytes_it_was_read_from(partition: Partition) -> None:
    batches = [batch for batch in partition.batches() if not (isinstance(batch, RecordBatch) and batch.is_control)]
    records = [record for batch in batches for record in batch]
    assert records
    for record in records:
        typed = decode_record(partition.topic, record.key, record.value)
        assert isinstance(typed, TopicRecord)
        assert encode_record(typed) == (record.key, record.value)
