"""Records from columns: the same bytes as record by record, in both implementations, without reads beyond a buffer."""

from __future__ import annotations

from array import array
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import RecordWriteError
from kafka_msgs.records import BatchBuilder, BatchHeader
from kafka_msgs.records.builder import RowColumns
from tests.support.implementations import implementations, name_of

IMPLEMENTATIONS = pytest.mark.parametrize("implementation", implementations("kafka_msgs.records"), ids=name_of)

contents = st.none() | st.binary(max_size=300)
rows = st.lists(st.tuples(contents, contents, st.integers(-1, 2**62)), max_size=30)


def column(values: list[bytes | None], first: int) -> tuple[Any, Any, Any, int]:
    """Return the offsets, bytes and flags of contents, preceded by some unused offsets."""
    offsets, data = array("q", [0] * first), b""
    for value in values:
        offsets.append(len(data))
        data += value or b""
    offsets.append(len(data))
    valid = None if None not in values else bytes(value is not None for value in values)
    return offsets.tobytes(), data, valid, first


def columns(found: list[tuple[bytes | None, bytes | None, int]], first: int = 0) -> RowColumns:
    """Return rows as columns."""
    times = array("q", [7] * first + [time for _, _, time in found]).tobytes()
    return RowColumns(
        *column([key for key, _, _ in found], first), *column([value for _, value, _ in found], first), times, first
    )


@IMPLEMENTATIONS
@given(found=rows, first=st.integers(0, 3), room=st.none() | st.integers(0, 2000), start=st.integers(0, 5))
def test_rows_are_written_as_records_are(
    implementation: ModuleType,
    found: list[tuple[bytes | None, bytes | None, int]],
    first: int,
    room: int | None,
    start: int,
) -> None:
    start = min(start, len(found))
    single, together = (implementation.RecordAppender(5, 2**40, None, room) for _ in range(2))
    expected = 0
    for key, value, time in found[start:]:
        if not single.append(key, value, timestamp=time):
            break
        expected += 1
    assert together.append_rows(start, len(found), 0, *columns(found, first)) == expected
    assert implementation.appended_bytes(together) == implementation.appended_bytes(single)
    for name in ("count", "next_offset", "base_timestamp", "max_timestamp", "size"):
        assert getattr(together, name) == getattr(single, name), name


@IMPLEMENTATIONS
def test_columns_that_are_missing_are_null_and_have_one_time(implementation: ModuleType) -> None:
    single, together = (implementation.RecordAppender(0, 2**40, None, None) for _ in range(2))
    for _ in range(3):
        single.append(None, None, timestamp=9)
    assert together.append_rows(0, 3, 9, *RowColumns(None, None, None, 0, None, None, None, 0, None, 0)) == 3
    assert implementation.appended_bytes(together) == implementation.appended_bytes(single)


@IMPLEMENTATIONS
def test_a_row_that_cannot_be_written_ends_the_rows(implementation: ModuleType) -> None:
    made = implementation.RecordAppender(0, 1, None, None)
    assert made.append_rows(0, 2, 0, *columns([(b"k", b"v", 5), (b"k", b"v", -2)])) == 1
    assert made.append_rows(0, 2, 0, *columns([(b"k", b"v", 5), (b"k", b"v", 6)])) == 1, "no offset is left"
    assert made.count == 2


GOOD = columns([(b"key", b"value", 5)] * 3)
OUTSIDE = array("q", [0, 3, 2**40, 9]).tobytes()
BACKWARDS = array("q", [0, 3, 2, 9]).tobytes()
NEGATIVE = array("q", [0, -3, 3, 9]).tobytes()


@IMPLEMENTATIONS
@pytest.mark.parametrize(
    "changes",
    [
        {"key_offsets": GOOD.key_offsets[:-8]},
        {"value_offsets": b""},
        {"value_first": 1},
        {"key_first": 2**60},
        {"key_valid": b"\1\1"},
        {"times": GOOD.times[:-8]},
        {"first_time": 1},
        {"key_offsets": OUTSIDE},
        {"value_offsets": BACKWARDS},
        {"key_offsets": NEGATIVE},
        {"value_data": b"short"},
        {"value_data": None},
    ],
    ids=str,
)
def test_columns_that_do_not_have_the_rows_are_refused(implementation: ModuleType, changes: dict[str, Any]) -> None:
    made = implementation.RecordAppender(0, 2**40, None, None)
    with pytest.raises(ValueError, match="column"):
        made.append_rows(0, 3, 0, *GOOD._replace(**changes))
    assert made.append_rows(0, 3, 0, *GOOD) == 3


@IMPLEMENTATIONS
@pytest.mark.parametrize("place", [(-1, 2), (2, 1), (0, 2**63 - 1)])
def test_rows_that_there_cannot_be_are_refused(implementation: ModuleType, place: tuple[int, int]) -> None:
    made = implementation.RecordAppender(0, 2**40, None, None)
    with pytest.raises(ValueError, match="column"):
        made.append_rows(*place, 0, *GOOD)
    assert made.count == 0


def test_a_builder_takes_rows_up_to_its_size() -> None:
    builder = BatchBuilder(size_limit=100)
    taken = builder.append_rows(GOOD, 0, 3, timestamp=0)
    assert 0 < taken < 3
    assert builder.count == taken
    with pytest.raises(RecordWriteError, match="control"):
        BatchBuilder(BatchHeader(control=True)).append_rows(GOOD, 0, 3, timestamp=0)
