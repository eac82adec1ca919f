"""Batches compared with Kafka's own classes, both ways: every format, compression and attribute."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs import EndTxnMarker, RecordError
from kafka_msgs.records import (
    BatchBuilder,
    CompressionType,
    ControlType,
    MessageSetBuilder,
    RecordBatch,
    read_batches,
)
from kafka_msgs.records.compression import compress
from tests.oracle import Oracle, OracleReject
from tests.support.batches import BatchSpec, base64, by_hand, described, sealed
from tests.support.control_records import MESSAGES, control_batch
from tests.support.damaged_batches import mutated, samples
from tests.support.kafka_batches import as_kafka_prints, kafka_reads

pytestmark = pytest.mark.oracle


def kafka_writes(oracle: Oracle, batch: dict[str, Any]) -> bytes:
    (data,) = oracle.write_batch_many([batch])
    if isinstance(data, OracleReject):
        raise data
    return data


@settings(max_examples=60, deadline=None)
@given(st.lists(described(0, 1, 2), min_size=1, max_size=3))
def test_kafka_reads_what_is_written_here(oracle: Oracle, batches: list[BatchSpec]) -> None:
    data = b"".join(batch.written() for batch in batches)
    assert kafka_reads(oracle, data) == [as_kafka_prints(batch) for batch in read_batches(data)]


@settings(max_examples=60, deadline=None)
@given(described(0, 1, 2))
def test_what_kafka_writes_is_read_here(oracle: Oracle, batch: BatchSpec) -> None:
    data = kafka_writes(oracle, batch.for_kafka())
    assert kafka_reads(oracle, data) == [as_kafka_prints(each) for each in read_batches(data)]
    found = [record for each in read_batches(data) for record in each]
    assert found == batch.expected()


@settings(max_examples=40, deadline=None)
@given(described(0, 1, 2))
def test_uncompressed_batches_are_the_same_bytes(oracle: Oracle, batch: BatchSpec) -> None:
    plain = BatchSpec(
        batch.magic, CompressionType.NONE, batch.records, batch.base_offset, batch.log_append_timestamp, batch.header
    )
    assert plain.written() == kafka_writes(oracle, plain.for_kafka())


LARGE = [bytes([number % 251]) * 300 + number.to_bytes(4, "big") * 50 for number in range(2000)]
PAIRS = [
    (magic, codec) for magic in (0, 1, 2) for codec in CompressionType if magic == 2 or codec != CompressionType.ZSTD
]


@pytest.mark.parametrize(("magic", "codec"), PAIRS)
def test_a_megabyte_of_every_codec_is_read_by_both(oracle: Oracle, magic: int, codec: CompressionType) -> None:
    builder: Any = BatchBuilder(codec=codec) if magic == 2 else MessageSetBuilder(magic=magic, codec=codec)
    for value in LARGE:
        builder.append(None, value)
    written = builder.build()
    theirs = [record["value"] for batch in kafka_reads(oracle, written) for record in batch["records"]]
    assert theirs == [base64(value) for value in LARGE]
    described_records: list[dict[str, Any]] = [
        {"offset": offset, "timestamp": -1, "key": None, "value": base64(value), "headers": []}
        for offset, value in enumerate(LARGE)
    ]
    request = BatchSpec(magic, codec, ()).for_kafka() | {"records": described_records}
    found = [record.value for batch in read_batches(kafka_writes(oracle, request)) for record in batch]
    assert found == LARGE


@pytest.mark.parametrize("kind", ControlType)
def test_control_records_are_the_same_to_both(oracle: Oracle, kind: ControlType) -> None:
    data = control_batch(kind, MESSAGES[kind])
    ((record,),) = (batch["records"] for batch in kafka_reads(oracle, data))
    assert record["type"] == kind.name
    message = MESSAGES[kind]
    if isinstance(message, EndTxnMarker):
        assert record["coordinator_epoch"] == message.coordinator_epoch
    request = BatchSpec(2, CompressionType.NONE, (), 9, None, {"producer_id": 1, "producer_epoch": 0}).for_kafka()
    asked = {"type": kind.name, "timestamp": 1000, "value": record["value"]}
    if isinstance(message, EndTxnMarker):
        asked["coordinator_epoch"] = message.coordinator_epoch
    transactional = isinstance(message, EndTxnMarker)
    request |= {"is_control": True, "is_transactional": transactional, "records": [asked]}
    (theirs,) = read_batches(kafka_writes(oracle, request))
    assert isinstance(theirs, RecordBatch)
    (found,) = theirs.control_records()
    assert (found.type, found.message) == (kind, message)


def test_damage_is_refused_by_both(oracle: Oracle) -> None:
    data = bytearray(control_batch(ControlType.COMMIT, MESSAGES[ControlType.COMMIT]))
    data[-1] ^= 1
    with pytest.raises(OracleReject, match=r"CorruptRecordException|Record is corrupt"):
        kafka_reads(oracle, bytes(data))


RECORD = bytes.fromhex("10 00 00 00 02 6b 02 76 00")


def compressed(codec: CompressionType, content: bytes, count: int = 1) -> bytes:
    return by_hand(content.hex(), count=count, attributes=codec)


def entry(body: str) -> bytes:
    content = bytes.fromhex(body)
    return bytes(8) + (len(content) + 4).to_bytes(4, "big") + crc32(content).to_bytes(4, "big") + content


def lz4_frame(content: bytes, **options: bool) -> bytearray:
    work = cramjam.lz4.Compressor(**options)
    work.compress(content)
    return bytearray(work.finish())


def with_wrong_checksum() -> bytes:
    frame = lz4_frame(RECORD, content_checksum=True, block_linked=False)
    frame[-1] ^= 1
    return bytes(frame)


ONLY_KAFKA = {
    "integer of 33 bits": by_hand("18 00 00 00 8280808010 6b 02 76 00"),
    "timestamp of 65 bits": by_hand("22 00 ffffffffffffffffff03 00 02 6b 02 76 00"),
    "length of -2": by_hand("0e 00 00 00 03 02 76 00"),
    "length of -2 in a message": entry("0000 fffffffe 00000001 76"),
    "bytes after the value of a message": entry("0000 ffffffff 00000001 76 aabb"),
    "bytes after gzip data": compressed(CompressionType.GZIP, compress(CompressionType.GZIP, RECORD) + b"more"),
    "bytes after lz4 data": compressed(CompressionType.LZ4, compress(CompressionType.LZ4, RECORD) + b"more"),
    "wrong checksum of lz4 content": compressed(CompressionType.LZ4, with_wrong_checksum()),
}


@pytest.mark.parametrize("name", ONLY_KAFKA)
def test_what_only_kafka_reads_is_refused_here(oracle: Oracle, name: str) -> None:
    data = ONLY_KAFKA[name]
    assert len(kafka_reads(oracle, data)[0]["records"]) == 1
    with pytest.raises(RecordError):
        [batch.records() for batch in read_batches(data)]


ONLY_HERE = {
    "lz4 blocks that depend on each other": (lz4_frame(RECORD * 20_000, block_linked=True), 20_000),
    "lz4 frames after each other": (compress(CompressionType.LZ4, RECORD) * 2, 2),
}


@pytest.mark.parametrize("name", ONLY_HERE)
def test_what_kafka_refuses_and_is_read_here(oracle: Oracle, name: str) -> None:
    content, count = ONLY_HERE[name]
    data = compressed(CompressionType.LZ4, bytes(content), count)
    with pytest.raises(OracleReject):
        kafka_reads(oracle, data)
    assert [len(batch.records()) for batch in read_batches(data)] == [count]


@pytest.mark.parametrize(
    "content", [bytes(cramjam.snappy.compress_raw(RECORD)), compress(CompressionType.SNAPPY, RECORD)]
)
def test_both_read_snappy_with_and_without_a_frame(oracle: Oracle, content: bytes) -> None:
    data = compressed(CompressionType.SNAPPY, content)
    assert kafka_reads(oracle, data) == [as_kafka_prints(batch) for batch in read_batches(data)]


def damaged(chance: random.Random) -> Iterator[bytes]:
    """Yield magic 2 batches with changed records or headers and a correct checksum."""
    for sample in samples():
        if sample[16] != 2:
            continue
        for _ in range(60):
            head, body = bytearray(sample[:61]), sample[61:]
            if chance.random() < 0.3:
                head[chance.choice([21, 22, 23, 26, 27, 34, 43, 50, 52, 56, 60])] = chance.choice(
                    [0, 1, 8, 32, 64, 255]
                )
            yield sealed(bytes(head) + (mutated(body, chance) if chance.random() < 0.8 else body))


def read_here(data: bytes) -> list[dict[str, Any]] | None:
    """Return this library's reading, or None if it rejects the data; header names as Kafka converts them to text."""
    try:
        batches = [as_kafka_prints(batch) for batch in read_batches(data)]
        for each in read_batches(data):
            assert isinstance(each, RecordBatch)
            each.control_records()
    except RecordError:
        return None
    for batch in batches:
        for record in batch["records"]:
            for header in record["headers"]:
                header[0] = header[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return batches


def test_damaged_batches_that_are_read_here_are_read_alike_by_kafka(oracle: Oracle) -> None:
    accepted = 0
    for data in damaged(random.Random(5)):
        mine = read_here(data)
        if mine is not None:
            theirs = kafka_reads(oracle, data)
            for record in theirs[0]["records"]:
                record.pop("type", None)
                record.pop("coordinator_epoch", None)
            assert mine == theirs, data.hex()
            accepted += 1
    assert accepted > 50
