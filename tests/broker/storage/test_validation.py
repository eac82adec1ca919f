"""Batches that contradict their header, or that a client built badly: Kafka's log and this library's agree."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c

from kafka_msgs.binary_layouts import CRC_START, HEADER, HEADER_SIZE
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.records import BatchBuilder, CompressionType
from tests.broker.storage.lockstep import Lockstep
from tests.broker.storage.making import NOW, new_log
from tests.broker.storage.oracle import StorageOracle

CODECS = [CompressionType.NONE, CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD, CompressionType.SNAPPY]
BASE_TIME, MAX_TIME, COUNT, DELTA = 8, 9, 13, 7


def made(codec: CompressionType, *times: int, headers: tuple[tuple[str, bytes], ...] = ()) -> bytes:
    builder = BatchBuilder(codec=codec)
    for number, time in enumerate(times):
        builder.append(b"k%d" % number, b"v" * 40, timestamp=time, headers=headers)
    return bytes(builder.build())


def patched(data: bytes, fields: dict[int, int], body: Callable[[bytes], bytes] = bytes) -> bytes:
    """Change header fields by index, and the bytes after the header. Length and checksum are recomputed."""
    values, rest = list(HEADER.unpack_from(data)), body(data[HEADER_SIZE:])
    for at, value in fields.items():
        values[at - 1] = value
    values[1] = HEADER_SIZE - 12 + len(rest)
    head = HEADER.pack(*values)
    values[4] = crc32c(rest, crc32c(head[CRC_START:]))
    return HEADER.pack(*values) + rest


def flipped(rest: bytes) -> bytes:
    return rest[:12] + bytes(each ^ 0x5A for each in rest[12:20]) + rest[20:]


def cases(codec: CompressionType) -> dict[str, bytes]:
    three = made(codec, NOW, NOW + 5, NOW + 3)
    return {
        "sound": three,
        "max timestamp -1": patched(three, {MAX_TIME: -1}),
        "max timestamp too small": patched(three, {MAX_TIME: NOW}),
        "max timestamp too large": patched(three, {MAX_TIME: NOW + 1000}),
        "max timestamp far ahead": patched(three, {MAX_TIME: NOW + 10**12}),
        "one record without a time": made(codec, -1),
        "records without a time and one with": made(codec, -1, NOW, -1),
        "more records than there are": patched(three, {COUNT: 4, DELTA: 3}),
        "fewer records than there are": patched(three, {COUNT: 2, DELTA: 1}),
        "headers": made(codec, NOW, headers=(("name", b"value"),)),
        "damaged bytes": patched(three, {}, flipped),
        "bytes that end early": patched(three, {}, lambda rest: rest[:-6]),
    }


def null_header_name() -> bytes:
    data = made(CompressionType.NONE, NOW, headers=(("name", b"value"),))
    return patched(data, {}, lambda rest: _shorter(rest.replace(b"\x08name", b"\x01")))


def _shorter(rest: bytes) -> bytes:
    """Return the first record with an updated length. Lengths are zigzag varints of one or two bytes."""
    at = 1 if rest[0] < 0x80 else 2
    length = 2 * (len(rest) - at)
    return bytes([length & 0x7F | 0x80, length >> 7] if length > 0x7F else [length]) + rest[at:]


CONFIG = {"message.timestamp.after.max.ms": "3600000", "segment.bytes": str(2**20)}


@pytest.mark.parametrize("codec", CODECS)
def test_kafkas_log_and_ours_take_and_refuse_the_same(
    codec: CompressionType, kafka_log: StorageOracle, tmp_path: Path
) -> None:
    logs = Lockstep(kafka_log, tmp_path)
    logs.run(do="open", config=CONFIG, now=NOW, expiration=3_600_000)
    for data in cases(codec).values():
        logs.run(do="append", data=base64.b64encode(data).decode(), leader_epoch=0, now=NOW + 10, produce_version=12)
        for time in (-3, NOW, NOW + 4, NOW + 100):
            logs.run(do="time", timestamp=time)
    logs.run(do="close")
    logs.compare_files()


def test_a_header_without_a_name_is_refused(kafka_log: StorageOracle, tmp_path: Path) -> None:
    logs = Lockstep(kafka_log, tmp_path)
    logs.run(do="open", config=CONFIG, now=NOW, expiration=3_600_000)
    answer = logs.run(do="append", data=base64.b64encode(null_header_name()).decode(), leader_epoch=0, now=NOW)
    assert answer["error"] == ErrorCode.INVALID_RECORD
    logs.run(do="close")


def test_a_batch_that_grows_beyond_all_bounds_is_refused() -> None:
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join(packer.compress(bytes(2**20)) for _ in range(200)) + packer.flush()
    data = patched(made(CompressionType.GZIP, NOW), {}, lambda rest: body)
    with pytest.raises(RequestRefusedError) as refused:
        new_log(max_message_bytes=2**24).append(data, leader_epoch=0, now=NOW)
    assert refused.value.error == ErrorCode.MESSAGE_TOO_LARGE
