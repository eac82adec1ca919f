"""Messages decoded from columns and encoded back, in Python and in SQL, compared with the codec."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, MapType, StringType, StructType

from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.errors import UnknownColumnError, UnknownNameError, UnsupportedVersionError
from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.messages.metadata_response import MetadataResponse
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.spark import from_kafka, schema_of, to_kafka
from kafka_msgs.spark.sql import VERSIONED_MESSAGES, function_name
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.versioned import encode_versioned

GOOD = [
    encode_record(
        TopicRecord(
            topic="__consumer_offsets",
            key=OffsetCommitKey(group="g", topic="t", partition=number),
            value=OffsetCommitValue(offset=2**53 + number, leader_epoch=number, metadata="", commit_timestamp=5),
            version=4,
        )
    ).value
    for number in range(3)
]
BAD = b"\x00\x04\x00"


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> DataFrame:
    """Three commits, a tombstone, and invalid bytes, numbered."""
    rows = [*enumerate(GOOD), (3, None), (4, BAD)]
    return spark.createDataFrame(rows, "number int, value binary").repartition(2)


def collected(frame: DataFrame) -> list[Any]:
    return [row[1] for row in sorted(frame.collect())]


def test_values_are_structs_null_is_null_and_bad_bytes_give_a_reason(values: DataFrame) -> None:
    found = collected(values.select("number", from_kafka("value", "OffsetCommitValue").alias("v")))
    assert [row.offset for row in found[:3]] == [2**53, 2**53 + 1, 2**53 + 2]
    assert [row._error for row in found[:3]] == [None, None, None]
    assert found[3] is None
    assert found[4].offset is None
    assert found[4]._error == "OffsetCommitValue: offset at byte 2: int64 needs 8 bytes, 1 left"


def test_modes_decide_about_bytes_that_are_not_a_message(values: DataFrame) -> None:
    dropped = collected(values.select("number", from_kafka("value", "OffsetCommitValue", mode="DROPMALFORMED")))
    assert dropped[3:] == [None, None]
    assert "_error" not in dropped[0]
    with pytest.raises(PythonException, match="OffsetCommitValue v4: offset at byte 2"):
        collected(values.select("number", from_kafka("value", "OffsetCommitValue", mode="FAILFAST")))


def test_only_the_columns_that_are_asked_for_are_made(values: DataFrame) -> None:
    column = from_kafka("value", OffsetCommitValue, columns=["metadata", "offset"], mode="DROPMALFORMED")
    assert values.select(column.alias("v")).schema["v"].dataType == schema_of(
        "OffsetCommitValue", columns=["metadata", "offset"]
    )


def test_names_and_versions_that_do_not_exist_are_refused_before_anything_runs() -> None:
    with pytest.raises(UnknownNameError, match="similar: OffsetCommitValue"):
        from_kafka("value", "OfsetCommitValue")
    with pytest.raises(UnsupportedVersionError):
        from_kafka("value", "OffsetCommitValue", 99)
    with pytest.raises(UnknownColumnError, match="offset"):
        from_kafka("value", "OffsetCommitValue", columns=["ofset"])
    with pytest.raises(UnsupportedVersionError):
        to_kafka("value", "OffsetCommitValue", 99)


def test_types_are_those_of_the_definition() -> None:
    schema = schema_of("OffsetCommitValue", 4)
    assert schema.fieldNames() == [
        "offset",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "topic_id",
        "unknown_tagged_fields",
    ]
    assert [field.dataType for field in schema.fields[:3]] == [LongType(), IntegerType(), StringType()]
    assert schema["topic_id"].metadata == {"kafka.type": "uuid"}
    assert isinstance(schema["unknown_tagged_fields"].dataType, MapType)
    topics: Any = schema_of("OffsetFetchRequest", 8)["groups"].dataType
    assert isinstance(topics.elementType, StructType)


def test_a_nested_message_goes_there_and_back(spark: SparkSession) -> None:
    version = MetadataResponse.INFO.versions.highest
    data = [random_message(MetadataResponse, version, Random(seed)).encode(version) for seed in range(20)]
    frame = spark.createDataFrame([(each,) for each in data], "value binary")
    again = frame.select(
        "value", to_kafka(from_kafka("value", "MetadataResponse", version), "MetadataResponse", version)
    )
    assert [(bytes(before), bytes(after)) for before, after in again.collect()] == [(each, each) for each in data]


def test_a_prefix_is_written_where_it_is_read(values: DataFrame) -> None:
    column = from_kafka("value", "OffsetCommitValue", mode="DROPMALFORMED")
    found = collected(values.select("number", to_kafka(column, "OffsetCommitValue", 4, prefix=True)))
    assert [each and bytes(each) for each in found] == [*GOOD, None, None]


def test_a_column_may_say_the_version_of_each_row(spark: SparkSession) -> None:
    rows = [(4, {"offset": 7, "metadata": "a"}), (1, {"offset": 8, "metadata": ""}), (0, None)]
    frame = spark.createDataFrame(rows, "version int, v struct<offset: bigint, metadata: string>").coalesce(1)
    found = collected(frame.select("version", to_kafka("v", "OffsetCommitValue", sf.col("version"), prefix=True)))
    sent = [
        encode_versioned(OffsetCommitValue(offset=offset, metadata=metadata), version)
        for version, offset, metadata in ((4, 7, "a"), (1, 8, ""))
    ]
    assert [each and bytes(each) for each in found] == [None, sent[1], sent[0]]
    with pytest.raises(PythonException, match="OffsetCommitValue has no version 9"):
        frame.select(to_kafka("v", "OffsetCommitValue", sf.lit(9))).collect()


def test_fields_that_a_struct_lacks_have_their_defaults(spark: SparkSession) -> None:
    frame = spark.sql("select named_struct('group_id', 'g') as request")
    (row,) = frame.select(to_kafka("request", "OffsetFetchRequest", 2)).collect()
    assert bytes(row[0]) == OffsetFetchRequest(group_id="g").encode(2)


def test_what_could_not_be_read_is_not_written(values: DataFrame) -> None:
    broken = to_kafka(from_kafka("value", "OffsetCommitValue"), "OffsetCommitValue", 4)
    with pytest.raises(PythonException, match="it could not be read: OffsetCommitValue: offset at byte 2"):
        values.select(broken).collect()


def plan(frame: DataFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()


def test_a_filter_on_what_was_decoded_does_not_decode_twice(values: DataFrame) -> None:
    decoded = values.select(from_kafka("value", "OffsetCommitValue").alias("v"))
    filtered = decoded.where("v.offset > 5 and v._error is null").select("v.metadata", "v.offset")
    assert plan(filtered).count("ArrowEvalPython") == 1
    assert filtered.count() == 3


# SQL


@pytest.fixture
def query(spark: SparkSession, values: DataFrame) -> Callable[[str], list[Any]]:
    """A function that runs a query over the table ``commits``."""
    values.createOrReplaceTempView("commits")
    return lambda text: spark.sql(text).collect()


def test_every_message_with_a_version_in_front_has_a_function(
    spark: SparkSession, query: Callable[[str], list[Any]]
) -> None:
    assert function_name("StreamsGroupTopologyValue") == "from_kafka_streams_group_topology_value"
    assert all(spark.catalog.functionExists(function_name(name)) for name in VERSIONED_MESSAGES)
    rows = query(
        "select from_kafka_offset_commit_value(value).offset o from commits where value is not null order by number"
    )
    assert [row.o for row in rows] == [2**53, 2**53 + 1, 2**53 + 2, None]


def test_an_aggregate_takes_what_a_subquery_decoded(query: Callable[[str], list[Any]]) -> None:
    (row,) = query(
        "select max(v.offset) o, count(v._error) bad from (select from_kafka_offset_commit_value(value) v from commits)"
    )
    assert (row.o, row.bad) == (2**53 + 2, 1)


def test_the_table_function_takes_the_name_of_any_message(query: Callable[[str], list[Any]]) -> None:
    rows = query(
        "select number, k.offset, k.metadata, k._error from commits, "
        "lateral from_kafka(commits.value, 'OffsetCommitValue') k order by number"
    )
    assert [row.offset for row in rows] == [2**53, 2**53 + 1, 2**53 + 2, None, None]
    assert [row._error is None for row in rows] == [True, True, True, True, False]
    data = MetadataResponse().encode(12).hex()
    (row,) = query(f"select size(brokers) brokers from from_kafka(x'{data}', 'MetadataResponse', 12)")
    assert row.brokers == 0


def test_the_table_function_refuses_a_name_before_the_query_runs(query: Callable[[str], list[Any]]) -> None:
    with pytest.raises(AnalysisException, match="similar: OffsetCommitValue"):
        query("select * from from_kafka(x'00', 'OfsetCommitValue')")


def test_a_message_whose_name_is_in_the_data_is_a_variant(query: Callable[[str], list[Any]]) -> None:
    rows = query(
        "select to_json(from_kafka_variant(value, concat('OffsetCommit', 'Value'))) text from commits order by number"
    )
    texts = [row.text and json.loads(row.text) for row in rows]
    assert [text["offset"] for text in texts[:3]] == [2**53, 2**53 + 1, 2**53 + 2]
    assert texts[3] is None
    assert list(texts[4]) == ["_error"]


def test_a_record_of_an_internal_topic_is_a_variant(query: Callable[[str], list[Any]]) -> None:
    key = "00010001670001740000000a"
    rows = query(
        "select to_json(r) text from (select kafka_record_variant('__consumer_offsets', "
        f"x'{key}', value) r from commits order by number)"
    )
    texts = [json.loads(row.text) for row in rows]
    assert texts[0]["key"] == {"group": "g", "topic": "t", "partition": 10}
    assert texts[0]["value"]["offset"] == 2**53
    assert (texts[0]["type"], texts[0]["version"]) == ("OffsetCommit", 4)
    assert texts[3] == {"type": "OffsetCommit", "key": texts[0]["key"], "value": None, "version": None}
    assert list(texts[4]) == ["_error"]
