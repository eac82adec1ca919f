"""Records created on demand equal records created immediately, as do their errors."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs import RecordError
from kafka_msgs.binary_layouts import MARK_INTERVAL
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    ReadOptions,
    Record,
    RecordBatch,
    batch,
    read_batches,
)
from tests.support.batches import BatchSpec, by_hand, described, read_one, sealed
from tests.support.damaged_batches import mutated, samples

COUNTS = [1, 2, MARK_INTERVAL - 1, MARK_INTERVAL, MARK_INTERVAL + 1, 2 * MARK_INTERVAL, 3 * MARK_INTERVAL + 5]
"""Numbers of records near the points that require another mark."""


def many(count: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    """Return a batch of records that differ in all fields, with gaps as after compaction."""
    builder = BatchBuilder(BatchHeader(base_offset=100), codec=codec)
    for number in range(count):
        key = b"key-%d" % number if number % 3 else None
        headers = [("source", b"till"), ("number", b"%d" % number)][: number % 3]
        builder.append(
            key, b"v" * (number % 200), timestamp=5000 + number // 2, headers=headers, offset=100 + 3 * number
        )
    return builder.build()


@settings(max_examples=60, deadline=None)
@given(described(0, 1, 2), st.booleans())
def test_every_batch_gives_the_same_records_lazily(drawn: BatchSpec, views: bool) -> None:
    found: list[Record] = []
    for each in read_batches(drawn.written(), ReadOptions(zero_copy=views)):
        lazy = each.lazy_records()
        found += lazy
        assert list(lazy) == each.records()
        assert len(lazy) == len(each.records())
    assert found == drawn.expected()


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("count", COUNTS)
def test_it_is_a_sequence_like_the_list(count: int, codec: CompressionType) -> None:
    made = read_one(many(count, codec))
    records, lazy = made.records(), made.lazy_records()
    assert list(reversed(lazy)) == records[::-1]
    for index in range(-count, count):
        assert lazy[index] == records[index]
    for index in (count, -count - 1):
        with pytest.raises(IndexError):
            lazy[index]
    chance = Random(count)
    bounds = [None, *(chance.randrange(-count - 2, count + 3) for _ in range(5))]
    for start in bounds:
        for stop in bounds:
            for step in (None, 2, -1, -MARK_INTERVAL):
                assert lazy[start:stop:step] == records[start:stop:step]
    assert records[-1] in lazy
    assert lazy.index(records[-1]) == count - 1


def test_a_batch_without_records_gives_none() -> None:
    made = read_one(by_hand("", count=0))
    assert list(made.lazy_records()) == list(reversed(made.lazy_records())) == made.records() == []


def test_faults_are_found_before_any_record_is_asked_for() -> None:
    chance = Random(31)
    whole = [each for each in (*samples(), many(150)) if each[16] == 2]
    raised = 0
    for _ in range(40):
        for each in whole:
            damaged = read_one(sealed(each[:61] + mutated(each[61:], chance)))
            at_once, lazily = made_or_error(damaged.records), made_or_error(damaged.lazy_records)
            assert lazily == at_once
            raised += isinstance(at_once, tuple)
    assert raised > 50


def made_or_error(work: Any) -> Any:
    """Return the records in a list, or their error."""
    try:
        return list(work())
    except RecordError as error:
        return type(error), str(error)


def test_nothing_is_decompressed_or_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = read_one(many(200, CompressionType.GZIP))
    expected, lazy = made.records(), made.lazy_records()
    monkeypatch.setattr(RecordBatch, "content", None)
    monkeypatch.setattr(batch, "decompress", None)
    assert list(lazy) == list(lazy) == expected
    assert lazy[150] == expected[150]
    assert lazy[150] is not lazy[150]


def test_what_is_held_does_not_grow_with_the_records() -> None:
    made = read_one(many(5000))

    def held(work: Any) -> int:
        tracemalloc.start()
        try:
            kept = work()
            assert len(kept) == 5000
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    assert 20 * held(made.lazy_records) < held(made.records)
