"""Encoding of struct columns to messages: fields that may be missing, refused values, and their positions."""

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
from kafka_msgs.versioned import encode_versioned
from tests.support.columns import random_rows, sliced

pytestmark = pytest.mark.usefixtures("implementation")

COMMITS: list[dict[str, Any] | None] = [
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


def test_rows_may_have_versions_of_their_own() -> None:
    versions = pa.array([4, 99, 0, None, 1, 3], pa.uint8())
    column = pa.array(
        [
            COMMITS[0],
            COMMITS[0],
            None,
            COMMITS[0],
            {"offset": 2**40, "metadata": "", "topic_id": "00000000-0000-0000-0000-000000000000"},
            COMMITS[2],
        ]
    )
    found = encode_column(column, OffsetCommitValue, versions, prefix=True)
    fourth, third = (encode_versioned(row, version) for row, version in zip(filter(None, SENT), (4, 3), strict=True))
    assert found.values.to_pylist() == [
        fourth,
        None,
        None,
        None,
        encode_versioned(OffsetCommitValue(offset=2**40), 1),
        third,
    ]
    assert [error and error["reason"].partition(";")[0] for error in found.errors.to_pylist()] == [
        None,
        "OffsetCommitValue has no version 99",
        None,
        "OffsetCommitValue has no version None",
        None,
        None,
    ]
    chunks = pa.chunked_array([column.slice(0, 4), column.slice(4)])
    again = encode_column(chunks, OffsetCommitValue, pa.chunked_array([versions.slice(0, 1), versions.slice(1)]))
    assert again.values.to_pylist() == [value and value[2:] for value in found.values.to_pylist()]
    with pytest.raises(UnsupportedVersionError):
        encode_column(column, OffsetCommitValue, versions, on_error="raise")


def test_keys_of_coordinators_may_have_versions_of_their_own() -> None:
    column = pa.array([{"group": "tea"}] * 2)
    found = encode_column(column, OffsetCommitKey, pa.array([0, 1]), prefix=True)
    assert found.values.to_pylist() == [encode_versioned(OffsetCommitKey(group="tea"), 0), None]


@pytest.mark.parametrize("versions", [pa.array([1.0]), pa.array([1, 2])])
def test_versions_that_are_not_those_of_the_rows_are_refused(versions: Any) -> None:
    with pytest.raises(ColumnTypeError, match="column version is"):
        encode_column(pa.array([{"offset": 1}]), OffsetCommitValue, versions)


def test_text_that_is_not_utf_8_is_an_error_of_its_row() -> None:
    text = pa.array([b"fine", b"\xff", None]).view(pa.string())
    found = encode_column(pa.StructArray.from_arrays([text], ["metadata"]), OffsetCommitValue, 4)
    assert found.values.to_pylist() == [OffsetCommitValue(metadata="fine").encode(4), None, None]
    assert [error and error["path"] for error in found.errors.to_pylist()] == [None, "metadata", "metadata"]
    assert "UTF-8" in found.errors[1].as_py()["reason"]


def test_names_out_of_a_dictionary_give_the_same_bytes() -> None:
    names = pa.array(["tea", "oil", "tea"]).dictionary_encode()
    column = pa.StructArray.from_arrays([names, pa.array([1, 2, 3])], ["group", "partition"])
    rows = [OffsetCommitKey(group=name, partition=number) for name, number in (("tea", 1), ("oil", 2), ("tea", 3))]
    assert encode_column(column, OffsetCommitKey, 0).values.to_pylist() == [row.encode(0) for row in rows]


@pytest.mark.parametrize("text", ["0123ABCD-4567-89ab-CDEF-0123456789ab", "0123abcd456789abcdef0123456789ab"])
def test_uuids_may_be_written_as_python_reads_them(text: str) -> None:
    sent = OffsetCommitValue(topic_id=UUID(text)).encode(4)
    assert encode_column(pa.array([{"topic_id": text}]), OffsetCommitValue, 4).values.to_pylist() == [sent]


def test_children_that_are_slices_of_their_own_are_read_where_they_are() -> None:
    """Each array has its own offset and its own nulls, some of which cover existing values."""
    names = pa.array(["x", "a", None, "c", "d"]).slice(1)
    indexes = pa.ListArray.from_arrays(
        pa.array([0, 1, 1, 2, 4, 5], pa.int32()), pa.array([9, 9, 1, 2, 3, 4, 5]).slice(2)
    )
    topics = pa.StructArray.from_arrays(
        [names, indexes.slice(1)], ["name", "partition_indexes"], mask=pa.array([False, True, False, False])
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 2, 4], pa.int32()), topics).slice(1)
    column = pa.StructArray.from_arrays([lists, pa.array(["no", "g", "h", "i"]).slice(1)], ["topics", "group_id"])
    found = encode_column(column.slice(1), OffsetFetchRequest, 2)
    assert found.errors.to_pylist() == [
        {"path": "topics[0]", "offset": None, "reason": "None, which this version does not allow"},
        None,
    ]
    decoded = OffsetFetchRequest.decode(found.values[1].as_py(), 2)
    assert decoded.group_id == "i"
    assert [(topic.name, topic.partition_indexes) for topic in decoded.topics or ()] == [("c", (3, 4)), ("d", (5,))]
