"""Magic 2 batches byte by byte, the walk over a buffer, and error messages."""

from __future__ import annotations

import mmap
import pickle
from importlib.util import find_spec

import pytest

from kafka_msgs import RecordError
from kafka_msgs.errors import CorruptRecordError, CrcMismatchError, UnsupportedMagicError
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    LegacyBatch,
    MessageSetBuilder,
    Record,
    RecordBatch,
    TimestampType,
    read_batches,
)
from kafka_msgs.records.builder import replace_producer
from tests.support.batches import HEADER, by_hand, read_one, sealed

CODECS = [
    pytest.param(
        codec,
        marks=pytest.mark.skipif(
            codec > CompressionType.GZIP and not find_spec("cramjam"), reason="NOT RUN: no cramjam"
        ),
    )
    for codec in CompressionType
]

ONE_RECORD = "10 00 00 00 02 6b 02 76 00"
"""Length 8, attributes, timestamp delta 0, offset delta 0, key "k", value "v", no headers."""

NAMED = bytes.fromhex(
    "0000000000000064"  # base offset: 100
    "00000000 00000007"  # length, set by ``sealed``; partition leader epoch: 7
    "02 00000000"
    "0078"  # attributes: log append time, transactional, control, delete horizon
    "00000005"  # last offset delta
    "00000000000003e8 00000000000007d0"  # base and max timestamp: 1000, 2000
    "0000000000000009 0002 7ffffffe"  # producer 9, epoch 2, sequence 2147483646
    "00000000"  # no records
)


def test_header_fields_stand_where_the_format_has_them() -> None:
    batch = read_one(sealed(NAMED))
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.magic) == (100, 105, 7, 2)
    assert (batch.base_timestamp, batch.max_timestamp, batch.delete_horizon) == (1000, 2000, 1000)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 2, 2**31 - 2)
    assert (batch.is_transactional, batch.is_control, batch.codec) == (True, True, CompressionType.NONE)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (batch.count, batch.size, batch.records()) == (0, 61, [])


def test_sequence_numbers_start_again_after_the_highest() -> None:
    assert read_one(sealed(NAMED)).last_sequence == 3
    assert read_one(by_hand(ONE_RECORD)).last_sequence == -1


def test_one_record_by_hand() -> None:
    batch = read_one(by_hand(ONE_RECORD))
    assert batch.records() == [Record(0, 1000, b"k", b"v")]
    assert (batch.keys(), batch.values()) == ([b"k"], [b"v"])
    assert batch.delete_horizon is None


def test_records_with_null_empty_and_repeated_headers_by_hand() -> None:
    record = "2a 00 01 06 01 00 06 02 61 02 31 02 61 01 00 00"
    body = bytes.fromhex(record)
    body = bytes([2 * (len(body) - 1)]) + body[1:]
    headers = (("a", b"1"), ("a", None), ("", b""))
    assert read_one(by_hand(body.hex())).records() == [Record(3, 999, None, b"", headers)]


def test_header_names_that_are_not_utf8_keep_their_bytes() -> None:
    builder = BatchBuilder()
    builder.append(None, None, headers=[("caf\udce9", b"1")])
    data = builder.build()
    assert b"caf\xe9" in data
    assert read_one(data).records()[0].headers == (("caf\udce9", b"1"),)


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = read_one(by_hand("10 00 13 00 02 6b 02 76 00", attributes=8))
    assert [record.timestamp for record in batch] == [batch.max_timestamp] == [1000]


def test_bits_without_a_meaning_are_kept_and_ignored() -> None:
    batch = read_one(by_hand(ONE_RECORD, attributes=0xFF80 - 0x10000 & 0xFFFF))
    assert batch.records() == [Record(0, 1000, b"k", b"v")]
    assert batch.attributes == 0xFF80 - 0x10000


def a_batch(offset: int = 0) -> bytes:
    builder = BatchBuilder(BatchHeader(base_offset=offset))
    builder.append(b"key", b"value", timestamp=1)
    return builder.build()


def test_batches_of_all_formats_may_follow_each_other() -> None:
    old = MessageSetBuilder(magic=0, base_offset=0)
    old.append(b"0", b"zero")
    newer = MessageSetBuilder(magic=1, base_offset=1)
    newer.append(b"1", b"one", timestamp=5)
    found = list(read_batches(old.build() + newer.build() + a_batch(2)))
    assert [(batch.magic, batch.last_offset) for batch in found] == [(0, 0), (1, 1), (2, 2)]
    assert [type(batch) for batch in found] == [LegacyBatch, LegacyBatch, RecordBatch]
    assert [batch.position for batch in found] == [0, found[0].size, found[0].size + found[1].size]


