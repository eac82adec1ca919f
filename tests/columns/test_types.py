"""The Arrow type of a message: Kafka's types, versions, column selections, and refused requests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_msgs import OffsetCommitValue, OffsetFetchRequest
from kafka_msgs.columns import RECORD_SCHEMA, arrow_type, record_schema
from kafka_msgs.columns.types import KAFKA_TYPE
from kafka_msgs.errors import SchemaError, UnknownColumnError, UnsupportedVersionError
from kafka_msgs.schema import field, fields
from tests.support.codecs import message_class, struct_class
from tests.support.columns import CLASSES, NAMES

EVERY_TYPE = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
    "uuid": pa.string(),
}


@pytest.mark.parametrize("type_", EVERY_TYPE)
def test_every_type_of_kafka_has_one_of_arrow(type_: str) -> None:
    cls = message_class("One", a=field("A", type_, default=0), b=field("B", f"[]{type_}", default=()))
    found = arrow_type(cls, 0)
    assert found.field("a").type == EVERY_TYPE[type_]
    assert found.field("b").type == pa.list_(pa.field("element", EVERY_TYPE[type_]))
    told = {"uint16", "uint32", "records", "uuid"}
    assert (found.field("a").metadata or {}) == ({KAFKA_TYPE: type_.encode()} if type_ in told else {})
    assert (found.field("b").metadata or {}) == ({KAFKA_TYPE: f"[]{type_}".encode()} if type_ in told else {})


def every_field(type_: pa.DataType) -> list[pa.Field]:
    inner = type_.value_type if pa.types.is_list(type_) else type_
    below = list(inner) if pa.types.is_struct(inner) else []
    return below + [each for one in below for each in every_field(one.type)]


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_fields_are_those_of_the_version_in_the_order_of_the_definition_and_nullable(cls: Any) -> None:
    for version in cls.INFO.versions:
        found = arrow_type(cls, version)
        expected = [info.attribute for info in fields(cls) if version in info.versions]
        assert [each.name for each in found] == expected + ["unknown_tagged_fields"] * (version in cls.INFO.flexible)
        assert all(each.nullable for each in every_field(found))
    whole = arrow_type(cls)
    assert {each.name for version in cls.INFO.versions for each in arrow_type(cls, version)} == {f.name for f in whole}


def test_unknown_tagged_fields_are_a_map_in_every_struct_of_a_flexible_version() -> None:
    tags = pa.map_(pa.int32(), pa.binary())
    flexible = arrow_type(OffsetFetchRequest, 8)
    assert flexible.field("unknown_tagged_fields").type == tags
    assert flexible.field("groups").type.value_type.field("unknown_tagged_fields").type == tags
    assert arrow_type(OffsetFetchRequest, 1).get_field_index("unknown_tagged_fields") == -1


def test_a_version_that_the_message_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="OffsetCommitValue has no version 9"):
        arrow_type(OffsetCommitValue, 9)


def test_a_message_that_contains_itself_is_refused() -> None:
    leaf = struct_class("Tree", leaf=field("Leaf", "int8", default=0))
    tree = struct_class("Tree", below=field("Below", "[]Tree", default=(), struct=leaf))
    object.__setattr__(fields(tree)[0], "struct", tree)  # generated classes cannot contain themselves
    endless = message_class("Endless", tree=field("Tree", "Tree", default=None, struct=tree))
    with pytest.raises(SchemaError, match="Endless: Tree contains itself"):
        arrow_type(endless, 0)


def test_columns_are_selected_by_dotted_paths_in_the_order_of_the_definition() -> None:
    found = arrow_type(OffsetFetchRequest, columns=["topics.name", "groups.topics.name", "group_id"])
    assert str(found) == (
        "struct<group_id: string, topics: list<element: struct<name: string>>, "
        "groups: list<element: struct<topics: list<element: struct<name: string>>>>>"
    )
    assert arrow_type(OffsetFetchRequest, columns=["topics", "topics.name"]).field("topics") == arrow_type(
        OffsetFetchRequest
    ).field("topics")
    assert arrow_type(OffsetFetchRequest, columns=[]) == pa.struct([])


@pytest.mark.parametrize(
    ("version", "column", "near"),
    [
        (None, "name", ("topics.name",)),
        (None, "groupId", ("group_id", "groups", "groups.group_id")),
        (None, "topics.name.x", ("topics.name",)),
        (None, "group_id.x", ("group_id", "groups.group_id", "groups")),
        (1, "groups", ("group_id",)),
        (None, "topics.", ()),
        (None, "", ()),
    ],
)
def test_an_unknown_column_is_reported_with_similar_names(
    version: int | None, column: str, near: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownColumnError) as caught:
        arrow_type(OffsetFetchRequest, version, columns=["group_id", column])
    assert caught.value.column == column
    assert set(near) <= set(caught.value.near)
    assert caught.value.source == ("OffsetFetchRequest" if version is None else "OffsetFetchRequest v1")


def test_columns_of_records_are_in_the_order_that_is_asked_for() -> None:
    assert record_schema(["value", "offset"]) == pa.schema([("value", pa.binary()), ("offset", pa.int64())])
    assert record_schema() is RECORD_SCHEMA
    with pytest.raises(UnknownColumnError, match="a record has no column 'offse'; similar: offset"):
        record_schema(["offse"])
