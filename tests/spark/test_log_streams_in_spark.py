"""Streams and sinks of ``kafka-log`` in Spark: next to a writing broker, and to a new directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Producer
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.recordings import LOGS
from tests.support.spark_tables import followed, read

TOPIC = "events"
COLUMNS = "topic,partition,offset,timestamp,key,value,headers,file,batchPosition"

KEPT = "topic,partition,offset,timestampMs,timestampType,key,value,headers,leaderEpoch"


def fill(broker: EmbeddedBroker, numbers: range) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for number in numbers:
            value = b"%d" % number + bytes(12_000)
            producer.send(TOPIC, value, key=b"k%d" % (number % 5), timestamp=number, headers=[("h", b"1")])


def drain(spark: SparkSession, logs: Path, home: Path) -> list[int]:
    """Follow the directory up to its current end; return the row counts of each micro-batch."""
    rows = spark.readStream.format("kafka-log").option("columns", COLUMNS).option("maxOffsetsPerTrigger", "200")
    sink = rows.load(str(logs)).writeStream.format("parquet").option("checkpointLocation", str(home / "checkpoint"))
    return followed(sink.option("path", str(home / "rows")))


def test_a_directory_that_grows_is_read_once_across_restarts_and_repeated_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, home = tmp_path / "logs", tmp_path / "stream"
    configs = {"segment.bytes": "1048576", "retention.ms": "-1"}
    with EmbeddedBroker(directory=logs) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 2, 1, configs=configs)])
        fill(broker, range(250))
        assert len(list((logs / f"{TOPIC}-0").glob("*.log"))) > 1
        sizes = drain(spark, logs / f"{TOPIC}-*", home)
        assert sum(sizes) == 250
        assert len(sizes) > 1
        last = max((home / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()  # as if the driver had been killed before it recorded the end of the batch
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
        fill(broker, range(250, 300))
        drain(spark, logs / f"{TOPIC}-*", home)
        table = spark.read.format("kafka-log").option("columns", COLUMNS).load(str(logs / f"{TOPIC}-*"))
        assert sorted(spark.read.parquet(str(home / "rows")).collect()) == sorted(table.collect())
        assert table.count() == 300


def test_a_table_is_written_by_executors_as_whole_partitions_or_not_at_all(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.read.format("kafka-log").option("columns", KEPT).load(str(LOGS))
    whole = rows.repartition(2, "topic", "partition").sortWithinPartitions("topic", "partition", "offset")
    copy, torn = tmp_path / "copy", tmp_path / "torn"
    whole.write.format("kafka-log").option("compression", "zstd").mode("append").save(str(copy))
    assert in_order(copy) == in_order(LOGS)
    with pytest.raises(PySparkException, match=r"there is a partition .* the mode overwrite replaces it"):
        whole.write.format("kafka-log").mode("append").save(str(copy))
    some = rows.where("topic = 'codecs' and offset < 8")
    with pytest.raises(PySparkException, match="codecs-0 was written by more than one task"):
        some.repartition(2, "offset").sortWithinPartitions("offset").write.format("kafka-log").mode("append").save(
            str(torn)
        )
    some.coalesce(1).sortWithinPartitions("offset").write.format("kafka-log").mode("overwrite").save(str(copy))
    kept = [row for row in in_order(LOGS) if row["topic"] != "codecs" or row["offset"] < 8]
    assert in_order(copy) == kept
    assert len(kept) < len(in_order(LOGS))
    assert list(torn.iterdir()) == []
    assert list(copy.glob(".kafka-msgs-*")) == []


def in_order(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a directory, read without Spark."""
    return sorted(
        read(KafkaLogSource, path, columns=KEPT), key=lambda row: (row["topic"], row["partition"], row["offset"])
    )
