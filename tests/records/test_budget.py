"""The limit on records and headers per batch: larger batches are rejected before any is created, in C and in Python."""

from __future__ import annotations

import tracemalloc
from random import Random
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.errors import CorruptRecordError, RecordBudgetError
from kafka_msgs.records import BatchBuilder, CompressionType, MessageSetBuilder, ReadOptions, python, read_batches
from tests.support.batches import BatchSpec, by_hand, described, read_one
from tests.support.damaged_batches import mutated


def with_headers(headers: int, *, records: int = 1) -> bytes:
    """Return a gzip-compressed batch of records that contain only empty headers."""
    builder = BatchBuilder(codec=CompressionType.GZIP)
    for _ in range(records):
        builder.append(None, None, headers=[("", None)] * headers)
    return builder.build()


@pytest.mark.parametrize(("headers", "records"), [(0, 5), (1, 3), (7, 1), (300, 4)])
def test_the_limit_counts_records_and_headers_and_is_exact(headers: int, records: int) -> None:
    elements = records * (headers + 1)
    data = with_headers(headers, records=records)
    assert len(read_one(data, max_elements=elements).records()) == records
    batch = read_one(data, max_elements=elements - 1)
    parts = batch.offsets, batch.timestamps, batch.keys, batch.values
    for part in (batch.records, batch.lazy_records, *parts, batch.content):
        with pytest.raises(RecordBudgetError, match=f"more than {elements - 1} records and headers") as caught:
            part()
        assert (caught.value.limit, caught.value.position, caught.value.offset) == (elements - 1, 0, 0)


def test_a_million_is_the_default() -> None:
    assert len(read_one(with_headers(999_999)).records()[0].headers) == 999_999
    with pytest.raises(RecordBudgetError):
        read_one(with_headers(1_000_000)).records()


def test_a_count_that_the_bytes_cannot_hold_is_damage_and_not_a_matter_of_the_limit() -> None:
    with pytest.raises(CorruptRecordError):
        read_one(by_hand("10 00 00 00 02 6b 02 76 00", count=2**31 - 1), max_elements=1).records()


@settings(max_examples=100, deadline=None)
@given(described(2), st.integers(0, 2**32), st.integers(1, 40), st.integers(-1, 9))
def test_both_implementations_refuse_the_same(
    implementation: ModuleType, batch: BatchSpec, seed: int, limit: int, more: int
) -> None:
    whole = read_one(BatchSpec(2, CompressionType.NONE, batch.records, batch.base_offset, None, batch.header).written())
    body = bytes(whole.stored_bytes[61:])
    for data in (body, mutated(body, Random(seed))):
        place = (data, 0, len(data), max(whole.count + more, 0), limit)
        assert implementation.exceeds_element_limit(*place) == python.exceeds_element_limit(*place)
    elements = whole.count + sum(len(record.headers) for record in batch.records)
    assert implementation.exceeds_element_limit(body, 0, len(body), whole.count, limit) == (elements > limit)


def peak_of(data: bytes, options: ReadOptions) -> int:
    """Return the peak memory allocated while a batch is rejected."""
    (batch,) = read_batches(data, options)
    tracemalloc.start()
    try:
        with pytest.raises(RecordBudgetError):
            batch.records()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HEAD = 8 << 20
"""Memory that decompression may use beyond the limit."""


@pytest.mark.parametrize("size", [1 << 20, 4 << 20])
@pytest.mark.parametrize("headers", [2, 1000, 400_000])
def test_what_is_refused_takes_the_memory_of_its_content(headers: int, size: int) -> None:
    """Two bytes suffice for a header, whose tuple needs forty times more memory."""
    data = with_headers(headers, records=max(size // (2 * headers + 16), 1))
    options = ReadOptions(max_decompressed_bytes=size, max_elements=100)
    assert peak_of(data, options) <= size + HEAD


def message_set(magic: int, count: int) -> bytes:
    builder = MessageSetBuilder(magic=magic, codec=CompressionType.GZIP)
    for _ in range(count):
        builder.append(None, None)
    return builder.build()


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_have_the_same_limit(magic: int) -> None:
    data = message_set(magic, 100)
    (batch,) = read_batches(data, ReadOptions(max_elements=100))
    assert len(batch.records()) == 100
    (batch,) = read_batches(data, ReadOptions(max_elements=99))
    with pytest.raises(RecordBudgetError, match="more than 99 records") as caught:
        batch.records()
    assert caught.value.limit == 99
    assert peak_of(message_set(magic, 30_000), ReadOptions(max_elements=10)) <= 34 * 30_000 + HEAD


@pytest.mark.parametrize("value", [0, -1, 1.5, "9", 2**63])
def test_a_limit_is_a_positive_int(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        ReadOptions(max_elements=value)  # type: ignore[arg-type]
