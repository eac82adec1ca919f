"""Encoding columns in C and in Python gives the same bytes and the same errors for any content."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_msgs import (
    BrokerRegistrationRequest,
    DescribeGroupsResponse,
    FetchRequest,
    MetadataResponse,
    OffsetCommitValue,
    OffsetFetchRequest,
    VotersRecord,
)
from kafka_msgs._backend import backend
from kafka_msgs.columns import arrow_type, decode_column, encode, encode_column, python
from kafka_msgs.errors import ColumnSizeError
from tests.support.columns import prefixed_rows

native = pytest.importorskip("kafka_msgs.columns.native", reason="the C core is not built")
pytestmark = pytest.mark.skipif(backend() != "c", reason="another backend was chosen")

CLASSES: list[Any] = [
    MetadataResponse,
    FetchRequest,
    OffsetFetchRequest,
    DescribeGroupsResponse,
    BrokerRegistrationRequest,
    VotersRecord,
    OffsetCommitValue,
]


def widened(type_: pa.DataType) -> pa.DataType:
    """Return a type with wider numbers and offsets, and without field metadata."""
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, widened(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.large_list(widened(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(pa.int64(), pa.large_binary())
    wider = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary(), pa.bool_(): pa.bool_()}
    return wider.get(type_, pa.int64())


def changed(value: Any, rng: Random) -> Any:
    """Return a row with one change: null, too large, too long, out of order, or with fewer columns in effect."""
    if isinstance(value, dict):
        name = rng.choice(list(value))
        return value | {name: None if rng.random() < 0.1 else changed(value[name], rng)}
    if isinstance(value, list) and value:
        number = rng.randrange(len(value))
        return [*value[:number], changed(value[number], rng), *value[number + 1 :]]
    if isinstance(value, tuple):
        return (rng.choice([value[0], 0, 1, 5, 2**31 - 1, 2**31, -1]), value[1])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([-1, 0, 1, 127, 128, -(2**15), 2**15, 2**16, 2**31 - 1, 2**31, 2**32, -(2**63), 2**63 - 1])
    if isinstance(value, str):
        return rng.choice(
            ["", "a", "\U0001f99c", "a" * 127, "a" * 128, "a" * 32768, value.upper(), value.replace("-", "")]
        )
    return rng.choice([b"", b"a" * 126, b"a" * 127, b"a" * 20000]) if isinstance(value, bytes) else value


def found(implementation: Any, monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> tuple[Any, Any]:
    monkeypatch.setattr(encode, "_IMPLEMENTATION", implementation)
    encoded = encode_column(*arguments)
    encoded.values.validate(full=True)
    return encoded.values.to_pylist(), encoded.errors.to_pylist()


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_both_encode_and_refuse_the_same(cls: Any, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of all versions, some of them changed, are often encoded at other versions or without some columns."""
    rng = Random(f"{cls.__name__} {wide}")
    data = [data for _, data in prefixed_rows(cls, 2)]
    whole = arrow_type(cls)
    rows = decode_column(pa.array([None, *data]), cls).values.to_pylist()
    rows += [changed(row, rng) for row in rng.choices(rows, k=60)]
    rng.shuffle(rows)
    outcomes = set()
    for _ in range(3):
        kept = [field for field in whole if rng.random() < 0.8]
        type_ = pa.struct(kept)
        values = [row if row is None else {field.name: row[field.name] for field in kept} for row in rows]
        column = pa.array(values, widened(type_) if wide else widened_numbers(type_))
        versions = pa.array([rng.randrange(cls.INFO.versions.highest + 1) for _ in rows])
        for version in (versions, cls.INFO.versions.highest):
            fast, slow = (found(each, monkeypatch, column, cls, version) for each in (native, python))
            assert fast == slow
            outcomes |= {error is None for error in fast[1]}
    assert outcomes == {True, False}


def test_dictionaries_and_columns_of_nulls_are_encoded_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either the index or the dictionary value may be null. The arrays are slices of larger ones."""
    names = pa.DictionaryArray.from_arrays(pa.array([9, 0, 2, 0, None, 2, 0], pa.int8()).slice(1), ["a", None, "bb"])
    numbers = pa.array([0, 7, 7, 7, 1, 2]).dictionary_encode()
    topics = pa.StructArray.from_arrays(
        [names, pa.ListArray.from_arrays([0, 1, 1, 2, 3, 4, 6], numbers)], ["name", "partition_indexes"]
    )
    column = pa.StructArray.from_arrays(
        [
            pa.array(["g", "h", "g", "g"]).dictionary_encode(),
            pa.ListArray.from_arrays([0, 2, 3, 5, 6], topics),
        ],
        ["group_id", "topics"],
    ).slice(1)
    fast, slow = (found(each, monkeypatch, column, OffsetFetchRequest, 6) for each in (native, python))
    assert fast == slow
    assert fast[0][1] is None  # a name is null
    assert [part.bad_rows for part in native.encoder(OffsetFetchRequest, 6, column.type, False)(column, None)] == [[1]]


def test_nulls_without_a_type_are_encoded_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.StructArray.from_arrays([pa.nulls(2), pa.array([3, 4])], ["cluster_id", "controller_id"])
    fast, slow = (found(each, monkeypatch, column, MetadataResponse, 8) for each in (native, python))
    assert fast == slow
    assert fast[1] == [None, None]
    assert [part.bad_rows for part in native.encoder(MetadataResponse, 8, column.type, False)(column, None)] == [[]]


def test_a_dictionary_of_more_than_an_array_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    names = pa.array(["a" * 50] * 10).dictionary_encode()
    column = pa.StructArray.from_arrays([names], ["metadata"])
    assert encode_column(column, OffsetCommitValue, 3).values.null_count == 0
    monkeypatch.setattr(native, "MAX_ARRAY", 499)
    with pytest.raises(ColumnSizeError):
        encode_column(column, OffsetCommitValue, 3)


def widened_numbers(type_: pa.DataType) -> pa.DataType:
    """Return a type with Arrow's default 32-bit offsets and with 64-bit numbers."""
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, widened_numbers(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(widened_numbers(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(pa.int64(), pa.binary())
    return pa.int64() if pa.types.is_integer(type_) else type_
