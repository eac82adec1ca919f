"""The log of a partition in memory: reads return exactly the appended records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.broker.storage import AppendOrigin
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedRecordsError, RequestRefusedError
from tests.broker.storage.making import NOW, batch, new_log, values


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=4), min_size=1, max_size=40),
    segment_bytes=st.integers(14_000, 60_000),
    interval=st.integers(0, 5000),
    max_bytes=st.integers(1, 20_000),
    start=st.integers(0, 160),
)
def test_reads_return_what_was_appended(
    sizes: list[list[int]], segment_bytes: int, interval: int, max_bytes: int, start: int
) -> None:
    log = new_log(segment_bytes=segment_bytes, index_interval_bytes=interval)
    expected: list[tuple[int, bytes]] = []
    for each in sizes:
        contents = [bytes([len(expected) % 256]) * size for size in each]
        appended = log.append(batch(*contents), leader_epoch=0, now=NOW)
        assert appended.base_offset == len(expected)
        expected += enumerate(contents, len(expected))
        assert appended.last_offset == len(expected) - 1
    assert log.log_end_offset == log.high_watermark == log.last_stable_offset == len(expected)
    start = min(start, len(expected))
    assert values(log, start, max_bytes) == expected[start:]


def test_a_refused_batch_changes_nothing() -> None:
    log = new_log()
    log.append(batch(b"a"), leader_epoch=0, now=NOW)
    damaged = bytearray(batch(b"b"))
    damaged[-1] ^= 1
    with pytest.raises(RequestRefusedError) as refused:
        log.append(damaged, leader_epoch=3, now=NOW)
    assert refused.value.error is ErrorCode.CORRUPT_MESSAGE
    assert values(log) == [(0, b"a")]
    assert log.epochs.entries == ((0, 0),)


def test_an_idempotent_batch_is_written_once() -> None:
    log = new_log()
    first = batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)
    second = batch(b"c", producer_id=7, producer_epoch=0, base_sequence=2)
    log.append(first, leader_epoch=0, now=NOW)
    log.append(second, leader_epoch=0, now=NOW)
    again = log.append(first, leader_epoch=0, now=NOW)
    assert (again.base_offset, again.last_offset, again.duplicate) == (0, 1, True)
    with pytest.raises(RequestRefusedError) as refused:
        log.append(batch(b"d", producer_id=7, producer_epoch=0, base_sequence=9), leader_epoch=0, now=NOW)
    assert refused.value.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert values(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_transaction_is_stable_when_its_marker_is_written() -> None:
    log = new_log()
    guard = log.verify(7, 0, 0, bumps_epoch=False, now=NOW)
    data = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    with pytest.raises(RequestRefusedError) as refused:
        log.append(data, leader_epoch=0, now=NOW)
    assert refused.value.error is ErrorCode.INVALID_TXN_STATE
    log.append(data, leader_epoch=0, now=NOW, guard=guard)
    log.append(batch(b"b"), leader_epoch=0, now=NOW)
    assert log.last_stable_offset == 0
    assert values(log, isolation="read_committed") == []
    log.append_marker(7, 0, committed=False, coordinator_epoch=0, leader_epoch=0, now=NOW)
    assert log.last_stable_offset == 3
    read = log.read(0, 10_000, isolation="read_committed")
    assert read.aborted is not None
    assert [(each.producer_id, each.first_offset, each.last_offset) for each in read.aborted] == [(7, 0, 2)]


def test_a_held_high_watermark_hides_what_is_above_it() -> None:
    log = new_log()
    for value in (b"a", b"b", b"c"):
        log.append(batch(value), leader_epoch=0, now=NOW)
    log.cap_high_watermark(1)
    assert values(log) == [(0, b"a")]
    assert values(log, max_offset=log.log_end_offset) == [(0, b"a"), (1, b"b"), (2, b"c")]
    log.cap_high_watermark(None)
    assert values(log, 1) == [(1, b"b"), (2, b"c")]


def test_a_compacted_topic_names_the_records_without_a_key() -> None:
    log = new_log(cleanup_policy=frozenset({"compact"}))
    with pytest.raises(RefusedRecordsError) as refused:
        log.append(batch(b"a", b"b", keys=(b"k", None)), leader_epoch=0, now=NOW)
    assert refused.value.error is ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.value.record_errors] == [1]
    log.append(batch(b"a"), leader_epoch=0, now=NOW, origin=AppendOrigin.COORDINATOR)
    assert values(log) == [(0, b"a")]
