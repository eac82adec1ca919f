"""Message sets of magic 0 and 1: handwritten bytes, and the effect of wrappers on offsets and timestamps."""

from __future__ import annotations

from zlib import crc32

import pytest

from kafka_msgs.errors import CompressionError, CorruptRecordError, CrcMismatchError
from kafka_msgs.records import CompressionType, LegacyBatch, MessageSetBuilder, Record, read_batches
from kafka_msgs.records.compression import compress
from kafka_msgs.records.legacy import encode_entry

CODECS = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]


def read_entry(data: bytes) -> LegacyBatch:
    (batch,) = read_batches(data)
    assert isinstance(batch, LegacyBatch)
    return batch


def wrapper(offset: int, magic: int, content: bytes, *, codec: int = 1, attributes: int = 0, time: int = 9) -> bytes:
    value = compress(CompressionType(codec), content, magic=magic)
    return encode_entry(offset, magic, attributes | codec, time, None, value)


def test_magic_0_by_hand() -> None:
    body = bytes.fromhex("00 00 00000001 6b ffffffff")
    data = bytes.fromhex("0000000000000005 0000000f") + crc32(body).to_bytes(4, "big") + body
    assert read_entry(data).records() == [Record(5, -1, b"k", None)]
    assert encode_entry(5, 0, 0, -1, b"k", None) == data


def test_magic_1_by_hand() -> None:
    body = bytes.fromhex("01 00 00000000000003e8 ffffffff 00000001 76")
    data = bytes.fromhex("0000000000000005 00000017") + crc32(body).to_bytes(4, "big") + body
    assert read_entry(data).records() == [Record(5, 1000, None, b"v")]
    assert encode_entry(5, 1, 0, 1000, None, b"v") == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_has_the_last_offset_and_the_latest_time(magic: int, codec: CompressionType) -> None:
    builder = MessageSetBuilder(magic=magic, codec=codec, base_offset=10)
    for number, time in enumerate([5, 9, 7]):
        builder.append(None, bytes([number]), timestamp=time if magic else -1, offset=10 + 2 * number)
    batch = read_entry(builder.build())
    assert (batch.offset, batch.max_timestamp, batch.codec) == (14, 9 if magic else -1, codec)
    assert [record.offset for record in batch] == [10, 12, 14]
    assert [record.timestamp for record in batch] == ([5, 9, 7] if magic else [-1, -1, -1])


def test_offsets_inside_magic_0_are_absolute() -> None:
    inner = encode_entry(7, 0, 0, -1, None, b"a") + encode_entry(9, 0, 0, -1, None, b"b")
    assert [record.offset for record in read_entry(wrapper(9, 0, inner))] == [7, 9]


def test_offsets_inside_magic_1_count_from_the_wrappers() -> None:
    inner = encode_entry(0, 1, 0, 5, None, b"a") + encode_entry(3, 1, 0, 6, None, b"b")
    assert [record.offset for record in read_entry(wrapper(103, 1, inner))] == [100, 103]


def test_a_wrapper_that_no_broker_has_seen_starts_at_0() -> None:
    inner = encode_entry(0, 1, 0, 5, None, b"a") + encode_entry(1, 1, 0, 6, None, b"b")
    assert [record.offset for record in read_entry(wrapper(0, 1, inner))] == [0, 1]


def test_a_wrapper_below_what_it_holds_is_corrupt() -> None:
    inner = encode_entry(5, 1, 0, 5, None, b"a")
    with pytest.raises(CorruptRecordError, match="the last offset inside is 5"):
        read_entry(wrapper(4, 1, inner)).records()


def test_the_brokers_time_of_a_wrapper_is_that_of_all_inside() -> None:
    inner = encode_entry(0, 1, 0, 5, None, b"a") + encode_entry(1, 1, 0, 6, None, b"b")
    batch = read_entry(wrapper(1, 1, inner, attributes=8, time=99))
    assert [record.timestamp for record in batch] == [99, 99]


def test_magic_0_inside_magic_1_is_read() -> None:
    inner = encode_entry(0, 0, 0, -1, None, b"a")
    assert read_entry(wrapper(8, 1, inner)).records() == [Record(8, -1, None, b"a")]


def test_an_entry_inside_that_is_not_whole_ends_the_set() -> None:
    inner = encode_entry(0, 1, 0, 5, None, b"a")
    batch = read_entry(wrapper(0, 1, inner + inner[:-1]))
    assert len(batch.records()) == 1


WRONG_INSIDE = [
    (b"", "the compressed set has no messages"),
    (wrapper(0, 1, encode_entry(0, 1, 0, 5, None, b"a")), "a compressed set inside a compressed set"),
    (encode_entry(0, 1, 0, 5, None, b"a")[:16] + b"\2" + bytes(30), "the format 2 inside a message set"),
    (encode_entry(0, 1, 0, 5, b"kk", b"a").replace(b"\0\0\0\2kk", b"\0\0\1\0kk"), "the key has the length 256"),
    (encode_entry(0, 1, 0, 5, b"kk", b"a").replace(b"\0\0\0\2kk", b"\xff\xff\xff\xfekk"), "the key has the length -2"),
    (encode_entry(0, 1, 0, 5, None, b"aa").replace(b"\0\0\0\2aa", b"\0\0\0\1aa"), "1 bytes left over after the value"),
    (bytes(8) + (14).to_bytes(4, "big") + bytes(4) + b"\1" + bytes(9), "too short for magic 1"),
]


@pytest.mark.parametrize(("content", "reason"), WRONG_INSIDE, ids=[each[1] for each in WRONG_INSIDE])
def test_a_wrapper_around_something_else_is_corrupt(content: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        read_entry(wrapper(0, 1, content)).records()


def test_a_wrapper_around_null_is_corrupt() -> None:
    with pytest.raises(CorruptRecordError, match="the compressed set is null"):
        read_entry(encode_entry(0, 1, 1, 5, None, None)).records()


@pytest.mark.parametrize("codec", [4, 5, 7])
def test_codecs_that_these_formats_lack_are_refused(codec: int) -> None:
    with pytest.raises(CompressionError) as caught:
        read_entry(encode_entry(0, 1, codec, 5, None, b"data")).records()
    assert caught.value.codec in ("zstd", codec)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_changed_byte_fails_the_checksum(magic: int) -> None:
    data = bytearray(encode_entry(3, magic, 0, 5, b"key", b"value"))
    data[-1] ^= 1
    with pytest.raises(CrcMismatchError) as caught:
        next(read_batches(data))
    assert (caught.value.position, caught.value.offset) == (0, 3)


@pytest.mark.parametrize("data", [b"", b"abc" * 50, bytes(200_000)])
def test_magic_0_has_the_check_byte_that_old_writers_computed(data: bytes) -> None:
    old, new = (compress(CompressionType.LZ4, data, magic=magic) for magic in (0, 1))
    assert old[:6] == new[:6]
    assert old[6] != new[6]
    assert old[7:] == new[7:]


def test_any_check_byte_is_read_in_magic_0_and_only_there() -> None:
    inner = encode_entry(0, 0, 0, -1, None, b"a")
    for check in (0x00, 0x82, 0xFF):
        frame = bytearray(compress(CompressionType.LZ4, inner))
        frame[6] = check ^ 0x01
        assert read_entry(encode_entry(0, 0, 3, -1, None, frame)).values() == [b"a"]
        with pytest.raises(CompressionError):
            read_entry(encode_entry(0, 1, 3, 5, None, frame)).records()
