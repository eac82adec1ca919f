"""Both implementations of records agree on values, bytes and errors."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.binary_layouts import RecordField
from kafka_msgs.errors import RecordWriteError
from kafka_msgs.records import BatchBuilder, CompressionType, Record, builder, python
from tests.support.batches import BatchSpec, described, read_one, sealed
from tests.support.damaged_batches import mutated, outcome
from tests.support.implementations import name_of


@settings(max_examples=60, deadline=None)
@given(described(2))
def test_both_write_the_same_bytes(implementation: Any, batch: BatchSpec) -> None:
    written = batch.written()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "_IMPLEMENTATION", python)
        assert batch.written() == written


def place(data: bytes, views: bool, base_offset: int = 7, append_timestamp: int | None = None) -> tuple[Any, ...]:
    """Return the arguments after the part for the records of an uncompressed batch."""
    batch = read_one(data, check_crc=False)
    return data, 61, len(data), batch.count, base_offset, batch.base_timestamp, append_timestamp, views


@settings(max_examples=100, deadline=None)
@given(described(2), st.integers(0, 2**32), st.booleans(), st.sampled_from([None, 5]))
def test_both_read_damaged_batches_alike(
    implementation: Any, batch: BatchSpec, seed: int, views: bool, append_timestamp: int | None
) -> None:
    whole = BatchSpec(2, CompressionType.NONE, batch.records, batch.base_offset, None, batch.header).written()
    for data in (whole, sealed(whole[:61] + mutated(whole[61:], Random(seed)))):
        for part in RecordField:
            arguments = (part, *place(data, views, append_timestamp=append_timestamp))
            found = outcome(lambda: implementation.read(*arguments))  # noqa: B023
            assert found == outcome(lambda: python.read(*arguments))  # noqa: B023


@pytest.mark.parametrize("part", [each for each in RecordField if each is not RecordField.MARKS])
def test_parts_are_the_fields_of_the_records(implementation: Any, part: RecordField) -> None:
    records = tuple(Record(7 + 3 * n, n // 2, b"k" if n % 3 else None, b"v" * n, (("h", b""),)) for n in range(40))
    data = BatchSpec(2, CompressionType.NONE, records, 7).written()
    names = ("offset", "timestamp", "key", "value")
    expected = [records[n] if part is RecordField.RECORDS else getattr(records[n], names[part - 1]) for n in range(40)]
    assert implementation.read(part, *place(data, views=False)) == expected
    assert implementation.read(part, *place(data, views=True)) == expected
    batch = read_one(data)
    parts = [batch.records(), batch.offsets(), batch.timestamps(), batch.keys(), batch.values()]
    assert parts[part] == expected


def test_sums_of_more_than_64_bits_are_read_as_they_are(implementation: Any) -> None:
    data = bytes.fromhex("10 00 02 02 02 6b 02 76 00 10 00 01 01 02 6b 02 76 00")
    for base, step in ((2**63 - 1, (1, -1)), (-(2**63), (1, -1))):
        for part in (RecordField.OFFSETS, RecordField.TIMESTAMPS):
            found = implementation.read(part, data, 0, len(data), 2, base, base, None, False)
            assert found == [base + each for each in step]


def test_headers_may_differ_from_those_of_the_record_before() -> None:
    names = ["a", "", "a", "ü", "a" * 300, "\udc80", "b"]
    batches = [tuple((names[(n + at) % 7], b"%d" % n) for at in range(n)) for n in (1, 1, 3, 20, 40, 0, 5, 40)]
    made = BatchBuilder()
    for headers in batches:
        assert made.append(None, None, headers=headers)
    assert [record.headers for record in read_one(made.build())] == batches


@pytest.mark.parametrize("views", [False, True])
def test_records_in_c_are_unknown_to_the_collector(implementation: Any, views: bool) -> None:
    """Records cannot be part of a cycle, so programs that hold many do not pay for garbage collection."""
    made = BatchBuilder()
    made.append(b"key", b"value", headers=[("name", b"content")])
    (record,) = batch = read_one(made.build(), zero_copy=views).records()
    assert gc.is_tracked(batch)
    tracked = [gc.is_tracked(each) for each in (record, record.headers, record.headers[0])]
    assert tracked == [name_of(implementation) == "python"] * 3 or name_of(implementation) == "python"


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((None,), {}),
        ((None, None, 5), {}),
        ((None, None), {"key": None}),
        ((None, None), {"partition": 5}),
        ((None,), {"key": None, "value": None}),
    ],
)
def test_arguments_that_do_not_exist_are_type_errors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    made = BatchBuilder()
    with pytest.raises(TypeError, match=r"append\(\)"):
        made.append(*args, **kwargs)
    assert made.count == 0


class Number(int):
    """An int that is not exactly one."""


class Content(bytes):
    """Bytes that are not exactly bytes."""


INEXACT: list[dict[str, Any]] = [
    {"key": bytearray(b"k"), "value": memoryview(b"vwx")[::2]},
    {"key": Content(b"k"), "value": Content()},
    {"timestamp": Number(5), "offset": Number(9)},
    {"timestamp": 2**62, "offset": 2**31 - 1},
    {"headers": iter([("a", memoryview(b"b")), ("ü", bytearray(b"c"))])},
    {"headers": [("\udcff", None)], "offset": True},
    {"headers": None},
    {"headers": (("n", b"v"),) * 200},
]


@pytest.mark.parametrize("arguments", INEXACT, ids=range(len(INEXACT)))
def test_what_is_not_exact_is_written_as_what_it_stands_for(arguments: dict[str, Any]) -> None:
    expected = {"key": None, "value": None, **arguments}
    headers = expected["headers"] = list(arguments.get("headers") or ())
    made = BatchBuilder()
    made.append(**{**expected, "headers": iter(headers) if "headers" in arguments else ()})
    (record,) = read_one(made.build())
    assert record == Record(
        int(arguments.get("offset", 0)),
        arguments.get("timestamp", -1),
        None if expected["key"] is None else bytes(expected["key"]),
        None if expected["value"] is None else bytes(expected["value"]),
        tuple((name, None if value is None else bytes(value)) for name, value in headers),
    )


def test_a_timestamp_too_far_from_the_base_is_refused() -> None:
    made = BatchBuilder()
    assert made.append(None, None)
    with pytest.raises(RecordWriteError, match="timestamp"):
        made.append(None, None, timestamp=2**63 - 1)
    assert made.append(None, None, timestamp=2**63 - 2)
    assert read_one(made.build()).timestamps() == [-1, 2**63 - 2]


def test_headers_that_append_records_themselves_come_after_those() -> None:
    made = BatchBuilder()

    def headers() -> Iterator[tuple[str, bytes]]:
        for number in range(100):
            made.append(None, bytes(number))
            yield "n", b"%d" % number

    assert made.append(None, b"last", headers=headers())
    batch = read_one(made.build())
    assert batch.offsets() == list(range(101))
    assert batch.values()[-1] == b"last"


def test_a_builder_may_override_append() -> None:
    class Counting(BatchBuilder):
        calls = 0

        def append(self, *args: Any, **kwargs: Any) -> bool:
            self.calls += 1
            return super().append(*args, **kwargs)

    made = Counting()
    made.append(None, b"v")
    assert (made.calls, made.count) == (1, 1)


def test_nothing_is_appended_while_the_records_are_looked_at(implementation: Any) -> None:
    made = implementation.RecordAppender(0, 5, None, None)
    made.append(None, b"v")
    with memoryview(implementation.appended_bytes(made)) as view:
        with pytest.raises(BufferError):
            made.append(None, b"w")
        assert len(view) == made.size
    made.append(None, b"w")
    assert (made.count, made.next_offset) == (2, 2)


@pytest.mark.parametrize("limit", [0, 61, 100])
def test_the_first_record_is_taken_and_no_other_where_the_limit_is_small(limit: int) -> None:
    made = BatchBuilder(size_limit=limit)
    assert made.append(None, b"x" * 500)
    assert not made.append(None, None)
    assert made.count == 1


def test_a_batch_that_was_built_does_not_change_when_more_records_follow() -> None:
    made, built, copies = BatchBuilder(), [], []
    for number in range(50):
        made.append(None, b"v" * number)
        if number % 3 == 0:
            built += [made.build(), made.build()]
            copies += [bytes(bytearray(built[-1])), bytes(bytearray(built[-1]))]
    assert built == copies
    assert hash(built[3]) == hash(copies[3])
