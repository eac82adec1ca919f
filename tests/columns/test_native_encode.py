"""The C core that encodes columns: references, failed allocations, and invalid buffers and programs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_msgs import DescribeGroupsResponse, FetchResponse, MetadataResponse, OffsetCommitValue, VotersRecord
from kafka_msgs._backend import backend
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.columns import arrow_type, decode_column
from kafka_msgs.columns.lowering import Lowering
from tests.support.columns import prefixed_rows
from tests.support.refcounts import check_balance, without_memory

native = pytest.importorskip("kafka_msgs.columns.native", reason="the C core is not built")
pytestmark = pytest.mark.skipif(backend() != "c", reason="another backend was chosen")

CLASSES: list[Any] = [MetadataResponse, FetchResponse, DescribeGroupsResponse, VotersRecord, OffsetCommitValue]


def column(cls: Any) -> pa.StructArray:
    """Return rows of all versions of a message, one of them null."""
    return decode_column(pa.array([None, *(data for _, data in prefixed_rows(cls, 3))]), cls).values


def inputs(cls: Any) -> tuple[tuple[Any, ...], Any, int]:
    """Return the core's input for ``column`` at the highest version: the columns, the versions, and the row count."""
    array = column(cls)
    numbers = native._leaf(pa.array([cls.INFO.versions.highest], pa.int16()), True)
    return tuple(native._struct(array, cls, arrow_type(cls), False)), numbers, len(array)


def program(cls: Any, allocate: Callable[[int], Any] = native._allocate) -> Any:
    parts = Lowering(arrow_type(cls)).program(cls, None, DEFAULT_OPTIONS)
    return native.extension.ColumnProgram(*parts, allocate)


@pytest.mark.parametrize("cls", [VotersRecord, OffsetCommitValue], ids=lambda cls: cls.__name__)
def test_encoding_leaves_all_counts_as_they_were(cls: Any) -> None:
    columns, numbers, count = inputs(cls)
    made = program(cls)
    gc.collect()
    used = pa.total_allocated_bytes()
    check_balance(lambda: made.encode(columns, 0, count, numbers, True), [None, b"", columns, cls])
    assert pa.total_allocated_bytes() == used


def test_memory_that_cannot_be_had_ends_in_memory_error() -> None:
    columns, numbers, count = inputs(MetadataResponse)

    def action(allocate: Callable[[int], Any]) -> None:
        program(MetadataResponse, allocate).encode(columns, 0, count, numbers, False)

    assert 3 < sum(1 for _ in without_memory(action, bytearray)) < 100


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_buffers_that_lie_are_refused_or_read_within_their_bounds(cls: Any) -> None:
    columns, numbers, count = inputs(cls)
    made, rng, refused = program(cls), Random(cls.__name__), 0
    for _ in range(400):
        place, part = rng.randrange(len(columns) + 1), rng.randrange(7)
        spec = [*columns, numbers][place]
        value = spec[part]
        if part < 4:
            value = rng.choice([-9, -8, -4, -2, -1, 0, 1, 2, 3, 4, 8, 40, count, 2**40, 2**62])
        elif value is not None:
            at = rng.randrange(value.size + 1)
            noise = rng.randbytes(min(8, value.size - at))
            value = rng.choice([None, value.slice(0, at), value[:at].to_pybytes() + noise])
        lying = [*columns, numbers]
        lying[place] = (*spec[:part], value, *spec[part + 1 :])
        try:
            found = made.encode(tuple(lying[:-1]), 0, count, lying[-1], False)
        except (ValueError, OverflowError):
            refused += 1
        else:
            assert found[0][0] == count
            assert found[0][1] <= count
    assert 40 < refused < 400


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_programs_that_lie_read_only_their_columns(cls: Any) -> None:
    columns, numbers, count = inputs(cls)
    shape, structs, *rest = Lowering(arrow_type(cls)).program(cls, None, DEFAULT_OPTIONS)
    rng, refused = Random(cls.__name__), 0

    def changed(spec: Any) -> Any:
        if not isinstance(spec, tuple) or not spec:
            return rng.choice([-1, 0, 1, 2, 5, 9, 12, 13, 14, 40, None, b"", b"\0" * 4, ()])
        number = rng.randrange(len(spec))
        return (*spec[:number], changed(spec[number]), *spec[number + 1 :])

    for _ in range(400):
        try:
            made = native.extension.ColumnProgram(shape, changed(structs), *rest, native._allocate)
        except (ValueError, TypeError, OverflowError, SystemError):
            refused += 1
            continue
        found = made.encode(columns, 0, count, numbers, True)
        assert found[0][0] == count
    assert 40 < refused < 400


def test_offsets_that_do_not_ascend_or_leave_the_content_are_refused() -> None:
    _, numbers, _ = inputs(OffsetCommitValue)
    made, whole = program(OffsetCommitValue), arrow_type(OffsetCommitValue)
    array = pa.array([{"metadata": "a"}, {"metadata": "b"}])
    columns = tuple(native._struct(array, OffsetCommitValue, whole, False))
    place = 1 + whole.get_field_index("metadata")
    for wrong in ([0, 9, 3], [-1, 0, 0], [0, 0, 2**31 - 1]):
        offsets = pa.array(wrong, pa.int32()).buffers()[1]
        lying = (*columns[:place], (4, False, 0, 2, None, offsets, b"x" * 9), *columns[place + 1 :])
        with pytest.raises(ValueError, match="not ascending or not within"):
            made.encode(lying, 0, 2, numbers, False)


def test_columns_for_another_program_are_refused() -> None:
    columns, numbers, count = inputs(OffsetCommitValue)
    made = program(OffsetCommitValue)
    for wrong in ((columns[:-1], numbers, 0, count), (columns, numbers, 1, count), (columns, numbers, -1, 1)):
        with pytest.raises(ValueError, match="do not hold as many rows"):
            made.encode(wrong[0], *wrong[2:], wrong[1], False)
    with pytest.raises(TypeError):
        native.extension.ColumnProgram.__new__(native.extension.ColumnProgram).encode(columns, 0, count, numbers, False)
