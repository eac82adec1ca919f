"""The C records hold exactly the references they own, for any outcome of a call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from kafka_msgs import KafkaMsgsError
from kafka_msgs.binary_layouts import RecordField
from kafka_msgs.records import Batch, BatchBuilder, BatchHeader, Payload, ReadOptions, Record, read_batches
from kafka_msgs.records.builder import RowColumns
from tests.support.batches import sealed
from tests.support.damaged_batches import mutated
from tests.support.implementations import name_of
from tests.support.refcounts import check_balance, fail_each

SHARED: list[Any] = [None, True, False, (), b"", "", 0, 1, -1, Record]


def rich_batch() -> bytes:
    """Return a batch of records with keys and headers, including repeated names, and numbers beyond the small ints."""
    made = BatchBuilder(BatchHeader(base_offset=2**40))
    for number in range(30):
        headers = [("source", b"till"), ("größe", None), (f"n{number}", b"%d" % number)][: number % 4]
        key = None if number % 5 == 0 else b"key-%d" % number
        made.append(key, b"v" * number, timestamp=2**40 + number // 3, headers=headers)
    return made.build()


def walked(batch: Batch) -> list[Record]:
    """Return the records of a batch, each created during the walk."""
    return list(batch.lazy_records())


@pytest.fixture(autouse=True)
def _only_in_c(implementation: Any) -> None:
    if name_of(implementation) != "native":
        pytest.skip("this is about the core")


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("part", RecordField)
def test_reading_leaves_the_counts_as_they_were(implementation: Any, part: RecordField, views: bool) -> None:
    data = rich_batch()
    chance = Random(5)
    damaged = [sealed(data[:61] + mutated(data[61:], chance)) for _ in range(40)]

    def read_all() -> None:
        for each in (data, *damaged):
            with contextlib.suppress(KafkaMsgsError):
                for batch in read_batches(each, ReadOptions(zero_copy=views)):
                    walk = partial(walked, batch)
                    (batch.records, batch.offsets, batch.timestamps, batch.keys, batch.values, walk)[part]()

    check_balance(read_all, [*SHARED, data])


def test_writing_leaves_the_counts_as_they_were() -> None:
    content, view = b"content" * 30, memoryview(b"view")
    headers: list[tuple[str, Payload | None]] = [("name", content), ("größe", view)]

    def write_all() -> None:
        made = BatchBuilder(size_limit=3000)
        assert made.append_rows(ROWS, 0, 1, timestamp=5) == 1
        while made.append(content, content, timestamp=2**40, headers=headers[:1]):
            assert made.append(view, None, headers=headers)
        wrongs: tuple[dict[str, Any], ...] = ({"offset": -1}, {"timestamp": 2**70}, {"headers": [5]}, {"headers": 5})
        for wrong in wrongs:
            with contextlib.suppress(KafkaMsgsError, TypeError):
                made.append(content, content, **wrong)
        assert made.build() == made.build()

    check_balance(write_all, [*SHARED, content, view, *headers])


NO_CONTENTS = (None, None, None, 0, None, 0)
ROWS = RowColumns((0).to_bytes(8, "little") + (3).to_bytes(8, "little"), b"key", b"\1", 0, *NO_CONTENTS)


def test_wrong_calls_leak_no_references(implementation: Any) -> None:
    data = rich_batch()
    wrong: list[Callable[[], object]] = [
        lambda: implementation.read(9, data, 61, len(data), 1, 0, 0, None, False),
        lambda: implementation.read(0, data, -1, len(data), 1, 0, 0, None, False),
        lambda: implementation.read(0, data, 61, len(data) + 1, 1, 0, 0, None, False),
        lambda: implementation.read(0, data, 9, 8, 1, 0, 0, None, False),
        lambda: implementation.read(0, bytearray(data), 61, len(data), 1, 0, 0, None, False),
        lambda: implementation.read(0, data, 61, len(data), 1, 0, 0, "now", False),
        lambda: implementation.RecordAppender(0, 5, "now", None),
        lambda: implementation.RecordAppender(0, 5, None, "much"),
        lambda: implementation.RecordAppender(0, 5, None, None, None),
        lambda: implementation.RecordAppender(0, 5, None, None).sealed(b"head"),
        lambda: implementation.RecordAppender(0, 5, None, None).append_rows(0, 3, 0, data, data, None, 0, *NO_CONTENTS),
        lambda: implementation.RecordAppender(0, 5, None, None).append_rows(0, 3, 0, data, 5, None, 0, *NO_CONTENTS),
    ]

    def refuse_all() -> None:
        for call in wrong:
            with pytest.raises((TypeError, ValueError)):
                call()

    check_balance(refuse_all, [*SHARED, data])


def test_an_allocation_that_fails_anywhere_ends_in_memory_error(implementation: Any) -> None:
    data = rich_batch()
    content, headers = b"content" * 100, [("name", b"content")]
    read, collector = implementation.read, implementation.RecordAppender

    def write() -> None:
        made = collector(0, 50, None, None)
        for _ in range(20):
            made.append(content, content, headers=headers)
        made.sealed(data[:8] + (49 + made.size).to_bytes(4, "big") + data[12:61])
        made.append(content, content, headers=headers)

    def fail() -> None:
        for part, least in (
            (RecordField.RECORDS, 120),
            (RecordField.OFFSETS, 30),
            (RecordField.VALUES, 30),
            (RecordField.MARKS, 1),
        ):
            for views in (False, True):
                assert fail_each(lambda: read(part, data, 61, len(data), 30, 2**40, 2**40, None, views)) >= least  # noqa: B023
        assert fail_each(write) > 3

    check_balance(fail, [*SHARED, content])
