"""Redacted batches: valid, of the same size, and without the secret, for every compression."""

from __future__ import annotations

import random

import pytest

from kafka_msgs.messages.end_txn_marker import EndTxnMarker
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    ControlType,
    MessageSetBuilder,
    RecordBatch,
    read_batches,
)
from kafka_msgs.redaction import redact_records

SECRET = b"card 4000-1234-5678-9010"
DEFAULT = BatchHeader(base_offset=7)


def _batch(codec: CompressionType, values: list[bytes], header: BatchHeader = DEFAULT) -> bytes:
    builder = BatchBuilder(header, codec=codec)
    for number, value in enumerate(values):
        assert builder.append(
            b"key-%d" % number, value, timestamp=1000 + number, headers=[("who", SECRET), ("n", None)]
        )
    return builder.build()


def _texts(count: int) -> list[bytes]:
    words = ("tea", "oolong", "kyoto", "order", "quantity", "green", "paid", SECRET.decode())
    rng = random.Random(3)
    return [" ".join(rng.choices(words, k=12)).encode() for _ in range(count)]


def _noise(count: int) -> list[bytes]:
    rng = random.Random(4)
    return [SECRET + rng.randbytes(150) for _ in range(count)]


def _only(data: bytes) -> RecordBatch:
    (batch,) = read_batches(data)
    assert isinstance(batch, RecordBatch)
    return batch


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize(
    "values", [_texts(40), _noise(40), [b"", SECRET * 3], _texts(400)], ids=["text", "noise", "few", "more"]
)
def test_batches_stay_sound_and_keep_all_but_the_payload(codec: CompressionType, values: list[bytes]) -> None:
    """The checksum matches the new bytes; offsets, times, producers and all lengths stay unchanged."""
    header = BatchHeader(base_offset=7, producer_id=9, producer_epoch=1, base_sequence=4, partition_leader_epoch=2)
    data = _batch(codec, values, header)
    hidden = redact_records(data)
    before, after = _only(data), _only(hidden)
    assert after.records()[0].value != before.records()[0].value or not values[0]
    for name in ("base_offset", "attributes", "count", "producer_id", "base_sequence", "partition_leader_epoch"):
        assert getattr(after, name) == getattr(before, name)
    shapes = [
        [(r.offset, r.timestamp, len(r.key or b""), len(r.value or b""), [(len(k), v and len(v)) for k, v in r.headers])
         for r in batch]
        for batch in (before, after)
    ]  # fmt: skip
    assert shapes[0] == shapes[1]
    assert SECRET not in b"".join(record.value or b"" for record in after)
    assert not any(name == "who" for record in after for name, _ in record.headers)
    assert abs(len(hidden) - len(data)) <= (0 if codec == CompressionType.NONE else 8)


def test_most_compressed_batches_keep_their_size_exactly() -> None:
    """The redaction searches for content with the same compressed size; it succeeds in nearly all cases."""
    batches = [
        _batch(codec, values)
        for codec in (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD)
        for values in (_texts(20), _texts(60), _texts(200), _noise(30))
    ]
    same = [len(redact_records(batch)) == len(batch) for batch in batches]
    assert same.count(True) >= 15


def test_several_batches_and_a_partial_one() -> None:
    """The start of a batch that a broker truncated keeps its header and its length."""
    whole = _batch(CompressionType.NONE, [SECRET])
    hidden = redact_records(whole + whole + whole[:-10])
    assert len(hidden) == 3 * len(whole) - 10
    assert len(list(read_batches(hidden))) == 2
    assert SECRET not in hidden
    assert hidden[2 * len(whole) :][:61] == whole[:61]


def test_control_batches_stay_as_they_are() -> None:
    """A transaction marker contains no secret, and its content is meaningful."""
    builder = BatchBuilder(BatchHeader(producer_id=1, producer_epoch=0, control=True, transactional=True))
    builder.append_control(ControlType.COMMIT, EndTxnMarker(coordinator_epoch=3), timestamp=5)
    marker = builder.build()
    assert redact_records(marker) == marker


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets(magic: int) -> None:
    """Uncompressed entries of magic 0 and 1 stay valid; compressed ones are hidden completely."""
    for codec in (CompressionType.NONE, CompressionType.GZIP):
        builder = MessageSetBuilder(magic=magic, codec=codec)
        builder.append(b"k", SECRET)
        builder.append(None, None)
        data = builder.build()
        hidden = redact_records(data)
        assert len(hidden) == len(data)
        assert SECRET not in hidden
        if codec == CompressionType.NONE:
            assert [(r.key, r.value) for batch in read_batches(hidden) for r in batch] == [
                (b"x", b"x" * len(SECRET)),
                (None, None),
            ]


def test_damaged_batches_are_hidden_as_a_whole() -> None:
    """Unreadable data is hidden entirely."""
    data = bytearray(_batch(CompressionType.NONE, [SECRET]))
    data[70] ^= 1
    hidden = redact_records(bytes(data))
    assert hidden == bytes(data[:61]) + bytes(len(data) - 61)
    assert redact_records(b"") == b""
    assert redact_records(SECRET) == bytes(len(SECRET))
