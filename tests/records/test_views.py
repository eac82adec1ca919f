"""Batches in views: the same records as in bytes, and no copies of the bytes in the C core."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.errors import CrcMismatchError
from kafka_msgs.records import BatchBuilder, ReadOptions, read_batches
from kafka_msgs.records import batch as batch_module

BEFORE = b"other bytes"


def batches(count: int) -> bytes:
    made = []
    for number in range(count):
        builder = BatchBuilder()
        builder.append(key=b"k", value=b"value %d" % number, timestamp=number)
        made.append(builder.build())
    return b"".join(made)


class Subclass(bytes):
    pass


FORMS: dict[str, Any] = {
    "bytes": lambda data: data,
    "view": memoryview,
    "part of a view": lambda data: memoryview(BEFORE + data + BEFORE)[len(BEFORE) : -len(BEFORE)],
    "part of a part": lambda data: memoryview(BEFORE + data)[5:][len(BEFORE) - 5 :],
    "bytearray": bytearray,
    "view of a bytearray": lambda data: memoryview(bytearray(BEFORE + data))[len(BEFORE) :],
    "view of a subclass": lambda data: memoryview(Subclass(BEFORE + data))[len(BEFORE) :],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_buffer_has_the_same_batches(form: str) -> None:
    data = batches(3)
    expected = list(read_batches(data))
    found = list(read_batches(FORMS[form](data)))
    assert [(batch.position, batch.size) for batch in found] == [(batch.position, batch.size) for batch in expected]
    assert [list(batch) for batch in found] == [list(batch) for batch in expected]


@pytest.mark.parametrize("form", FORMS)
def test_errors_have_positions_in_the_buffer(form: str) -> None:
    data = bytearray(batches(2))
    data[-1] ^= 1
    reader = read_batches(FORMS[form](bytes(data)))
    first: Any = next(reader)
    with pytest.raises(CrcMismatchError) as refused:
        next(reader)
    assert refused.value.position == first.size


def test_a_view_of_bytes_is_read_in_place() -> None:
    if batch_module._IMPLEMENTATION.__name__.endswith("python"):
        pytest.skip("Python cannot find the offset of a view in its object")
    frame = BEFORE + batches(2)
    for view in (memoryview(frame)[len(BEFORE) :], frame[len(BEFORE) :]):
        for batch in read_batches(view, ReadOptions(zero_copy=True)):
            for record in batch:
                assert isinstance(record.value, memoryview)
                assert record.value.obj is (frame if isinstance(view, memoryview) else view)


def test_a_view_with_gaps_is_refused() -> None:
    with pytest.raises(TypeError):
        read_batches(memoryview(bytes(200))[::2])


def test_the_source_of_a_view() -> None:
    extension = pytest.importorskip("kafka_msgs._core.extension")
    data = bytes(range(40))
    assert extension.view_source(memoryview(data)) == (data, 0)
    assert extension.view_source(memoryview(data)[3:9]) == (data, 3)
    assert extension.view_source(memoryview(data)[4:].cast("i")) == (data, 4)
    released = memoryview(data)
    released.release()
    others = (released, data, 7, None, memoryview(bytearray(data)), memoryview(data)[::2], memoryview(Subclass(data)))
    assert [extension.view_source(other) for other in others] == [None] * len(others)
