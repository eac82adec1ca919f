"""Records of internal topics: keys and frames, unknown types, tombstones, and rejected records."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from attrs import evolve

from kafka_msgs import (
    DecodeError,
    EncodeError,
    GroupMetadataKey,
    KafkaMsgsError,
    NoOpRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetFetchRequest,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    TransactionLogKey,
    TransactionLogValue,
    UnsupportedVersionError,
)
from kafka_msgs.errors import InvalidVarintError, TruncatedError, UnexpectedNullError, UnknownInternalTopicError
from kafka_msgs.internal_topics.records import TOPICS, TopicRecord, UnknownRecord, decode_record, encode_record
from kafka_msgs.messages import API_KEYS
from tests.support.internal_records import TYPES, mutated, random_bytes, random_records

OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
SHARES = "__share_group_state"
METADATA = "__cluster_metadata"
REMOTE = "__remote_log_metadata"

KEY = OffsetCommitKey(group="billing", topic="orders", partition=2)
KEY_BYTES = bytes.fromhex("0001 0007 62696c6c696e67 0006 6f7264657273 00000002")
VALUE = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9)
VALUE_BYTES = bytes.fromhex("0003 0000000000000007 ffffffff 0001 6d 0000000000000009")
COMMIT = TopicRecord(topic=OFFSETS, key=KEY, value=VALUE, version=3)

SHARE_KEY = ShareUpdateKey(group_id="p", topic_id=UUID(int=1), partition=0)
SHARE_KEY_BYTES = bytes.fromhex("0001 0001 70 00000000000000000000000000000001 00000000")
SHARE_UPDATE = ShareUpdateValue(snapshot_epoch=1, leader_epoch=2, start_offset=3)
SHARE_UPDATE_BYTES = bytes.fromhex("0000 00000001 00000002 0000000000000003 01 00")


def test_every_record_type_of_the_release_belongs_to_a_topic() -> None:
    kinds = {"metadata", "coordinator-key"}
    assert len(TYPES) == sum(kind in kinds for _, kind, _ in API_KEYS) > 50
    assert {topic for topic, _ in TYPES} == set(TOPICS)


def test_offset_commit_is_read_from_its_key_and_value_and_written_back() -> None:
    assert decode_record(OFFSETS, KEY_BYTES, VALUE_BYTES) == COMMIT
    assert encode_record(COMMIT) == (KEY_BYTES, VALUE_BYTES)


@pytest.mark.parametrize("buffer", [bytearray, memoryview])
def test_key_and_value_may_be_any_buffer(buffer: type[bytearray] | type[memoryview]) -> None:
    assert decode_record(OFFSETS, buffer(KEY_BYTES), buffer(VALUE_BYTES)) == COMMIT


def test_record_without_a_value_is_a_tombstone() -> None:
    record = decode_record(OFFSETS, KEY_BYTES, None)
    assert record == TopicRecord(topic=OFFSETS, key=KEY, value=None, version=None)
    assert encode_record(record) == (KEY_BYTES, None)


def test_no_op_is_the_shortest_frame() -> None:
    record = decode_record(METADATA, None, bytes.fromhex("01140000"))
    assert record == TopicRecord(topic=METADATA, value=NoOpRecord(), version=0)
    assert encode_record(record) == (None, bytes.fromhex("01140000"))


def test_a_record_remembers_its_producer() -> None:
    record = decode_record(OFFSETS, KEY_BYTES, VALUE_BYTES, producer_id=4000)
    assert record.producer_id == 4000
    assert encode_record(record) == (KEY_BYTES, VALUE_BYTES)


@pytest.mark.parametrize(("topic", "number"), TYPES)
def test_every_type_at_every_version_reads_back_as_written(topic: str, number: int) -> None:
    for record in random_records(topic, number, 1, each=5):
        key, value = encode_record(record)
        assert decode_record(topic, key, value) == record
        assert decode_record(topic, key, None if key else value) == (
            evolve(record, value=None, version=None) if key else record
        )


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        (OFFSETS, "0009 0001 61", "0000 00"),
        (OFFSETS, "7fff", None),
        (OFFSETS, "ffff 00", "00"),
        (TRANSACTIONS, "0001 0001 61", "0000"),
        (SHARES, "0002 00", "0000"),
        (METADATA, None, "01 06 00 00"),
        (METADATA, None, "01 ffff01 ffff01"),
        (REMOTE, None, "01 04 00 00"),
    ],
)
def test_record_of_an_unknown_type_is_kept_as_it_is(topic: str, key: str | None, value: str | None) -> None:
    raw_key, raw_value = (None if text is None else bytes.fromhex(text) for text in (key, value))
    record = decode_record(topic, raw_key, raw_value)
    assert isinstance(record, UnknownRecord)
    assert encode_record(record) == (raw_key, raw_value)
    assert raw_key is None or record.record_type == int.from_bytes(raw_key[:2], "big", signed=True)


def test_unknown_frame_type_is_named_by_its_number() -> None:
    assert decode_record(METADATA, None, bytes.fromhex("01 ffff01 00")) == UnknownRecord(
        topic=METADATA, record_type=32767, value=bytes.fromhex("01ffff0100")
    )


def test_share_updates_carry_version_0_and_no_other() -> None:
    """The key's number, 1, once also preceded the value; no release wrote it."""
    record = TopicRecord(topic=SHARES, key=SHARE_KEY, value=SHARE_UPDATE, version=0)
    assert encode_record(record) == (SHARE_KEY_BYTES, SHARE_UPDATE_BYTES)
    assert decode_record(SHARES, SHARE_KEY_BYTES, SHARE_UPDATE_BYTES) == record
    with pytest.raises(UnsupportedVersionError, match="ShareUpdateValue has no version 1; it has 0"):
        decode_record(SHARES, SHARE_KEY_BYTES, b"\0\1" + SHARE_UPDATE_BYTES[2:])


