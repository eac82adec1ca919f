"""Schemas and table properties that Spark passes to a source: accepted if they are the source's, otherwise refused."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructType

from kafka_msgs.errors import OptionError
from kafka_msgs.spark.sources.live import KafkaLiveSource
from kafka_msgs.spark.sources.log import KafkaLogSource
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
