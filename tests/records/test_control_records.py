"""Control records, which a log contains about itself."""

from __future__ import annotations

import pytest

from kafka_msgs import EndTxnMarker, LeaderChangeMessage, VotersRecord
from kafka_msgs.errors import CorruptRecordError, RecordWriteError
from kafka_msgs.messages.leader_change_message import Voter
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlRecord, ControlType
from kafka_msgs.records.record import Record
from tests.support.batches import by_hand, read_one
from tests.support.control_records import MESSAGES, control_batch


def with_content(key: bytes | None, value: bytes | None) -> list[ControlRecord]:
    """Return the control records of a batch with this one, written without the builder's checks."""
    parts = [b"\1" if part is None else bytes([2 * len(part)]) + part for part in (key, value)]
    body = b"\0\0\0" + b"".join(parts) + b"\0"
    return read_one(by_hand((bytes([2 * len(body)]) + body).hex(), attributes=1 << 5)).control_records()


def test_every_type_has_a_test_here() -> None:
    assert set(MESSAGES) == set(ControlType)


@pytest.mark.parametrize("kind", ControlType)
def test_a_control_record_is_typed_and_comes_back(kind: ControlType) -> None:
    batch = read_one(control_batch(kind, MESSAGES[kind]))
    assert batch.is_control
    (record,) = batch.control_records()
    assert (record.offset, record.timestamp, record.type, record.message) == (9, 1000, kind, MESSAGES[kind])


def test_markers_by_hand() -> None:
    (commit,) = with_content(bytes.fromhex("0000 0001"), bytes.fromhex("0000 00000007"))
    (abort,) = with_content(bytes.fromhex("0000 0000"), bytes.fromhex("0000 00000007"))
    assert commit.message == abort.message == EndTxnMarker(coordinator_epoch=7)
    assert (commit.type, abort.type) == (ControlType.COMMIT, ControlType.ABORT)


def test_newer_keys_and_markers_are_read_as_the_newest_known() -> None:
    (record,) = with_content(bytes.fromhex("0009 0001 ffff"), bytes.fromhex("0005 00000007 aabb"))
    assert record.message == EndTxnMarker(coordinator_epoch=7)


def test_a_leader_change_is_read_at_the_version_that_it_states() -> None:
    message = LeaderChangeMessage(version=1, leader_id=2, voters=(Voter(voter_id=2),), granting_voters=())
    (record,) = read_one(control_batch(ControlType.LEADER_CHANGE, message, version=1)).control_records()
    assert record.message == message


def test_an_unknown_type_is_a_value() -> None:
    (record,) = with_content(bytes.fromhex("0000 0063"), b"what")
    assert record == ControlRecord(0, 1000, 99, None, b"what")


BROKEN = [
    (b"", b"", "a key of 0 bytes"),
    (None, b"", "a key of 0 bytes"),
    (b"\0\0\0", b"", "a key of 3 bytes"),
    (b"\xff\xff\0\0", b"", "the key has the version -1"),
    (b"\0\0\0\0", None, "ABORT needs a value"),
    (b"\0\0\0\0", b"\0", "ABORT needs a value"),
    (b"\0\0\0\0", b"\0\0\0\0", "EndTxnMarker v0"),
    (b"\0\0\0\0", b"\xff\xff\0\0\0\0", "EndTxnMarker has no version -1"),
    (b"\0\0\0\3", b"\0\0\0", "SnapshotHeaderRecord v0"),
    (b"\0\0\0\3", b"\xff\xff\0\0\0\0\0\0\0\0\0", "SnapshotHeaderRecord has no version -1"),
]


@pytest.mark.parametrize(("key", "value", "reason"), BROKEN)
def test_a_control_record_that_does_not_match_its_type_is_corrupt(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(CorruptRecordError, match=f"control record at offset 0: .*{reason}"):
        with_content(key, value)


def test_other_batches_have_no_control_records() -> None:
    builder = BatchBuilder()
    builder.append(b"\0\0\0\0", b"\0\0\0\0\0\1")
    assert read_one(builder.build()).control_records() == []


def test_control_records_and_others_do_not_mix() -> None:
    with pytest.raises(RecordWriteError, match="control batch"):
        BatchBuilder(BatchHeader(control=True)).append(b"k", b"v")
    with pytest.raises(RecordWriteError, match="control batch"):
        BatchBuilder().append_control(ControlType.COMMIT, EndTxnMarker(), timestamp=0)


def test_a_type_takes_only_its_message() -> None:
    with pytest.raises(TypeError, match="COMMIT holds a EndTxnMarker, not a VotersRecord"):
        control_batch(ControlType.COMMIT, VotersRecord(voters=()))


def test_a_control_batch_needs_no_sequence() -> None:
    assert BatchHeader(control=True, producer_id=1, producer_epoch=0).base_sequence == -1


def test_control_records_are_also_plain_records() -> None:
    batch = read_one(control_batch(ControlType.COMMIT, MESSAGES[ControlType.COMMIT]))
    assert batch.records() == [Record(9, 1000, b"\0\0\0\1", bytes.fromhex("0000 00000004"))]
