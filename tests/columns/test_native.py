"""The C core of columns: references, failed allocations, accepted programs, and concurrent use."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_msgs import DescribeGroupsResponse, FetchResponse, MetadataResponse, OffsetCommitValue, VotersRecord
from kafka_msgs._backend import backend
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.columns.lowering import Lowering
from kafka_msgs.columns.types import RECORD_SCHEMA, arrow_type
from kafka_msgs.records import BatchBuilder, RecordBatch, read_batches
from tests.support.columns import prefixed_rows, random_rows
from tests.support.damage import mutated
from tests.support.refcounts import check_balance, without_memory

native = pytest.importorskip("kafka_msgs.columns.native", reason="the C core is not built")
pytestmark = pytest.mark.skipif(backend() != "c", reason="another backend was chosen")

CLASSES: list[Any] = [MetadataResponse, FetchResponse, DescribeGroupsResponse, VotersRecord, OffsetCommitValue]
RECORD_COLUMNS = [name for name in RECORD_SCHEMA.names if name != "timestamp_ms"]
EVERYTHING = (0, 10**6, 2**40, 2**40, lambda codec, stored: None)
"""The position of the data, the element limit, the limits at which columns are full, and the decompressor."""


def column(cls: Any, seed: int = 0) -> pa.Array:
    """Return rows of all versions of a message, some damaged, some null."""
    rng = Random(seed)
    rows: list[bytes | None] = [None]
    for _, data in prefixed_rows(cls, 3):
        rows += [data, mutated(rng, data)]
    rng.shuffle(rows)
    return pa.array(rows, pa.binary())


def decoded(cls: Any, array: pa.Array) -> Any:
    (part,) = native.decoder(cls, None, arrow_type(cls), DEFAULT_OPTIONS)(array)
    return part


def batch(count: int = 40) -> RecordBatch:
    """Return a batch with records of every kind: null and empty contents, with and without headers."""
    builder = BatchBuilder()
    for number in range(count):
        headers = [(f"name {n}", None if n % 2 else b"h" * n) for n in range(number % 4)]
        key, value = None if number % 3 else b"", b"v" * number if number % 5 else None
        builder.append(key, value, timestamp=number, headers=headers)
    (made,) = read_batches(builder.build())
    assert isinstance(made, RecordBatch)
    return made


def append(columns: Any, made: RecordBatch, cut: int = 0) -> bool:
    """Append a batch whose record count is too large by ``cut``; return whether it was added."""
    stored = bytearray(made.stored_bytes)
    stored[57:61] = (made.count + cut).to_bytes(4, "big")
    return bool(columns._core.append(stored, 0, len(stored), *EVERYTHING) == len(stored))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_decoding_leaves_all_counts_as_they_were(cls: Any) -> None:
    array = column(cls)
    gc.collect()
    used = pa.total_allocated_bytes()
    check_balance(lambda: decoded(cls, array), [None, b"", array, cls])
    assert pa.total_allocated_bytes() == used


def test_collecting_records_leaves_all_counts_as_they_were() -> None:
    made = batch()
    gc.collect()
    used = pa.total_allocated_bytes()

    def collect() -> None:
        columns = native.RecordColumns(RECORD_COLUMNS)
        assert [append(columns, made), append(columns, made, cut=1), append(columns, made)] == [True, False, True]
        assert len(columns.finish()[0]) == 2 * made.count
        assert append(columns, made)

    check_balance(collect, [None, b"", made])
    assert pa.total_allocated_bytes() == used


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_memory_that_cannot_be_had_ends_in_memory_error(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    array = column(cls)
    chosen: list[Callable[[int], Any]] = [bytearray]
    monkeypatch.setattr(native, "_allocate", lambda size: chosen[0](size))
    program = native.extension.ColumnProgram(*programs(cls), native._allocate)
    used = pa.total_allocated_bytes()

    def action(allocate: Callable[[int], Any]) -> None:
        chosen[0] = allocate
        program.decode((native._leaf(array, False),), 0, len(array))

    assert sum(1 for _ in without_memory(action, partial(pa.allocate_buffer, resizable=True))) > 10
    assert pa.total_allocated_bytes() == used


def test_a_batch_for_which_there_is_no_memory_is_not_added_and_can_be_added_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = batch()
    calls = [0]

    def allocate(size: int) -> Any:
        calls[0] += 1
        if calls[0] % 17 == 0:
            raise MemoryError
        return pa.allocate_buffer(size, resizable=True)

    monkeypatch.setattr(native, "_allocate", allocate)
    columns = native.RecordColumns(RECORD_COLUMNS)
    added = failures = 0
    while added < 12:
        try:
            assert append(columns, made)
            added += 1
        except MemoryError:
            failures += 1
    assert failures > 1
    found = columns.finish()
    monkeypatch.undo()
    expected = native.RecordColumns(RECORD_COLUMNS)
    for _ in range(12):
        append(expected, made)
    assert found == expected.finish()


@pytest.mark.parametrize("memory", [lambda size: bytearray(size - 1), bytes, lambda _: None])
def test_memory_that_is_too_small_or_cannot_be_written_is_refused(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_allocate", memory)
    with pytest.raises((ValueError, BufferError, TypeError)):
        append(native.RecordColumns(RECORD_COLUMNS), batch())


def programs(cls: Any) -> tuple[Any, ...]:
    """Return the arguments for the program of a message, without the last one, the allocator."""
    return Lowering(arrow_type(cls)).program(cls, None, DEFAULT_OPTIONS)


def changed(spec: Any, rng: Random) -> Any:
    """Return nested tuples with one leaf or one tuple changed."""
    if not isinstance(spec, tuple) or not spec:
        return rng.choice([-1, 0, 1, 2, 5, 9, 12, 13, 14, 40, 2**31, None, b"", b"\0" * 4, ()])
    number = rng.randrange(len(spec))
    if rng.random() < 0.05:
        return spec[:number] + spec[number + 1 :]
    return (*spec[:number], changed(spec[number], rng), *spec[number + 1 :])


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_program_can_make_the_core_write_beside_its_columns(cls: Any) -> None:
    """Invalid programs are refused. Valid but meaningless programs fill all of their columns."""
    columns, structs, forms, *rest = (*programs(cls), native._allocate)
    array = column(cls)
    rng = Random(cls.__name__)
    refused = 0
    for _ in range(400):
        parts = [columns, structs, forms]
        place = rng.choice([0, 1, 1, 1, 2])
        parts[place] = changed(parts[place], rng)
        try:
            program = native.extension.ColumnProgram(*parts, *rest)
        except (ValueError, TypeError, OverflowError, SystemError):
            refused += 1
            continue
        found, _ = program.decode((native._leaf(array, False),), 0, len(array))
        assert found[0][0] == len(array)
        assert all(length >= 0 and size >= 0 for length, _, _, _, _, size in found)
    assert 40 < refused < 400


def test_offsets_that_do_not_ascend_or_leave_the_data_are_refused() -> None:
    program, _ = native._program(OffsetCommitValue, None, arrow_type(OffsetCommitValue), DEFAULT_OPTIONS)
    data = next(prefixed_rows(OffsetCommitValue, 1))[1]
    for numbers in ([0, len(data), 3], [-1, len(data), len(data)], [0, len(data), len(data) + 1]):
        offsets = pa.array(numbers, pa.int32()).buffers()[1]
        with pytest.raises(ValueError, match="not ascending or not within"):
            program.decode(((4, False, 0, 2, None, offsets, data),), 0, 2)
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1].slice(0, 12)
    for rows in ((0, 3), (1, 2), (-1, 1), (0, -1), (2**62, 1)):
        with pytest.raises(ValueError, match="do not hold as many rows"):
            program.decode(((4, False, *rows, None, offsets, data),), 0, rows[1])
        with pytest.raises(ValueError, match="do not hold as many rows"):
            program.decode(((4, False, 0, 2, None, offsets, data),), *rows)


def test_what_cannot_be_made_or_read_is_refused() -> None:
    with pytest.raises(TypeError):
        native.extension.ColumnProgram.__new__(native.extension.ColumnProgram).decode(
            ((4, False, 0, 0, None, None, None),), 0, 0
        )
    with pytest.raises(TypeError):
        native.extension.RecordColumns.__new__(native.extension.RecordColumns)
    with pytest.raises(ValueError, match="no further column"):
        native.extension.RecordColumns((2, 2), bytearray, False)
    for start, end in ((0, 2), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match="not within the buffer"):
            native.RecordColumns(("key",))._core.append(b"1", start, end, *EVERYTHING)


def test_an_allocation_may_not_append_to_the_columns_that_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = batch()
    refusals: list[object] = []

    def allocate(size: int) -> Any:
        for call in (lambda: append(columns, made), columns.finish):
            with pytest.raises(RuntimeError, match="another thread is appending"):
                call()
            refusals.append(size)
        return pa.allocate_buffer(size, resizable=True)

    monkeypatch.setattr(native, "_allocate", allocate)
    columns = native.RecordColumns(RECORD_COLUMNS)
    assert append(columns, made)
    assert len(refusals) > 10
    assert len(columns.finish()[0]) == made.count


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_threads_share_a_program(cls: Any) -> None:
    """Each thread decodes its own rows, including damaged ones, and gets exactly those."""
    arrays = [column(cls, seed) for seed in range(8)]
    expected = [decoded(cls, array) for array in arrays]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(20):
                for found, part in zip(pool.map(lambda array: decoded(cls, array), arrays), expected, strict=True):
                    assert found.bad_rows == part.bad_rows
                    assert found.values.equals(part.values)
    finally:
        sys.setswitchinterval(interval)


def test_memory_is_bounded_by_the_rows_however_many_of_them_are_bad() -> None:
    """Bad rows use no memory: a column of bad rows is as large as one with the same number of short rows."""
    version = MetadataResponse.INFO.versions.highest
    data = max((row.encode(version) for row in random_rows(MetadataResponse, version, 20)), key=len)
    type_ = arrow_type(MetadataResponse, version)
    decode = native.decoder(MetadataResponse, version, type_, DEFAULT_OPTIONS)
    sizes = []
    for rows in ([data + b"!"] * 3000, [b""] * 3000):
        (part,) = decode(pa.array(rows, pa.binary()))
        assert len(part.bad_rows) == 3000
        sizes.append(part.values.nbytes)
    assert sizes[0] == sizes[1]
