"""Indexes, valid and damaged, and lookups in a segment that use them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from struct import pack, pack_into
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.indexes import (
    OFFSET_LAYOUT,
    TIME_LAYOUT,
    AbortedTransaction,
    IndexEntries,
    OffsetEntry,
    TimeEntry,
    read_aborted_transactions,
    read_offset_index,
    read_time_index,
    walk_aborted_transactions,
    walk_offset_index,
    walk_time_index,
)
from kafka_msgs.log.segment import Segment
from kafka_msgs.records import BatchBuilder, BatchHeader

BASE = 100
STARTS: list[int] = []


def content() -> bytes:
    """Return ten batches of ten records, one second apart."""
    data = b""
    STARTS.clear()
    for first in range(BASE, BASE + 100, 10):
        STARTS.append(len(data))
        builder = BatchBuilder(BatchHeader(base_offset=first))
        for number in range(first, first + 10):
            builder.append(b"key", str(number).encode(), timestamp=1000 * number)
        data += builder.build()
    return data


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """A segment of ten batches, with an entry for every second batch in both indexes."""
    path = tmp_path / f"{BASE:020}.log"
    path.write_bytes(content())
    entries = [(10 * number + 9, STARTS[number]) for number in range(1, 10, 2)]
    path.with_suffix(".index").write_bytes(b"".join(pack(">ii", *entry) for entry in entries))
    times = [(1000 * (BASE + offset), offset) for offset, _ in entries]
    path.with_suffix(".timeindex").write_bytes(b"".join(pack(">qi", *entry) for entry in times))
    return Segment(path)


def finds_everything(segment: Segment) -> bool:
    found = [next(segment.batches(offset)).position for offset in range(BASE, BASE + 100)]
    times = [segment.first_at(1000 * offset - 1) for offset in range(BASE, BASE + 100)]
    return found == [STARTS[number // 10] for number in range(100)] and [
        record and record.offset for record in times
    ] == list(range(BASE, BASE + 100))


def test_a_segment_finds_every_offset_and_time(segment: Segment) -> None:
    assert finds_everything(segment)
    assert next(segment.batches(0)).position == 0
    assert list(segment.batches(BASE + 100)) == []
    assert segment.first_at(1000 * (BASE + 99) + 1) is None


def test_a_segment_starts_reading_at_its_index_entry(segment: Segment) -> None:
    assert [segment.position_of(BASE + offset) for offset in (0, 18, 19, 20, 38, 39, 99, 500)] == [
        0, 0, STARTS[1], STARTS[1], STARTS[1], STARTS[3], STARTS[9], STARTS[9],
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-3],
        lambda data: bytes(len(data)),
        lambda data: data + bytes(1000),
        lambda data: data[: len(data) // 2] + data[: len(data) // 2],
        lambda data: b"\xff" * len(data),
    ],
    ids=["empty", "truncated", "zeros", "open", "descending", "negative"],
)
def test_a_damaged_index_hides_nothing(segment: Segment, suffix: str, damage: Callable[[bytes], bytes]) -> None:
    path = segment.path.with_suffix(suffix)
    path.write_bytes(damage(path.read_bytes()))
    assert finds_everything(segment)


@pytest.mark.parametrize("position", [-1, 1, 5, 10**6])
def test_an_entry_that_leads_to_no_batch_is_not_followed(segment: Segment, position: int) -> None:
    segment.path.with_suffix(".index").write_bytes(pack(">ii", 9, position))
    assert finds_everything(segment)


def test_an_entry_that_leads_too_far_is_not_followed(segment: Segment) -> None:
    segment.path.with_suffix(".index").write_bytes(pack(">ii", 9, STARTS[5]))
    assert finds_everything(segment)


def test_offsets_and_times_beyond_damage_are_found(segment: Segment) -> None:
    data = bytearray(segment.path.read_bytes())
    data[STARTS[1] : STARTS[2]] = bytes(STARTS[2] - STARTS[1])
    segment.path.write_bytes(data)
    beyond = segment.batch_at(BASE + 10)
    assert beyond is not None
    assert beyond.position == STARTS[2]
    found = segment.first_at(1000 * (BASE + 10))
    assert found is not None
    assert found.offset == BASE + 20


def test_zeros_at_the_end_are_space_in_the_last_segment_and_damage_in_others(segment: Segment) -> None:
    with segment.path.open("ab") as file:
        file.write(bytes(500))
    assert not segment.closed
    assert sum(1 for _ in segment.batches()) == 10
    segment.path.with_name(f"{BASE + 100:020}.log").write_bytes(b"")
    assert segment.closed
    with pytest.raises(LogFileError, match="500 bytes that are all zero"):
        list(segment.batches())


def test_a_segment_without_indexes_has_no_entries(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"")
    segment = Segment(path)
    assert (list(segment.offset_index()), list(segment.time_index()), list(segment.aborted_transactions())) == (
        [], [], [],
    )  # fmt: skip
    assert (segment.size, segment.first_at(0), list(segment.batches())) == (0, None, [])


def test_offsets_in_indexes_are_absolute(tmp_path: Path) -> None:
    offsets, times = tmp_path / f"{2**40:020}.index", tmp_path / f"{2**40:020}.timeindex"
    offsets.write_bytes(pack(">iiii", 7, 4096, 9, 8192))
    times.write_bytes(pack(">qi", 1000, 7))
    assert list(read_offset_index(offsets)) == [OffsetEntry(2**40 + 7, 4096), OffsetEntry(2**40 + 9, 8192)]
    assert list(read_time_index(times)) == [TimeEntry(1000, 2**40 + 7)]


@pytest.mark.parametrize("zeros", [0, 8, 2**16 - 8, 2**16, 2**16 + 8, 10 * 2**20])
@pytest.mark.parametrize("entries", [0, 1, 2**13])
def test_zeros_after_the_entries_of_an_open_index_are_no_entries(tmp_path: Path, zeros: int, entries: int) -> None:
    path = tmp_path / f"{0:020}.index"
    expected = [OffsetEntry(number, 64 * number) for number in range(1, entries + 1)]
    path.write_bytes(b"".join(pack(">ii", each.offset, each.position) for each in expected) + bytes(zeros))
    assert list(read_offset_index(path)) == expected


def test_an_index_that_is_not_named_after_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "copy.index"
    path.write_bytes(bytes(8))
    with pytest.raises(LogFileError, match="not named after an offset"):
        walk_offset_index(path)


def test_space_for_more_entries_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.index"
    path.write_bytes(pack(">ii", 7, 256) + bytes(8 * 1000))
    assert list(read_offset_index(path)) == [OffsetEntry(7, 256)]


def test_a_truncated_index_is_reported_and_the_rest_read(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.index"
    path.write_bytes(pack(">iiii", 7, 4096, 9, 8192) + b"\0\0\0")
    entry, other, fault = walk_offset_index(path)
    assert (entry, other) == (OffsetEntry(7, 4096), OffsetEntry(9, 8192))
    assert isinstance(fault, LogFileError)
    assert str(fault) == f"{path} at byte 16: 3 bytes left, an entry has 8"
    assert fault.skipped == 3
    assert list(skip_faults(walk_offset_index(path))) == [entry, other]
    with pytest.raises(LogFileError, match="3 bytes left"):
        list(read_offset_index(path))


def test_entries_that_do_not_ascend_are_reported(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.timeindex"
    path.write_bytes(pack(">qiqiqi", 1000, 7, 900, 8, 2000, 9))
    entries = list(walk_time_index(path))
    assert [isinstance(entry, LogFileError) for entry in entries] == [False, True, False]
    fault = entries[1]
    assert isinstance(fault, LogFileError)
    assert (fault.position, fault.skipped) == (12, 12)


def test_aborted_transactions(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.txnindex"
    path.write_bytes(pack(">hqqqq", 0, 7, 10, 20, 15) + pack(">hqqqq", 0, 8, 15, 30, 31))
    assert list(read_aborted_transactions(path)) == [
        AbortedTransaction(0, 7, 10, 20, 15),
        AbortedTransaction(0, 8, 15, 30, 31),
    ]


@pytest.mark.parametrize("entry", [(1, 8, 15, 30, 31), (0, 8, 31, 30, 31), (0, 8, -1, 30, 31), (0, 8, 15, 20, 31)])
def test_an_aborted_transaction_that_cannot_be(tmp_path: Path, entry: tuple[int, ...]) -> None:
    path = tmp_path / f"{0:020}.txnindex"
    path.write_bytes(pack(">hqqqq", 0, 7, 10, 20, 15) + pack(">hqqqq", *entry))
    first, fault = walk_aborted_transactions(path)
    assert first == AbortedTransaction(0, 7, 10, 20, 15)
    assert isinstance(fault, LogFileError)
    assert fault.position == 34


def test_cuts_are_starts_of_batches_that_are_far_enough_apart(segment: Segment) -> None:
    size = STARTS[2]
    found = list(segment.marks(0, segment.size, size))
    assert [position for position, _ in found] == [STARTS[number] for number in (3, 5, 7, 9)]
    assert [batch.last_offset for _, batch in found] == [BASE + 39, BASE + 59, BASE + 79, BASE + 99]
    assert list(segment.cuts(0, segment.size, size)) == [0, *(position for position, _ in found)]
    assert list(segment.cuts(0, segment.size, size, BASE + 30)) == [STARTS[number] for number in (3, 5, 7, 9)]
    assert list(segment.cuts(0, segment.size, segment.size)) == [0]


ASCENDING = st.lists(st.integers(1, 10**6), unique=True, max_size=40).map(sorted)


@given(ASCENDING, st.integers(0, 3) | st.just(1000))
def test_decoded_entries_are_those_of_the_whole_index(numbers: list[int], space: int) -> None:
    offsets = b"".join(pack(">ii", each, 2 * each) for each in numbers) + bytes(8 * space)
    times = b"".join(pack(">qi", 2 * each, each) for each in numbers) + bytes(12 * space)
    assert list(IndexEntries(offsets, OFFSET_LAYOUT)) == [(each, 2 * each) for each in numbers]
    assert list(IndexEntries(times, TIME_LAYOUT)) == [(2 * each, each) for each in numbers]


def test_few_entries_of_a_long_index_are_read(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    content, count = bytearray(12 * 2**17), 10**5
    for number in range(count):
        pack_into(">qi", content, 12 * number, number + 1, number + 1)
    segment.path.with_suffix(".timeindex").write_bytes(content)
    entry = Mock(side_effect=IndexEntries.__getitem__)
    monkeypatch.setattr(IndexEntries, "__getitem__", lambda self, number: entry(self, number))
    segment.time_before(70_000)
    assert 0 < entry.call_count <= 30


def test_an_entry_with_a_time_that_its_batch_has_not_is_not_followed(segment: Segment) -> None:
    segment.path.with_suffix(".timeindex").write_bytes(pack(">qi", 1000 * BASE, 59))
    assert finds_everything(segment)
    assert segment.time_before() is None
