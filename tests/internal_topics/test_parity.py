"""Kafka's own coordinators read this library's records, and reject the same records as this library."""

from __future__ import annotations

import struct
from collections import Counter
from random import Random

import pytest

from kafka_msgs import DecodeError, KafkaMsgsError, UnsupportedVersionError
from kafka_msgs.internal_topics.records import TOPICS, TopicRecord, UnknownRecord, decode_record, encode_record
from kafka_msgs.internal_topics.share_state import combine_batches
from kafka_msgs.messages.share_snapshot_value import StateBatch
from tests.oracle import Oracle, OracleReject, Rewritten
from tests.oracle.parity import LAST_TAG
from tests.support.internal_records import mutated, random_bytes
from tests.support.recorded_records import read_lines, read_records, record_of
from tests.support.recordings import INTERNAL_TOPICS as RECORDING

pytestmark = pytest.mark.oracle

OFFSETS = "__consumer_offsets"
OFFSETS_RECORDING = RECORDING.parent / "consumer_offsets.jsonl"

_BATCH = struct.Struct(">qqbh")


def class_name(record: TopicRecord) -> str:
    message = record.value or record.key
    assert message is not None
    return message.INFO.name


def test_every_type_at_every_version_is_read_and_written_alike(oracle: Oracle) -> None:
    written = [*random_bytes(11, each=8)]
    items = [(record.topic, key, value) for record, (key, value) in written]
    for (record, (key, value)), found in zip(written, oracle.rewrite_records(items), strict=True):
        assert found == Rewritten(key, value, class_name(record)), record


def test_recordings_are_read_and_written_alike(oracle: Oracle) -> None:
    recorded = [record for record in map(record_of, read_lines()) if isinstance(record, TopicRecord)]
    for line in read_records(OFFSETS_RECORDING):
        record = decode_record(OFFSETS, line.key, line.value)
        assert isinstance(record, TopicRecord)
        recorded.append(record)
    items = [(record.topic, *encode_record(record)) for record in recorded]
    for record, (_, key, value), found in zip(recorded, items, oracle.rewrite_records(items), strict=True):
        assert found == Rewritten(key, value, class_name(record)), record


def test_unknown_types_and_versions_are_unknown_to_kafka_too(oracle: Oracle) -> None:
    key = bytes.fromhex("0001 0001 70 00000000000000000000000000000001 00000000")
    update = bytes.fromhex("00000001 00000002 0000000000000003 01 00")
    items: list[tuple[str, bytes | None, bytes | None]] = [
        (OFFSETS, bytes.fromhex("0009 0001 61"), b"\0\0\0"),
        ("__transaction_state", bytes.fromhex("0001 0001 61"), b"\0\0"),
        ("__share_group_state", bytes.fromhex("0002 00"), b"\0\0"),
        ("__cluster_metadata", None, bytes.fromhex("01060000")),
        ("__remote_log_metadata", None, bytes.fromhex("01040000")),
        ("__share_group_state", key, b"\0\1" + update),
        ("__share_group_state", key, b"\0\0" + update),
    ]
    *unknown, newer, known = oracle.rewrite_records(items)
    for item, verdict in zip(items, unknown, strict=False):
        assert isinstance(verdict, OracleReject), item
        assert isinstance(decode_record(*item), UnknownRecord), item
    assert isinstance(newer, OracleReject)
    assert "UnknownRecordVersion" in newer.kafka_class
    assert known == Rewritten(key, b"\0\0" + update, "ShareUpdateValue")


def verdict_here(item: tuple[str, bytes | None, bytes | None]) -> str:
    try:
        found = decode_record(*item)
    except UnsupportedVersionError as error:
        return "refused" if "frame" in error.message else "version"
    except DecodeError:
        return "refused"
    return "unknown type" if isinstance(found, UnknownRecord) else "read"


def test_frames_are_cut_and_changed_at_their_head_with_the_same_verdict(oracle: Oracle) -> None:
    """The exception: Kafka reads a message at any version, whereas this library rejects unknown versions."""
    rng = Random(2)
    items: list[tuple[str, bytes | None, bytes | None]] = []
    for record, (_, value) in random_bytes(5):
        if TOPICS[record.topic].framed and value is not None:
            items += [(record.topic, None, value[:size]) for size in range(4)]
            for at in range(3):
                items.append((record.topic, None, value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]))
            items += [(record.topic, None, value), (record.topic, None, value + b"\0")]
    outcomes = Counter(
        (verdict_here(item), isinstance(verdict, OracleReject))
        for item, verdict in zip(items, oracle.rewrite_records(items), strict=True)
    )
    assert outcomes["read", False] > 40
    assert outcomes["unknown type", True] > 10
    assert outcomes["refused", True] > 200
    assert {*outcomes} <= {
        ("read", False), ("unknown type", True), ("refused", True), ("version", False), ("version", True),
    }  # fmt: skip


def random_batches(rng: Random) -> list[StateBatch]:
    batches = []
    for _ in range(rng.randrange(7)):
        first = rng.randrange(30)
        batches.append(
            StateBatch(
                first_offset=first,
                last_offset=first + rng.randrange(12),
                delivery_state=rng.choice((0, 2, 4)),
                delivery_count=rng.randrange(1, 4),
            )
        )
    return batches


def by_offset(batches: list[tuple[int, int, int, int]]) -> dict[int, tuple[int, int]]:
    states: dict[int, tuple[int, int]] = {}
    for first, last, state, count in batches:
        for offset in range(first, last + 1):
            assert offset not in states, "batches overlap"
            states[offset] = state, count
    return states


def as_tuple(batch: StateBatch) -> tuple[int, int, int, int]:
    return batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count


def packed(batches: list[StateBatch]) -> bytes:
    return b"".join(_BATCH.pack(*as_tuple(batch)) for batch in batches)


def test_share_state_folds_to_the_same_state_of_every_offset(oracle: Oracle) -> None:
    rng = Random(6)
    cases: list[tuple[int, list[StateBatch], list[StateBatch]]] = []
    while len(cases) < 2000:
        present, update, start = random_batches(rng), random_batches(rng), rng.randrange(-1, 25)
        cases.append((start, [*combine_batches(present, -1)], [*combine_batches(update, -1)]))
    items = [(start, packed(present), packed(update)) for start, present, update in cases]
    for (start, present, update), found in zip(cases, oracle.fold_share_batches(items), strict=True):
        assert isinstance(found, bytes)
        mine = combine_batches([*present, *update], start)
        assert by_offset([*map(as_tuple, mine)]) == by_offset([*_BATCH.iter_unpack(found)]), (start, present, update)


def test_what_is_read_here_kafka_reads_and_writes_back_alike(oracle: Oracle) -> None:
    rng = Random(8)
    items: list[tuple[str, bytes | None, bytes | None]] = []
    written = []
    for record, (key, value) in random_bytes(9, each=4):
        for _ in range(30):
            bad_key = key and mutated(key, rng) if rng.random() < 0.3 else key
            item = record.topic, bad_key, value and mutated(value, rng)
            try:
                found = decode_record(*item)
            except KafkaMsgsError:
                continue
            if isinstance(found, TopicRecord):
                items.append(item)
                written.append((found, encode_record(found)))
    assert len(items) > 1000
    for (found, (key, value)), rewritten in zip(written, oracle.rewrite_records(items), strict=True):
        if isinstance(rewritten, OracleReject) and LAST_TAG in rewritten.reason:
            continue  # Kafka can read the highest tag, but not write it.
        assert rewritten == Rewritten(key, value, class_name(found)), found
