"""Data sources run by Spark: planned on the driver, read by workers that have only the shipped package."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from kafka_msgs import backend
from kafka_msgs.errors import OptionError
from kafka_msgs.spark import read_log_through_spark, register, schema_of
from kafka_msgs.spark.functions import column_function
from kafka_msgs.spark.sources.cluster_metadata import KafkaClusterMetadataSource
from kafka_msgs.spark.sources.log import KafkaLogSource
from kafka_msgs.spark.sources.offsets import KafkaOffsetsSource
from kafka_msgs.spark.spark_types import without_notes
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read

OFFSETS = GROUP_LOGS / "__consumer_offsets-*"


def load(spark: SparkSession, source: str, path: object, **options: Any) -> DataFrame:
    return spark.read.format(source).options(**options).load(str(path))


def in_order(rows: list[dict[str, Any]], *columns: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: tuple(row[column] for column in columns))


@pytest.mark.parametrize("split", ["500", "32m"])
def test_a_log_directory_is_a_table(spark: SparkSession, split: str) -> None:
    rows = load(spark, "kafka-log", LOGS, splitBytes=split, control=True, columns="*").toArrow().to_pylist()
    expected = read(KafkaLogSource, LOGS, control=True, columns="*")
    assert in_order(rows, "file", "offset") == in_order(expected, "file", "offset")


def test_the_records_of_the_group_coordinator_are_a_table(spark: SparkSession) -> None:
    rows = load(spark, "kafka-offsets", OFFSETS).toArrow().to_pylist()
    assert in_order(rows, "file", "logOffset") == in_order(read(KafkaOffsetsSource, OFFSETS), "file", "logOffset")


def test_structs_with_notes_on_their_fields_come_through(spark: SparkSession) -> None:
    frame = load(spark, "kafka-offsets", OFFSETS, recordType="OffsetCommit", columns="value,topicId")
    struct: Any = frame.schema["value"].dataType
    assert without_notes(struct) == without_notes(schema_of("OffsetCommitValue"))
    assert frame.where("value.topic_id != topicId").count() == 0
    assert frame.where("value.topic_id = topicId").count() > 10
    fused = load(spark, "kafka-log", LOGS / "__transaction_state-0", valueMessage="TransactionLogValue")
    assert fused.where("decodedValue.producer_id = 2").count() == fused.count() > 0


def test_the_metadata_of_the_cluster_is_a_table_and_its_json_a_variant(spark: SparkSession) -> None:
    frame = load(spark, "kafka-cluster-metadata", LOGS / "__cluster_metadata-0")
    assert frame.count() == len(read(KafkaClusterMetadataSource, LOGS / "__cluster_metadata-0"))
    names = frame.where("recordType = 'TopicRecord'").select(
        F.expr("variant_get(parse_json(value), '$.name', 'string')")
    )
    assert {name for (name,) in names.collect()} == {"codecs", "prices", "__transaction_state"}


def test_several_paths_are_one_table(spark: SparkSession) -> None:
    paths = [str(LOGS / "codecs-0"), str(LOGS / "prices-0")]
    topics = spark.read.format("kafka-log").load(paths).select("topic").distinct().collect()
    assert {topic for (topic,) in topics} == {"codecs", "prices"}


def test_one_frame_filtered_in_two_ways_loses_no_row(spark: SparkSession) -> None:
    frame = load(spark, "kafka-log", GROUP_LOGS, control=True)
    low, high = frame.where("offset < 5"), frame.where("offset >= 5")
    assert low.union(high).count() == frame.count() == len(read(KafkaLogSource, GROUP_LOGS, control=True))
    pairs = low.alias("a").join(high.alias("b"), ["topic", "partition"]).select("a.offset", "b.offset")
    rows = read(KafkaLogSource, GROUP_LOGS, control=True)
    places = [(row["topic"], row["partition"], row["offset"] < 5) for row in rows]
    assert pairs.count() == sum(places.count((topic, number, False)) for topic, number, is_low in places if is_low) > 0


KAFKA_SOURCE = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
"""The columns of Spark's own source ``kafka``."""


def test_rows_unite_with_those_of_sparks_own_source(spark: SparkSession) -> None:
    rows = load(spark, "kafka-log", GROUP_LOGS / "orders-*")
    live = spark.createDataFrame([(b"k", b"v", "orders", 0, 99, datetime(2026, 1, 2, tzinfo=UTC), 0)], KAFKA_SOURCE)
    both = live.unionByName(rows.select(*live.columns))
    assert [(field.name, field.dataType) for field in both.schema] == [
        (field.name, field.dataType) for field in live.schema
    ]
    raw = load(spark, "kafka-log", GROUP_LOGS / "orders-*", columns="timestamp,timestampMs")
    assert raw.where("unix_millis(timestamp) = timestampMs").count() == raw.count() > 0
    times = [row[0] for row in both.select(F.unix_millis("timestamp")).collect()]
    assert sorted(times) == sorted([1_767_312_000_000, *(row["timestampMs"] for row in raw.collect())])


def test_topics_and_partitions_are_pruned_by_options(spark: SparkSession) -> None:
    frame = load(spark, "kafka-log", GROUP_LOGS, topics="orders", partitions="1")
    assert frame.select("topic", "partition").distinct().collect() == [("orders", 1)]
    assert frame.count() == len(read(KafkaLogSource, GROUP_LOGS / "orders-1")) > 0


def test_damage_ends_a_job_that_must_not_have_any(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    data = bytearray((LOGS / "codecs-0" / path.name).read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    with pytest.raises(PythonException, match=f"LogFileError: {path} at byte 0: the checksum is"):
        load(spark, "kafka-log", path, mode="FAILFAST").count()
    assert load(spark, "kafka-log", path).where("_error is not null").count() == 1
    assert load(spark, "kafka-log", path, mode="DROPMALFORMED").count() > 0


def test_a_wrong_option_is_named_before_anything_runs(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="option colums 'offset': there is no such option; did you mean columns"):
        load(spark, "kafka-log", LOGS, colums="offset")


def test_executors_have_the_package_as_it_was_shipped_with_its_extensions(spark: SparkSession) -> None:
    def where(rows: pa.Array) -> pa.Array:
        import kafka_msgs

        return pa.array([f"{kafka_msgs.__file__} {kafka_msgs.backend()}"] * len(rows))

    ((told,),) = spark.range(1).select(column_function(where, StringType())("id")).collect()
    home, executor = told.split()
    assert "userFiles" in home
    assert executor == backend()


def test_what_only_spark_can_fetch_gives_the_same_rows(spark: SparkSession) -> None:
    rows = read_log_through_spark(spark, f"file://{LOGS}/*-0", control=True, columns="*").toArrow().to_pylist()
    expected = read(KafkaLogSource, LOGS, control=True, columns="*")
    assert in_order(rows, "file", "offset") == in_order(expected, "file", "offset")
    with pytest.raises(OptionError, match="isolation"):
        read_log_through_spark(spark, str(LOGS), isolation="read_committed")


def test_registering_again_changes_nothing(spark: SparkSession) -> None:
    archives = set(spark.sparkContext.listArchives)
    register(spark)
    assert set(spark.sparkContext.listArchives) == archives
    assert load(spark, "kafka-log", LOGS).count() > 0


def test_a_schema_that_is_not_that_of_the_source_is_refused_before_tasks_start(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="the source defines the columns and their types"):
        spark.read.schema("offset string").format("kafka-log").load(str(LOGS / "prices-0")).collect()
