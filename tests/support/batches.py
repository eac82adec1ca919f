"""Test batches: Hypothesis draws their descriptions, and both this library and Kafka write them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from attrs import Factory, frozen
from hypothesis import strategies as st

from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    MessageSetBuilder,
    ReadOptions,
    Record,
    RecordBatch,
    read_batches,
)

BORDERS: Final = (0, 1, 62, 63, 64, 65, 127, 128, 8190, 8191, 8192, 8193)
"""Sizes around which a zigzag varint grows by one byte."""

HEADER: Final = bytes.fromhex(
    "0000000000000000"  # base offset
    "0000003a"  # bytes after this field: 49 of header, 9 of records
    "ffffffff"  # partition leader epoch
    "02"  # magic
    "00000000"  # checksum, set by ``sealed``
    "0000"  # attributes
    "00000000"  # last offset delta
    "00000000000003e8"  # base timestamp: 1000
    "00000000000003e8"  # max timestamp: 1000
    "ffffffffffffffff"  # producer id
    "ffff"  # producer epoch
    "ffffffff"  # base sequence
    "00000001"  # number of records
)


@frozen
class BatchSpec:
    """Description of one batch: header fields and records."""

    magic: int
    codec: CompressionType
    records: tuple[Record, ...]
    base_offset: int = 0
    log_append_timestamp: int | None = None
    header: dict[str, Any] = Factory(dict)

    def written(self) -> bytes:
        """Return the batch as this library writes it."""
        common: dict[str, Any] = {"base_offset": self.base_offset, "log_append_timestamp": self.log_append_timestamp}
        if self.magic < 2:
            entries = MessageSetBuilder(magic=self.magic, codec=self.codec, **common)
            for record in self.records:
                entries.append(record.key, record.value, timestamp=record.timestamp, offset=record.offset)
            return entries.build()
        builder = BatchBuilder(BatchHeader(**common, **self.header), codec=self.codec)
        for record in self.records:
            assert builder.append(
                record.key, record.value, timestamp=record.timestamp, headers=record.headers, offset=record.offset
            )
        return builder.build()

    def expected(self) -> list[Record]:
        """Return the records as a reader sees them: with the broker's time, if set, instead of their own."""
        if self.log_append_timestamp is None:
            return list(self.records)
        time = self.log_append_timestamp
        return [Record(each.offset, time, each.key, each.value, each.headers) for each in self.records]

    def for_kafka(self) -> dict[str, Any]:
        """Return the batch as a command for Kafka's builder."""
        header = self.header
        appended = self.log_append_timestamp
        return {
            "magic": self.magic,
            "codec": int(self.codec),
            "timestamp_type": 0 if appended is None else 1,
            "base_offset": self.base_offset,
            "log_append_time": -1 if appended is None else appended,
            "producer_id": header.get("producer_id", -1),
            "producer_epoch": header.get("producer_epoch", -1),
            "base_sequence": header.get("base_sequence", -1),
            "is_transactional": header.get("transactional", False),
            "is_control": False,
            "partition_leader_epoch": header.get("partition_leader_epoch", -1),
            "delete_horizon": header.get("delete_horizon", -1),
            "records": [record_for_kafka(record) for record in self.records],
        }


def base64(content: Any) -> str | None:
    """Return bytes as in Kafka's JSON."""
    return None if content is None else b64encode(content).decode()


def record_for_kafka(record: Record) -> dict[str, Any]:
    """Return a record in the oracle's format."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": base64(record.key),
        "value": base64(record.value),
        "headers": [[name, base64(value)] for name, value in record.headers],
    }


def read_one(data: bytes, **options: Any) -> RecordBatch:
    """Return the only batch of ``data``; its magic is 2."""
    (batch,) = read_batches(data, ReadOptions(**options))
    assert isinstance(batch, RecordBatch)
    return batch


def sealed(data: bytes | bytearray) -> bytes:
    """Return a magic 2 batch with its length and checksum corrected; other faults stay."""
    batch = read_one(bytes(data[:8]) + (len(data) - 12).to_bytes(4, "big") + data[12:], check_crc=False)
    whole = bytearray(batch.stored_bytes)
    whole[17:21] = batch.computed_crc().to_bytes(4, "big")
    return bytes(whole)


def by_hand(records: str, *, count: int = 1, attributes: int = 0) -> bytes:
    """Return a batch of records given in hexadecimal, under a matching header."""
    data = bytearray(HEADER + bytes.fromhex(records))
    data[21:23] = attributes.to_bytes(2, "big")
    data[57:61] = count.to_bytes(4, "big", signed=True)
    return sealed(data)


times = st.integers(0, 2**42) | st.sampled_from([0, 63, 64, 8191, 8192, 2**41])
contents = st.none() | st.binary(max_size=10) | st.sampled_from(BORDERS).map(lambda size: b"x" * size)
names = st.text(st.characters(codec="utf-8"), max_size=10)


@st.composite
def records(draw: st.DrawFn, base_offset: int, magic: int) -> tuple[Record, ...]:
    """Draw a few records, with gaps between their offsets, repeated header names, and nulls."""
    offset, made = base_offset, []
    for _ in range(draw(st.integers(1, 5))):
        offset += draw(st.sampled_from([0, 0, 0, 1, 63, 9000]))
        headers = draw(st.lists(st.tuples(names | st.just("same"), contents), max_size=3)) if magic == 2 else []
        time = draw(times) if magic else -1
        made.append(Record(offset, time, draw(contents), draw(contents), tuple(headers)))
        offset += 1
    return tuple(made)


@st.composite
def described(draw: st.DrawFn, *magics: int) -> BatchSpec:
    """Draw a batch of one of ``magics``, with every attribute that its format supports."""
    magic = draw(st.sampled_from(magics))
    codec = draw(st.sampled_from([each for each in CompressionType if magic == 2 or each != CompressionType.ZSTD]))
    base = draw(st.sampled_from([0, 1, 2**31, 2**53]))
    appended = draw(st.none() | times) if magic else None
    header = draw(headers_of_batches()) if magic == 2 else {}
    return BatchSpec(magic, codec, draw(records(base, magic)), base, appended, header)


@st.composite
def headers_of_batches(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid combination of magic 2 header fields."""
    header: dict[str, Any] = {"partition_leader_epoch": draw(st.sampled_from([-1, 0, 2**31 - 1]))}
    if draw(st.booleans()):
        header["delete_horizon"] = draw(times)
    if draw(st.booleans()):
        header["producer_id"] = draw(st.sampled_from([0, 2**63 - 1]))
        header["producer_epoch"] = draw(st.sampled_from([0, 2**15 - 1]))
        header["base_sequence"] = draw(st.sampled_from([0, 2**31 - 1]))
        header["transactional"] = draw(st.booleans())
    return header