REFUSED_BYTES = [
    (OFFSETS, None, "00", UnexpectedNullError, "__consumer_offsets: key at byte 0: null"),
    (OFFSETS, "00", "00", TruncatedError, "__consumer_offsets: key at byte 0: a record type needs 2 bytes, 1 left"),
    (
        OFFSETS,
        "0001 0007 62",
        "00",
        TruncatedError,
        "OffsetCommitKey v0: group at byte 4: string needs 7 bytes, 1 left",
    ),
    (OFFSETS, "0002 0001 61 ff", None, DecodeError, "GroupMetadataKey v0: at byte 5: 1 bytes left over"),
    (OFFSETS, "0002 0001 61", "00", TruncatedError, "GroupMetadataValue: at byte 0: a version needs 2 bytes, 1 left"),
    (OFFSETS, "0002 0001 61", "0005", UnsupportedVersionError, "GroupMetadataValue has no version 5; it has 0-4"),
    (METADATA, "00", "01140000", DecodeError, "__cluster_metadata: key at byte 0: records of this topic have no key"),
    (METADATA, None, None, UnexpectedNullError, "__cluster_metadata: value at byte 0: null"),
    (METADATA, None, "", TruncatedError, "__cluster_metadata: frame version at byte 0: the bytes end within a varint"),
    (METADATA, None, "00140000", UnsupportedVersionError, "__cluster_metadata frame has no version 0; it has 1"),
    (METADATA, None, "02140000", UnsupportedVersionError, "__cluster_metadata frame has no version 2; it has 1"),
    (METADATA, None, "01", TruncatedError, "__cluster_metadata: api key at byte 1: the bytes end within a varint"),
    (METADATA, None, "01 808002 00", InvalidVarintError, "api key at byte 1: 32768 is more than 32767"),
    (METADATA, None, "01 ffffffffff", InvalidVarintError, "api key at byte 1: varint of more than five bytes"),
    (METADATA, None, "01 14 01 00", UnsupportedVersionError, "NoOpRecord has no version 1; it has 0"),
    (METADATA, None, "01 14 00 00 aa", DecodeError, "NoOpRecord v0: at byte 4: 1 bytes left over"),
]


