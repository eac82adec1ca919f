"""Positions, buffers, isolation levels, and the records of fetched bytes."""

from __future__ import annotations

import pytest

from kafka_msgs import EndTxnMarker
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import (
    AssignedPartition,
    AssignedPartitions,
    FetchedRecords,
    scan_batches,
)
from kafka_msgs.client.consumer.fetch_collector import collect_records
from kafka_msgs.errors import CrcMismatchError, OffsetPositionError
from kafka_msgs.messages.fetch_response import AbortedTransaction
from kafka_msgs.records import (
    DEFAULT_READ_OPTIONS,
    BatchBuilder,
    BatchHeader,
    ConsumerRecord,
    ControlType,
    MessageSetBuilder,
)

NAME = TopicPartition("t", 3)


def batch(first: int, count: int, *, producer: int = -1, epoch: int = 4) -> bytes:
    """Return a batch of records with the offsets as values."""
    own = (
        {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        if producer >= 0
        else {}
    )
    builder = BatchBuilder(BatchHeader(base_offset=first, partition_leader_epoch=epoch, **own))  # type: ignore[arg-type]
    for number in range(first, first + count):
        builder.append(None, b"%d" % number, timestamp=number)
    return builder.build()


def marker(offset: int, producer: int, kind: ControlType) -> bytes:
    """Return the control batch that ends a transaction."""
    header = BatchHeader(base_offset=offset, control=True, transactional=True, producer_id=producer, producer_epoch=0)
    builder = BatchBuilder(header)
    builder.append_control(kind, EndTxnMarker(coordinator_epoch=0), timestamp=0)
    return builder.build()


def partition(data: bytes, at: int = 0, aborted: tuple[AbortedTransaction, ...] | None = None) -> AssignedPartition:
    """Return a partition with buffered bytes."""
    found = AssignedPartition(NAME)
    found.seek(at)
    found.add(FetchedRecords(data, at, aborted))
    return found


def values(found: AssignedPartition, room: int = 1_000) -> list[int]:
    """Return the values of a poll with limited room."""
    records: list[ConsumerRecord] = []
    collect_records(found, room, DEFAULT_READ_OPTIONS, records)
    assert all((record.topic, record.partition) == NAME for record in records)
    return [int(bytes(record.value or b"")) for record in records]


def test_the_next_fetch_begins_behind_the_last_complete_batch() -> None:
    whole = batch(10, 3) + batch(20, 2, epoch=6)
    assert scan_batches(whole)[:2] == (22, 6)
    assert scan_batches(whole[:-1])[:2] == (13, 4)
    assert scan_batches(b"") == (-1, -1, 0)
    builder = MessageSetBuilder(magic=1)
    builder.append(b"k", b"v", timestamp=1, offset=30)
    assert scan_batches(builder.build()) == (31, -1, 1)


def test_the_position_moves_with_the_records_that_are_returned_not_with_those_that_are_fetched() -> None:
    found = partition(batch(0, 3) + batch(3, 3))
    assert (found.position, found.fetch_offset, found.epoch) == (0, 6, 4)
    assert values(found, 2) == [0, 1]
    assert (found.position, found.fetch_offset) == (2, 6)
    assert values(found, 3) == [2, 3, 4]
    assert found.position == 5
    assert values(found) == [5]
    assert (found.position, found.position_epoch, found.buffered, found.empty) == (6, 4, 0, True)


def test_records_before_the_position_are_left_out() -> None:
    assert values(partition(batch(0, 3) + batch(3, 3), at=4)) == [4, 5]


def test_a_seek_drops_what_was_fetched() -> None:
    found = partition(batch(0, 3))
    assert values(found, 1) == [0]
    found.seek(100)
    assert values(found) == []
    assert (found.position, found.fetch_offset, found.buffered) == (100, 100, 0)


def test_control_batches_are_passed_over_and_the_position_behind_them() -> None:
    found = partition(batch(0, 2, producer=9) + marker(2, 9, ControlType.COMMIT))
    assert values(found) == [0, 1]
    assert found.position == 3


def test_aborted_transactions_are_hidden_until_their_marker() -> None:
    data = (
        batch(0, 2, producer=9) + batch(2, 1, producer=8) + batch(3, 1) + marker(4, 9, ControlType.ABORT)
        + batch(5, 1, producer=9) + marker(6, 9, ControlType.COMMIT) + marker(7, 8, ControlType.COMMIT)
    )  # fmt: skip
    aborted = (AbortedTransaction(producer_id=9, first_offset=0),)
    assert values(partition(data, aborted=aborted)) == [2, 3, 5]
    assert values(partition(data)) == [0, 1, 2, 3, 5]


def test_a_transaction_that_was_aborted_twice_is_hidden_twice() -> None:
    data = (
        batch(0, 1, producer=9) + marker(1, 9, ControlType.ABORT) + batch(2, 1, producer=9)
        + marker(3, 9, ControlType.COMMIT) + batch(4, 1, producer=9) + marker(5, 9, ControlType.ABORT)
    )  # fmt: skip
    aborted = (AbortedTransaction(producer_id=9, first_offset=4), AbortedTransaction(producer_id=9, first_offset=0))
    found = partition(data, aborted=aborted)
    assert values(found) == [2]
    assert found.position == 6


def test_damage_is_raised_when_it_is_reached_and_the_position_stays_before_it() -> None:
    damaged = bytearray(batch(3, 3))
    damaged[-1] ^= 1
    found = partition(batch(0, 3) + bytes(damaged))
    records: list[ConsumerRecord] = []
    with pytest.raises(CrcMismatchError):
        collect_records(found, 100, DEFAULT_READ_OPTIONS, records)
    assert [record.offset for record in records] == [0, 1, 2]
    assert found.position == 3


def test_partitions_take_turns_and_an_unknown_one_is_an_error() -> None:
    partitions = AssignedPartitions()
    names = [TopicPartition("t", number) for number in range(3)]
    partitions.add(names)
    firsts = [partitions.in_turn()[0].name for _ in range(4)]
    assert firsts == [names[1], names[2], names[0], names[1]]
    partitions.remove([names[1]])
    assert partitions.names == {names[0], names[2]}
    assert {each.name for each in partitions.in_turn()} == {names[0], names[2]}
    with pytest.raises(OffsetPositionError, match="t-1: the consumer does not have it"):
        _ = partitions[names[1]]
