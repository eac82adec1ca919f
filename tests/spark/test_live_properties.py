"""The options ``kafka.*`` of ``kafka-live``: each property is used, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StringType, StructType

from kafka_msgs.client.property_table import SETTINGS
from kafka_msgs.errors import OptionError
from kafka_msgs.spark.sources.live import LiveReader
from kafka_msgs.spark.sources.live_writing import LiveWriter
from kafka_msgs.spark.sources.options import Options

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}
VALUE = StructType().add("value", StringType())


def reading(**options: str) -> LiveReader:
    asked = Options("kafka-live", {**BROKER, "subscribe": "t", **options})
    found = LiveReader(asked)
    asked.done()
    return found


def writing(**options: str) -> LiveWriter:
    asked = Options("kafka-live", {**BROKER, "topic": "t", **options})
    found = LiveWriter(asked, VALUE)
    asked.done()
    return found


@pytest.mark.parametrize(
    ("options", "committed"),
    [
        ({}, False),
        ({"isolation": "read_committed"}, True),
        ({"kafka.isolation.level": "read_committed"}, True),
        ({"kafka.isolation.level": "READ_COMMITTED", "isolation": "read_committed"}, True),
        ({"kafka.isolation.level": "read_uncommitted"}, False),
    ],
)
def test_the_isolation_level_is_kafkas_property_or_the_option(options: dict[str, str], committed: bool) -> None:
    assert reading(**options).committed is committed


def test_a_contradiction_is_refused() -> None:
    with pytest.raises(OptionError, match="isolation 'read_uncommitted': it contradicts Kafka's property"):
        reading(**{"kafka.isolation.level": "read_committed", "isolation": "read_uncommitted"})
    with pytest.raises(OptionError, match="acks '1': it contradicts Kafka's property"):
        writing(**{"kafka.acks": "all", "acks": "1"})


def test_equal_values_are_no_contradiction() -> None:
    assert writing(**{"kafka.acks": "all", "acks": "all"}).producer["acks"] == -1


def test_properties_of_reading_reach_the_consumer() -> None:
    found = reading(**{"kafka.max.partition.fetch.bytes": "4096", "kafka.fetch.min.bytes": "7", "kafka.client.id": "x"})
    assert found.consumer == {"partition_max_bytes": 4096, "fetch_min_bytes": 7}
    with found._consumer() as consumer:
        assert consumer is not None


def test_properties_of_writing_reach_the_producer() -> None:
    found = writing(**{"kafka.acks": "1", "kafka.linger.ms": "5", "kafka.compression.type": "gzip"})
    assert found.producer == {"acks": 1, "linger": 0.005, "compression": "gzip"}
    assert writing().producer == {"acks": -1, "compression": None}


def test_every_property_without_an_effect_is_refused() -> None:
    for setting in SETTINGS:
        for make, roles in ((reading, ("client", "consumer")), (writing, ("client", "producer"))):
            if not any(getattr(setting, role) for role in roles):
                with pytest.raises(OptionError, match=f"kafka.{setting.name}.*no effect in this source"):
                    make(**{f"kafka.{setting.name}": "1"})


@pytest.mark.parametrize(
    "name", ["group.id", "enable.auto.commit", "auto.offset.reset", "max.poll.records", "key.deserializer", "retries"]
)
def test_properties_that_are_sparks_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"kafka.{name} .*no effect in this source"):
        reading(**{f"kafka.{name}": "1"})


@pytest.mark.parametrize("make", [reading, writing])
def test_an_unknown_property_is_refused(make: Any) -> None:
    with pytest.raises(OptionError):
        make(**{"kafka.isolation.levle": "read_committed"})