@pytest.mark.parametrize(("topic", "key", "value", "error", "text"), REFUSED_BYTES)
def test_bytes_that_are_not_a_record_are_refused_with_their_place(
    topic: str, key: str | None, value: str | None, error: type[KafkaMsgsError], text: str
) -> None:
    raw_key, raw_value = (None if data is None else bytes.fromhex(data) for data in (key, value))
    with pytest.raises(error) as refused:
        decode_record(topic, raw_key, raw_value)
    assert text in str(refused.value)


REFUSED_RECORDS = [
    (evolve(COMMIT, key=None), "records of this topic have a key"),
    (evolve(COMMIT, version=None), "the version of the value is missing"),
    (evolve(COMMIT, key=GroupMetadataKey(group="g")), "OffsetCommitValue is not a value of GroupMetadataKey"),
    (evolve(COMMIT, key=TransactionLogKey(transactional_id="t")), "TransactionLogKey is not a key of this topic"),
    (evolve(COMMIT, key=OffsetFetchRequest(group_id="g")), "OffsetFetchRequest is not a key of this topic"),
    (evolve(COMMIT, value=ShareSnapshotValue()), "ShareSnapshotValue is not a value of OffsetCommitKey"),
    (evolve(COMMIT, key=None, topic=METADATA), "OffsetCommitValue is not a message of this topic"),
    (TopicRecord(topic=METADATA, key=KEY, value=NoOpRecord(), version=0), "have a value and no key"),
    (TopicRecord(topic=METADATA), "have a value and no key"),
    (TopicRecord(topic=REMOTE, value=NoOpRecord(), version=0), "NoOpRecord is not a message of this topic"),
]


@pytest.mark.parametrize(("record", "text"), REFUSED_RECORDS, ids=[text for _, text in REFUSED_RECORDS])
def test_what_does_not_belong_together_is_not_written(record: TopicRecord, text: str) -> None:
    with pytest.raises(EncodeError) as refused:
        encode_record(record)
    assert text in str(refused.value)
    assert "vNone" not in str(refused.value)


def test_version_that_the_value_lacks_is_not_written() -> None:
    with pytest.raises(UnsupportedVersionError, match="OffsetCommitValue has no version 5"):
        encode_record(evolve(COMMIT, version=5))


def test_transaction_state_at_its_two_versions() -> None:
    value = TransactionLogValue(producer_id=1, transaction_partitions=None)
    record = TopicRecord(topic=TRANSACTIONS, key=TransactionLogKey(transactional_id="t"), value=value, version=0)
    for version, size in ((0, 37), (1, 35)):
        key, data = encode_record(evolve(record, version=version))
        assert key == bytes.fromhex("0000 0001 74")
        assert data is not None
        assert (data[:2], len(data)) == (version.to_bytes(2, "big"), size)


@pytest.mark.parametrize(
    "call", [lambda: decode_record("orders", b"", b""), lambda: encode_record(evolve(COMMIT, topic="orders"))]
)
def test_other_topics_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(UnknownInternalTopicError, match="'orders' is not an internal topic"):
        call()


def test_mutated_records_end_in_a_record_or_in_an_error_of_the_library() -> None:
    rng = Random(4)
    outcomes = {"refused": 0, "read": 0}
    for record, (key, value) in random_bytes(3, each=2):
        for _ in range(20):
            bad_key = key and mutated(key, rng) if rng.random() < 0.3 else key
            bad_value = value and mutated(value, rng)
            try:
                found = encode_record(decode_record(record.topic, bad_key, bad_value))
            except KafkaMsgsError:
                outcomes["refused"] += 1
            else:
                outcomes["read"] += 1
                assert encode_record(decode_record(record.topic, *found)) == found
    assert min(outcomes.values()) > 200
