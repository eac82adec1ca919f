"""Schemas and table properties that Spark passes to a source: accepted if they are the source's, otherwise refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, IsNotNull, Not
from pyspark.sql.types import LongType, StringType, StructType

from kafka_msgs.errors import OptionError
from kafka_msgs.spark.sources.live import KafkaLiveSource
from kafka_msgs.spark.sources.log import KafkaLogSource, ObservedLogSource
from kafka_msgs.spark.sources.offsets import KafkaOffsetsSource
from tests.support.recordings import GROUP_LOGS, LOGS

LIVE = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", "columns": "topic,offset"}
SOURCES: list[tuple[type[Any], dict[str, str]]] = [
    (KafkaLogSource, {"path": str(LOGS / "prices-0"), "columns": "topic,offset"}),
    (KafkaOffsetsSource, {"path": str(GROUP_LOGS)}),
    (KafkaLiveSource, LIVE),
]
WRONG = [
    StructType().add("offset", LongType()),
    StructType().add("topic", StringType()).add("offset", StringType()),
    StructType().add("offset", LongType()).add("topic", StringType()),
]


@pytest.mark.parametrize(("source", "options"), SOURCES, ids=lambda each: getattr(each, "__name__", ""))
def test_only_the_schema_of_the_source_is_accepted(source: type[Any], options: dict[str, str]) -> None:
    made = source(options)
    assert made.reader(made.schema()) is not None
    for wrong in WRONG:
        with pytest.raises(OptionError, match="the source defines the columns and their types"):
            made.reader(wrong)


def test_properties_of_the_catalog_are_no_options() -> None:
    options = {
        "path": str(LOGS / "prices-0"),
        "owner": "root",
        "provider": "kafka-log",
        "location": "x",
        "comment": "c",
    }
    assert KafkaLogSource(options).schema().names
    with pytest.raises(OptionError, match="ownr"):
        KafkaLogSource({**options, "ownr": "root"}).schema()


CREATED = {"provider": "kafka-log", "owner": "root", "location": "x"}


def test_a_table_of_the_catalog_keeps_its_options_in_its_columns() -> None:
    options = {"path": str(LOGS / "prices-0"), "columns": "topic,offset", "fs.s3a.secret.key": "hidden"}
    copies = {f"option.{name}": value for name, value in options.items()}
    stored = StructType.fromJson(json.loads(KafkaLogSource({**options, **copies, **CREATED}).schema().json()))
    assert stored.names == ["topic", "offset", "_error"]
    assert "hidden" not in stored.json()
    reader: Any = KafkaLogSource({}).reader(stored)
    assert reader.reading.columns == ("topic", "offset", "_error")
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert {row["topic"] for row in rows} == {"prices"}
    other: Any = KafkaLogSource({"path": str(GROUP_LOGS / "orders-0")}).reader(stored)
    assert other.plan.paths == (str(GROUP_LOGS / "orders-0"),), "options of the query come first"


def test_tables_of_other_sources_of_files_keep_their_options() -> None:
    options = {"path": str(GROUP_LOGS), "recordType": "OffsetCommit", "columns": "group,value"}
    stored = StructType.fromJson(json.loads(KafkaOffsetsSource({**options, **CREATED}).schema().json()))
    reader: Any = KafkaOffsetsSource({}).reader(stored)
    assert reader.record_type == "OffsetCommit"
    assert reader.plan.paths == (str(GROUP_LOGS),)


def test_columns_of_other_reads_have_no_options() -> None:
    schema = KafkaLogSource({"path": str(LOGS / "prices-0")}).schema()
    assert all(not field.metadata for field in schema.fields)


def test_a_table_with_given_columns_is_told_what_to_write() -> None:
    given = StructType().add("topic", StringType()).add("offset", LongType())
    with pytest.raises(
        OptionError, match=r"write CREATE TABLE t USING `kafka-log` OPTIONS \(path 'DIR'\) without columns"
    ):
        KafkaLogSource({}).reader(given)


def test_filters_that_options_could_apply_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    filters: list[Filter] = [EqualTo(("topic",), "prices"), Not(EqualTo(("partition",), 1)), IsNotNull(("key",))]
    assert list(ObservedLogSource({"path": str(LOGS)}).reader(StructType()).pushFilters(filters)) == filters
    assert [record.getMessage() for record in caplog.records] == [
        "kafka-log reads all files for a filter on topic; select them with the option topics",
        "kafka-log reads all files for a filter on partition; select them with the option partitions",
    ]
    caplog.clear()
    selected = {"path": str(LOGS), "topics": "prices", "partitions": "0"}
    assert list(ObservedLogSource(selected).reader(StructType()).pushFilters(filters)) == filters
    assert not caplog.records
    unseen = KafkaLogSource({"path": str(LOGS)}).reader(StructType())
    assert type(unseen).pushFilters is DataSourceReader.pushFilters, "Spark refuses other readers without pushdown"
