"""Invalid rows: null exactly if the codec raises, with the codec's error; the other rows stay in place."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_msgs import MetadataResponse, OffsetCommitValue, OffsetFetchRequest
from kafka_msgs.codec import CodecOptions, DecodeBudget, codec_for
from kafka_msgs.codec.ops import MAX_TAGS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.columns import arrow_type, decode, decode_column, python
from kafka_msgs.columns.interface import RowSlice
from kafka_msgs.errors import InternalError, KafkaMsgsError
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.schema import field
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.versioned import decode_versioned
from tests.oracle.mutation import mutations
from tests.support.codecs import message_class, struct_class
from tests.support.columns import CLASSES, NAMES, facts, plain, prefixed_rows
from tests.support.nested_structs import SHAPES, nested

PAIRS = [(cls, version) for cls in CLASSES for version in cls.INFO.versions]

pytestmark = pytest.mark.usefixtures("implementation")


def assert_as_the_codec(data: list[Any], cls: Any, version: int | None, **options: Any) -> int:
    """Compare a column with its rows decoded one at a time; return the number of bad rows."""
    type_ = arrow_type(cls, version)
    chosen = options.get("options", CodecOptions())
    values: list[Any] = []
    errors: list[Any] = []
    for row in data:
        value, error = None, None
        if row is not None:
            try:
                value = plain(one(cls, version, row, chosen), type_)
            except KafkaMsgsError as refused:
                error = facts(refused)
        values.append(value)
        errors.append(error)
    found = decode_column(data, cls, version, **options)
    found.values.validate(full=True)
    assert repr(found.values.to_pylist()) == repr(values)  # NaN does not equal itself
    assert found.errors.to_pylist() == errors
    assert found.error_count == len(data) - errors.count(None)
    return found.error_count


def one(cls: Any, version: int | None, row: bytes, options: CodecOptions) -> Any:
    if version is None:
        return decode_versioned(cls, row, options=options).message
    return codec_for(cls, version, options).decode(row)


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_damaged_rows_between_sound_ones(cls: Any) -> None:
    for version in cls.INFO.versions:
        rng = Random(f"{cls.INFO.name} {version}")
        rows: list[Any] = []
        for _ in range(3):
            data = random_message(cls, version, rng, max_elements=2).encode(version)
            rows += [data, *mutations(compile_plan(cls, version), data, 8, rng), None]
        assert_as_the_codec(rows, cls, version)


def test_a_row_with_more_tags_than_a_section_may_have_is_bad() -> None:
    rows = [unknown_tags(count) for count in (MAX_TAGS, MAX_TAGS + 1, MAX_TAGS)]
    assert assert_as_the_codec(rows, OffsetFetchRequest, 6) == 1


def unknown_tags(count: int) -> bytes:
    tags = b"".join(write_uvarint(tag) + b"\0" for tag in range(count))
    return b"\x01\x01" + write_uvarint(count) + tags


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(PAIRS), st.integers(0, 2**32), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255))))
def test_any_byte_of_any_message_changed(pair: Any, seed: int, changes: list[tuple[float, int]]) -> None:
    cls, version = pair
    sound = random_message(cls, version, Random(seed), max_elements=2).encode(version)
    rows: list[Any] = [sound]
    for place, byte in changes:
        damaged = bytearray(rows[-1] if seed % 2 else sound)
        at = int(place * len(damaged))
        damaged[at : at + 1] = bytes([byte])
        rows += [bytes(damaged), bytes(damaged[:at])]
    assert_as_the_codec([*rows, None, sound], cls, version)


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_damaged_rows_that_say_their_versions(cls: Any) -> None:
    rng = Random(cls.INFO.name)
    rows: list[Any] = [b"", b"\0", b"\x7f\xff", b"\xff\xff\0\0"]
    for _, data in prefixed_rows(cls, 2):
        at = rng.randrange(len(data))
        rows += [data, data[:at], data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :], data + b"\0"]
    assert assert_as_the_codec(rows, cls, None) >= 4


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_damage_is_found_in_columns_that_nobody_asked_for(cls: Any) -> None:
    version = cls.INFO.versions.highest
    rng = Random(cls.INFO.name)
    data = random_message(cls, version, rng).encode(version)
    rows = list(mutations(compile_plan(cls, version), data, 30, rng))
    whole = decode_column(rows, cls, version)
    assert decode_column(rows, cls, version, columns=[]).errors.equals(whole.errors)


def test_a_million_rows_would_not_hide_one_bad_one() -> None:
    good = OffsetCommitValue(offset=1).encode(1)
    rows = [good] * 30_000
    rows[17_001] = good[:-1]
    found = decode_column(rows, OffsetCommitValue, 1)
    assert found.error_count == found.values.null_count == 1
    assert found.errors[17_001].as_py() == {
        "path": "expire_timestamp",
        "offset": 18,
        "reason": "int64 needs 8 bytes, 7 left",
    }


# Budgets


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_the_budget_of_a_row_is_the_one_of_the_codec(limit: int) -> None:
    rng = Random(limit)
    rows = [random_message(MetadataResponse, 12, rng).encode(12) for _ in range(10)]
    for budget in (DecodeBudget(elements=limit), DecodeBudget(bytes=limit), DecodeBudget(depth=limit)):
        assert_as_the_codec(rows, MetadataResponse, 12, options=CodecOptions(budget=budget))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_schema_deeper_than_the_budget_is_refused_row_by_row(shape: str) -> None:
    type_, more = SHAPES[shape]
    cls = nested(65, type_, **more)
    assert decode_column([b"\0" * 4, None], cls, 0).errors.to_pylist() == [
        {"path": "", "offset": 0, "reason": "65 levels deep, more than the budget of 64"},
        None,
    ]


@pytest.mark.parametrize("type_", ["[]int32", "[]string", "[]uuid", "[]bool", "[]Leaf", "string", "bytes", "records"])
def test_null_is_refused_where_a_field_cannot_be_null(type_: str) -> None:
    leaf = struct_class("Leaf", number=field("Number", "int32", default=0))
    more: dict[str, Any] = {"struct": leaf} if "Leaf" in type_ else {}
    default: Any = () if "[]" in type_ else "" if type_ == "string" else b""
    cls = message_class("Strict", "0-1", "1+", a=field("A", type_, default=default, **more))
    for version, null in enumerate((b"\xff\xff" if type_ == "string" else b"\xff" * 4, b"\0")):
        assert assert_as_the_codec([null + b"\0", None], cls, version) == 1


def test_a_count_beyond_the_input_is_refused_before_anything_is_made_for_it() -> None:
    rows = [b"\0\1a" + count + b"\0\0" for count in (b"\x7f\xff\xff\xff", b"\x0f\xff\xff\xff", b"\0\0\xff\xff")]
    before = pa.total_allocated_bytes()
    assert assert_as_the_codec(rows, OffsetFetchRequest, 2) == 3
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_an_implementation_that_refuses_what_the_codec_reads_is_called_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def decoder(*given: Any) -> Any:
        return lambda array: [RowSlice(part.values, [0]) for part in python.decoder(*given)(array)]

    monkeypatch.setattr(decode, "_IMPLEMENTATION", SimpleNamespace(decoder=decoder))
    with pytest.raises(InternalError, match="row 0 of a column of OffsetCommitValue was refused and has no fault"):
        decode_column([OffsetCommitValue().encode(1)], OffsetCommitValue, 1)