@pytest.mark.parametrize("cut", [1, 12, 16, 17, 30, 60, 61, 70])
def test_a_partial_last_batch_is_left_and_counted(cut: int) -> None:
    whole = a_batch()
    reader = read_batches(whole + a_batch(1)[:cut])
    assert len(list(reader)) == 1
    assert (reader.position, reader.left) == (len(whole), cut)


def test_nothing_is_left_of_whole_batches_and_there_are_none_in_no_bytes() -> None:
    reader = read_batches(a_batch())
    assert len(list(reader)) == 1
    assert reader.left == 0
    assert list(read_batches(b"")) == []


def test_any_buffer_reads_alike() -> None:
    data = a_batch() + a_batch(1)
    expected = [record for batch in read_batches(data) for record in batch]
    with mmap.mmap(-1, len(data)) as mapped:
        mapped[:] = data
        for buffer in (bytearray(data), memoryview(data), memoryview(mapped)):
            assert [record for batch in read_batches(buffer) for record in batch] == expected
            if isinstance(buffer, memoryview):
                buffer.release()


def test_what_becomes_of_a_mutable_buffer_does_not_change_a_batch() -> None:
    buffer = bytearray(a_batch())
    (batch,) = read_batches(buffer)
    buffer[:] = bytes(len(buffer))
    assert batch.values() == [b"value"]


@pytest.mark.parametrize("codec", CODECS)
def test_views_are_of_the_bytes_that_were_read(codec: CompressionType) -> None:
    builder = BatchBuilder(codec=codec)
    builder.append(b"key", b"value", headers=[("name", b"content")])
    (record,) = read_one(builder.build(), zero_copy=True)
    contents = (record.key, record.value, record.headers[0][1])
    assert all(isinstance(each, memoryview) for each in contents)
    assert [bytes(each) for each in contents if each is not None] == [b"key", b"value", b"content"]


def test_a_changed_byte_fails_the_checksum_and_the_next_batch_is_read() -> None:
    data = bytearray(a_batch() + a_batch(1))
    data[70] ^= 1
    reader = read_batches(data)
    with pytest.raises(CrcMismatchError) as caught:
        next(reader)
    assert (caught.value.position, caught.value.offset) == (0, 0)
    assert caught.value.expected != caught.value.found
    assert f"the checksum is {caught.value.expected:08x}" in str(caught.value)
    assert [batch.last_offset for batch in reader] == [1]


def test_checksums_may_be_left_alone() -> None:
    data = bytearray(a_batch())
    data[17] ^= 1
    assert read_one(bytes(data), check_crc=False).values() == [b"value"]


def test_the_broker_may_rewrite_what_stands_before_the_checksum() -> None:
    data = bytearray(a_batch())
    data[0:8] = (500).to_bytes(8, "big")
    data[12:16] = (3).to_bytes(4, "big")
    assert [record.offset for record in read_one(bytes(data))] == [500]


@pytest.mark.parametrize("magic", [3, 127, 128, 255])
def test_an_unknown_format_is_an_error_and_the_next_batch_is_read(magic: int) -> None:
    data = bytearray(a_batch() + a_batch(1))
    data[16] = magic
    reader = read_batches(data)
    with pytest.raises(UnsupportedMagicError) as caught:
        next(reader)
    assert caught.value.magic == (magic if magic < 128 else magic - 256)
    assert [batch.last_offset for batch in reader] == [1]


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 13])
def test_a_size_that_no_batch_has_ends_the_walk_with_an_error(size: int) -> None:
    first = a_batch()
    broken = bytearray(a_batch(1))
    broken[8:12] = size.to_bytes(4, "big", signed=True)
    reader = read_batches(first + broken)
    next(reader)
    with pytest.raises(CorruptRecordError, match=f"a batch of {size} bytes") as caught:
        next(reader)
    assert (caught.value.position, caught.value.at, caught.value.offset) == (len(first), len(first) + 8, 1)
    assert list(reader) == []
    assert reader.left == len(broken)


def test_a_batch_shorter_than_its_header_is_an_error() -> None:
    with pytest.raises(CorruptRecordError, match="the header alone has 61"):
        next(read_batches(HEADER[:8] + (40).to_bytes(4, "big") + HEADER[12:52]))


