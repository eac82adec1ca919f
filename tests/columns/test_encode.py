"""Struct columns to the bytes of messages: what may be missing, what is refused, and where."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from kafka_msgs import (
    EncodeError,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitValue,
    OffsetFetchRequest,
    UnsupportedVersionError,
)
from kafka_msgs.columns import arrow_type, decode_column, encode, encode_column
from kafka_msgs.errors import ColumnSizeError, ColumnTypeError, UnknownColumnError
from kafka_msgs.prefixed import encode_versioned
from tests.support.columns import random_rows, sliced

COMMITS = [
    {"offset": 7, "metadata": "é", "topic_id": "00000000-0000-0000-0000-000000000009"},
    None,
    {"offset": 8, "metadata": "", "topic_id": "00000000-0000-0000-0000-000000000000"},
]
SENT = [
    OffsetCommitValue(offset=7, metadata="é", topic_id=UUID(int=9)),
    None,
    OffsetCommitValue(offset=8),
]


@pytest.mark.parametrize("prefix", [False, True])
def test_columns_that_are_missing_are_defaults(prefix: bool) -> None:
    found = encode_column(pa.array(COMMITS), OffsetCommitValue, 4, prefix=prefix)
    encoded = [row and (encode_versioned(row, 4) if prefix else row.encode(4)) for row in SENT]
    assert found.values.to_pylist() == encoded
    assert found.values.type == pa.binary()
    assert found.error_count == 0


def test_the_prefix_of_a_key_is_its_record_type() -> None:
    key = OffsetCommitKey(group="tea", topic="orders", partition=3)
    column = pa.array([{"group": "tea", "topic": "orders", "partition": 3}])
    assert encode_column(column, OffsetCommitKey, 0, prefix=True).values.to_pylist() == [encode_versioned(key, 0)]


def test_elements_may_lack_columns_and_columns_may_have_any_order_and_width() -> None:
    topics = pa.large_list(pa.struct([("partition_indexes", pa.list_(pa.int64())), ("name", pa.large_string())]))
    type_ = pa.struct([("topics", topics), ("group_id", pa.string())])
    column = pa.array(
        [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [5]}]}, {"group_id": "h"}], type_
    )
    sound, null = encode_column(column, OffsetFetchRequest, 1).values.to_pylist()
    assert OffsetFetchRequest.decode(sound, 1).topics[0].partition_indexes == (5,)  # type: ignore[index]
    assert null is None
    whole = encode_column(column, OffsetFetchRequest, 2).values.to_pylist()
    assert OffsetFetchRequest.decode(whole[1], 2).topics is None


def test_slices_and_chunks_are_encoded_row_by_row() -> None:
    rows = [row.encode(8) for row in random_rows(OffsetCommitRequest, 8, 30)]
    values = decode_column(sliced(pa.array([None, *rows])), OffsetCommitRequest, 8).values
    assert encode_column(values.slice(3, 9), OffsetCommitRequest, 8).values.to_pylist() == rows[2:11]
    chunked = encode_column(pa.chunked_array([values.slice(0, 5), values.slice(5)]), OffsetCommitRequest, 8)
    assert [len(chunk) for chunk in chunked.values.chunks] == [len(chunk) for chunk in chunked.errors.chunks] == [5, 26]
    assert chunked.values.to_pylist() == [None, *rows]
    nothing = encode_column(pa.chunked_array([], values.type), OffsetCommitRequest, 8)
    assert nothing.values.to_pylist() == []


def test_empty_input_gives_empty_output() -> None:
    found = encode_column(pa.array([], arrow_type(OffsetFetchRequest)), OffsetFetchRequest, 8)
    assert found.values.to_pylist() == found.errors.to_pylist() == []


def test_unknown_tags_are_written_in_their_order_whatever_the_map_has() -> None:
    type_ = pa.struct([("offset", pa.int64()), ("unknown_tagged_fields", pa.map_(pa.int32(), pa.binary()))])
    column = pa.array([{"offset": 1, "unknown_tagged_fields": [(9, b"i"), (5, b"e")]}], type_)
    sent = OffsetCommitValue(offset=1, unknown_tagged_fields=((5, b"e"), (9, b"i")))
    assert encode_column(column, OffsetCommitValue, 4).values.to_pylist() == [sent.encode(4)]
    found = encode_column(column, OffsetCommitValue, 0)
    assert found.error_count == 1


@pytest.mark.parametrize(
    ("row", "path", "reason"),
    [
        ({"group_id": None, "topics": []}, "group_id", "None, which this version does not allow"),
        (
            {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [1, 2**31]}]},
            "topics[0].partition_indexes[1]",
            "2147483648 is out of range for int32",
        ),
        (
            {"group_id": "g", "topics": [None]},
            "topics[0]",
            "None, which this version does not allow",
        ),
    ],
)
def test_a_row_that_cannot_be_written_is_null_and_says_why(row: Any, path: str, reason: str) -> None:
    topic = pa.struct([("name", pa.string()), ("partition_indexes", pa.list_(pa.int64()))])
    type_ = pa.struct([("group_id", pa.string()), ("topics", pa.list_(topic))])
    good = {"group_id": "g", "topics": []}
    column = pa.array([good, row, None, good], type_)
    found = encode_column(column, OffsetFetchRequest, 1)
    sound = OffsetFetchRequest(group_id="g", topics=()).encode(1)
    assert found.values.to_pylist() == [sound, None, None, sound]
    assert found.errors.to_pylist() == [None, {"path": path, "offset": None, "reason": reason}, None, None]
    with pytest.raises(EncodeError) as caught:
        encode_column(column, OffsetFetchRequest, 1, on_error="raise")
    assert (caught.value.path, caught.value.reason) == (path, reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"topic_id": "no uuid"}, "expected UUID, got str"),
        ({"topic_id": "00000000-0000-0000-0000-0000000000"}, "expected UUID, got str"),
        ({"topic_id": b"0" * 16}, "expected UUID, got bytes"),
        ({"topic_id": 1}, "expected UUID, got int"),
        ({"offset": "7"}, "expected int, got str"),
        ({"metadata": b"7"}, "expected str, got bytes"),
        ({"offset": 7.5}, "expected int, got float"),
    ],
)
def test_a_value_of_another_type_is_an_error_of_its_row(value: Any, reason: str) -> None:
    (error,) = encode_column(pa.array([value]), OffsetCommitValue, 4).errors.to_pylist()
    assert error == {"path": next(iter(value)), "offset": None, "reason": reason}


def test_a_field_that_the_version_lacks_is_refused_unless_it_may_be_dropped() -> None:
    dropped = pa.array([{"offset": 1, "leader_epoch": 5}])
    assert encode_column(dropped, OffsetCommitValue, 0).error_count == 0
    refused = pa.array([{"group_id": "g", "require_stable": True}])
    assert encode_column(refused, OffsetFetchRequest, 2).errors.to_pylist()[0]["path"] == "require_stable"


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"ofset": 1}, "OffsetFetchRequest has no column 'ofset'"),
        ({"topics": [{"nam": "a"}]}, "OffsetFetchRequest has no column 'topics.nam'; similar: topics.name"),
        ({"topics": {"name": "a"}}, "column topics is 'struct<name: string>', expected 'list<"),
        ({"group_id": ["a"]}, "column group_id is 'list<"),
        ({"topics": ["a"]}, "column topics is 'list<"),
        ({"unknown_tagged_fields": 1}, "column unknown_tagged_fields is 'int64', expected 'map<"),
    ],
)
def test_columns_that_the_message_does_not_have_are_refused_before_any_row(value: Any, error: str) -> None:
    with pytest.raises((UnknownColumnError, ColumnTypeError)) as caught:
        encode_column(pa.array([value]), OffsetFetchRequest, 2)
    assert str(caught.value).startswith(error)


def test_a_column_twice_is_refused() -> None:
    column = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["offset", "offset"])
    with pytest.raises(ColumnTypeError, match="column offset is"):
        encode_column(column, OffsetCommitValue, 4)


def test_a_column_that_is_not_a_struct_is_refused() -> None:
    with pytest.raises(ColumnTypeError, match="the column is 'int64', expected 'struct'"):
        encode_column(pa.array([1]), OffsetCommitValue, 4)


def test_a_version_that_the_message_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="OffsetCommitValue has no version 9"):
        encode_column(pa.array([{"offset": 1}]), OffsetCommitValue, 9)


def test_bytes_for_which_one_array_is_too_small_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "MAX_ARRAY", 10)
    with pytest.raises(ColumnSizeError, match="need more than one array"):
        encode_column(pa.array(COMMITS), OffsetCommitValue, 4)
