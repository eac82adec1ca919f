"""Round trips of every format, compression and attribute, with sizes near the varint boundaries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.errors import RecordWriteError
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    LegacyBatch,
    MessageSetBuilder,
    Record,
    RecordBatch,
    TimestampType,
    read_batches,
)
from tests.support.batches import BORDERS, BatchSpec, described, read_one


@settings(max_examples=100, deadline=None)
@given(described(0, 1, 2))
def test_records_come_back_as_they_were_written(batch: BatchSpec) -> None:
    found = [record for each in read_batches(batch.written()) for record in each]
    assert found == batch.expected()


@settings(max_examples=60, deadline=None)
@given(described(2))
def test_attributes_come_back_as_they_were_written(batch: BatchSpec) -> None:
    found = read_one(batch.written())
    header = batch.header
    assert found.codec == batch.codec
    assert found.count == len(batch.records)
    assert found.base_offset == batch.base_offset
    assert found.last_offset == batch.records[-1].offset
    assert found.delete_horizon == header.get("delete_horizon")
    assert found.is_transactional == header.get("transactional", False)
    assert not found.is_control
    for name in ("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"):
        assert getattr(found, name) == header.get(name, -1)
    latest = max(record.timestamp for record in batch.records)
    assert found.max_timestamp == (latest if batch.log_append_timestamp is None else batch.log_append_timestamp)
    assert found.timestamp_type == (TimestampType.CREATE_TIME if batch.log_append_timestamp is None else 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(described(0, 1, 2), max_size=4), st.integers(0, 200))
def test_a_walk_stops_at_the_last_whole_batch(batches: list[BatchSpec], cut: int) -> None:
    parts = [batch.written() for batch in batches]
    data = b"".join(parts)
    reader = read_batches(data[: max(len(data) - cut, 0)])
    found = list(reader)
    assert sum(batch.size for batch in found) == reader.position
    assert all(batch.position + batch.size <= len(data) - cut for batch in found)
    if cut == 0:
        assert reader.left == 0


@pytest.mark.parametrize("size", BORDERS)
@pytest.mark.parametrize("part", ["key", "value", "name", "content"])
def test_sizes_around_the_borders_of_varints(part: str, size: int) -> None:
    parts = {"key": b"", "value": b"", "name": b"", "content": b""} | {part: b"x" * size}
    record = Record(0, 0, parts["key"], parts["value"], ((parts["name"].decode(), parts["content"]),))
    assert read_one(BatchSpec(2, CompressionType.NONE, (record,)).written()).records() == [record]


@pytest.mark.parametrize("delta", [0, 1, -1, 63, 64, -64, -65, 2**31, -(2**31), 2**62 - 1, -(2**62)])
def test_timestamps_before_and_after_the_first_one(delta: int) -> None:
    builder = BatchBuilder()
    times = [2**62, 2**62 + delta]
    for time in times:
        builder.append(None, b"v", timestamp=time)
    batch = read_one(builder.build())
    assert [record.timestamp for record in batch] == times
    assert (batch.base_timestamp, batch.max_timestamp) == (2**62, max(times))


def test_a_batch_that_compaction_emptied_keeps_its_offsets() -> None:
    batch = read_one(BatchBuilder(BatchHeader(base_offset=10, last_offset=14)).build())
    assert (batch.count, batch.base_offset, batch.last_offset) == (0, 10, 14)
    assert (batch.base_timestamp, batch.max_timestamp, batch.records()) == (-1, -1, [])


@pytest.mark.parametrize("codec", CompressionType)
def test_a_builder_is_full_at_its_limit_and_takes_one_record_of_any_size(codec: CompressionType) -> None:
    builder = BatchBuilder(codec=codec, size_limit=300)
    taken = 0
    while builder.append(None, b"x" * 50):
        taken += 1
    assert taken == builder.count == builder.next_offset == 4
    assert builder.size <= 300 < builder.size + 57
    assert len(read_one(builder.build()).records()) == 4
    assert BatchBuilder(codec=codec, size_limit=100).append(None, b"x" * 500)


def test_the_size_of_an_uncompressed_batch_is_known_before_it_is_built() -> None:
    builder = BatchBuilder()
    builder.append(b"k", b"v" * 100, headers=[("h", None)])
    assert builder.size == len(builder.build())


def test_a_builder_may_go_on_after_it_built() -> None:
    builder = BatchBuilder()
    builder.append(None, b"1")
    first = builder.build()
    builder.append(None, b"2")
    assert (read_one(first).values(), read_one(builder.build()).values()) == ([b"1"], [b"1", b"2"])


REFUSED_HEADERS = [
    ({"transactional": True}, "transactional"),
    ({"producer_id": 1}, "producer_epoch"),
    ({"producer_id": 1, "producer_epoch": 0}, "base_sequence"),
    ({"producer_id": 2**63}, "producer_id"),
    ({"producer_id": 1, "producer_epoch": 2**15, "base_sequence": 0}, "producer_epoch"),
    ({"base_offset": -1}, "base_offset"),
    ({"base_offset": 2**63}, "base_offset"),
    ({"partition_leader_epoch": 2**31}, "partition_leader_epoch"),
    ({"delete_horizon": -5}, "delete_horizon"),
    ({"log_append_timestamp": "now"}, "log_append_timestamp"),
]


@pytest.mark.parametrize(("header", "field"), REFUSED_HEADERS)
def test_headers_that_kafka_refuses_are_refused(header: dict[str, Any], field: str) -> None:
    with pytest.raises(RecordWriteError) as caught:
        BatchBuilder(BatchHeader(**header))
    assert caught.value.field == field


REFUSED_RECORDS = [
    ({"offset": 4}, "offset"),
    ({"offset": 5 + 2**31}, "offset"),
    ({"timestamp": -2}, "timestamp"),
    ({"timestamp": 2**63}, "timestamp"),
    ({"key": "text"}, "key"),
    ({"value": 5}, "value"),
    ({"headers": [(b"bytes", b"")]}, "headers"),
    ({"headers": [("\ud800", b"")]}, "headers"),
    ({"headers": [("name", "text")]}, "headers"),
    ({"headers": [("name",)]}, "headers"),
    ({"headers": ["ab"]}, "headers"),
]


@pytest.mark.parametrize(("changed", "field"), REFUSED_RECORDS)
def test_records_that_the_format_cannot_hold_are_refused_and_leave_nothing(
    changed: dict[str, object], field: str
) -> None:
    builder = BatchBuilder(BatchHeader(base_offset=5))
    with pytest.raises(RecordWriteError) as caught:
        builder.append(**{"key": None, "value": None, **changed})  # type: ignore[arg-type]
    assert caught.value.field == field
    assert (builder.count, builder.size, builder.next_offset) == (0, 61, 5)


def test_deltas_that_do_not_fit_are_refused() -> None:
    builder = BatchBuilder(BatchHeader(delete_horizon=0, last_offset=3))
    builder.append(None, None, timestamp=2**63 - 1, offset=4)
    with pytest.raises(RecordWriteError, match="last_offset"):
        builder.build()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"magic": 2}, "magic"),
        ({"magic": 1, "codec": CompressionType.ZSTD}, "codec"),
        ({"magic": 0, "log_append_timestamp": 5}, "log_append_timestamp"),
    ],
)
def test_message_sets_that_do_not_exist_are_refused(arguments: dict[str, int], field: str) -> None:
    with pytest.raises(RecordWriteError) as caught:
        MessageSetBuilder(**arguments)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_magic_0_has_no_timestamps() -> None:
    with pytest.raises(RecordWriteError, match="timestamp"):
        MessageSetBuilder(magic=0).append(None, None, timestamp=5)


def test_a_batch_says_what_it_is() -> None:
    old = MessageSetBuilder(magic=1, base_offset=3)
    old.append(None, b"v")
    builder = BatchBuilder(BatchHeader(base_offset=4))
    builder.append(None, b"v")
    first, second = read_batches(old.build() + builder.build())
    assert isinstance(first, LegacyBatch)
    assert isinstance(second, RecordBatch)
    assert repr(first) == "<LegacyBatch at byte 0: magic 1, offset 3, 35 bytes>"
    assert repr(second) == "<RecordBatch at byte 35: offsets 4 to 4, 1 records>"