BROKEN = [
    ("", 1, 61, 0, "1 records in 0 bytes"),
    (ONE_RECORD, -1, 57, None, "-1 records"),
    (ONE_RECORD, 2**31 - 1, 61, 0, "2147483647 records in 9 bytes"),
    (ONE_RECORD + "00", 1, 70, 1, "1 bytes left over after 1 records"),
    (ONE_RECORD, 2, 70, 1, "the length of the record does not end"),
    ("0f" + ONE_RECORD[2:], 1, 61, 0, "the record needs -8 bytes, 8 left"),
    ("12" + ONE_RECORD[2:], 1, 61, 0, "the record needs 9 bytes, 8 left"),
    ("0e" + ONE_RECORD[2:], 1, 69, 0, "the number of headers does not end"),
    ("12" + ONE_RECORD[2:] + "00", 1, 70, 0, "1 bytes left over in the record"),
    ("10 00 00 00 7e 6b 02 76 00", 1, 65, 0, "the key needs 63 bytes, 4 left in the record"),
    ("10 00 00 00 02 6b 06 76 00", 1, 67, 0, "the value needs 3 bytes, 2 left in the record"),
    ("0e 00 00 00 03 02 76 00", 1, 65, 0, "the key has the length -2"),
    ("10 00 00 00 02 6b 02 76 01", 1, 69, 0, "-1 headers, 0 bytes left"),
    ("10 00 00 00 02 6b 02 76 02", 1, 69, 0, "1 headers, 0 bytes left"),
    ("14 00 00 00 02 6b 02 76 02 01 00", 1, 70, 0, "a header's name has the length -1"),
    ("16 00 00 00 02 6b 02 76 02 02 61 08", 1, 72, 0, "a header's value needs 4 bytes, 0 left"),
    ("1a 00 00 ffffffff1f 02 6b 02 76 00 00", 1, 64, 0, "the offset is a varint of more than 32 bits"),
    ("1c 00 00 ffffffffff01 02 6b 02 76 00 00", 1, 64, 0, "the offset is a varint of more than 32 bits"),
    ("22 00 ffffffffffffffffff03 00 02 6b 02 76 00", 1, 63, 0, "the timestamp is a varint of more than 64 bits"),
]


@pytest.mark.parametrize(("records", "count", "at", "index", "reason"), BROKEN, ids=[each[4] for each in BROKEN])
def test_broken_records_are_named_with_their_place(
    records: str, count: int, at: int, index: int | None, reason: str
) -> None:
    batch = read_one(by_hand(records, count=count))
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        batch.records()
    assert (caught.value.at, caught.value.index, caught.value.position) == (at, index, 0)


def test_places_count_from_the_start_of_the_buffer() -> None:
    first = a_batch()
    for buffer in (first + by_hand(ONE_RECORD + "00"), bytearray(first + by_hand(ONE_RECORD + "00"))):
        _, broken = read_batches(buffer)
        with pytest.raises(CorruptRecordError) as caught:
            broken.records()
        assert (caught.value.position, caught.value.at) == (len(first), len(first) + 70)


def test_errors_say_where_and_survive_pickling() -> None:
    with pytest.raises(RecordError) as caught:
        read_one(by_hand(ONE_RECORD + "00")).records()
    text = "batch at byte 0, offset 0: record 1 at byte 70: 1 bytes left over after 1 records"
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value))) == text


def test_varints_as_long_as_they_may_be_are_read() -> None:
    batch = read_one(by_hand("22 00 feffffffffffffffff01 00 02 6b 02 76 00"))
    assert batch.records()[0].timestamp == 1000 + 2**63 - 1


@pytest.mark.parametrize("codec", CODECS)
def test_a_producer_may_be_known_only_when_the_batch_is_built(codec: CompressionType) -> None:
    header = BatchHeader(producer_id=9, producer_epoch=2, base_sequence=40, transactional=True)
    early, late = BatchBuilder(header, codec=codec), BatchBuilder(codec=codec)
    for builder in (early, late):
        for number in range(3):
            builder.append(b"k", b"v" * 50, timestamp=1000 + number)
    assert late.build(header) == early.build()


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_gets_another_producer_and_keeps_its_records(codec: CompressionType) -> None:
    header = BatchHeader(producer_id=9, producer_epoch=2, base_sequence=40, transactional=True)
    builder = BatchBuilder(header, codec=codec)
    for number in range(3):
        builder.append(b"k", b"v" * 50, timestamp=1000 + number)
    changed = read_one(replace_producer(builder.build(), 10, 3, 0))
    assert (changed.producer_id, changed.producer_epoch, changed.base_sequence) == (10, 3, 0)
    assert changed.is_transactional
    assert changed.records() == read_one(builder.build()).records()
