"""Spark application for ``kafka-live`` in a separate process, to be killed or to load a connector's jars.

* python kafka_live_app.py compare BROKERS HOME TOPIC
* python kafka_live_app.py copy BROKERS HOME SOURCE TARGET
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kafka_msgs.spark import register
from kafka_msgs.spark.live_metrics import offsets_behind_latest

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")


def metrics_of(spark: SparkSession, brokers: str, home: Path, topic: str, source: str) -> list[list[dict[str, str]]]:
    """Follow a topic in small batches; return the metrics of each batch, by this library and by Spark."""
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    frame = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "60").load()
    sink = frame.select("offset").writeStream.format("noop").option("checkpointLocation", str(home / f"of-{source}"))
    query = sink.trigger(availableNow=True).start()
    query.awaitTermination()
    sources = [each["sources"][0] for each in query.recentProgress if each["numInputRows"]]
    return [[offsets_behind_latest(each), dict(each["metrics"] or {})] for each in sources]


def compare(spark: SparkSession, brokers: str, home: Path, topic: str) -> None:
    """Read a topic with this library and with Spark's own connector, and write the number of different rows."""

    def read(source: str, **options: str) -> DataFrame:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
        return reader.options(**options).load().select(*COLUMNS)

    ours, theirs = read("kafka-live"), read("kafka", includeHeaders="true")
    rows = [set(map(str, frame.collect())) for frame in (ours, theirs)]
    found: dict[str, Any] = {"ours": len(rows[0]), "theirs": len(rows[1]), "different": len(rows[0] ^ rows[1])}
    found["metrics"] = [metrics_of(spark, brokers, home, topic, source) for source in ("kafka-live", "kafka")]
    (home / "compared.json").write_text(json.dumps(found))


def copy(spark: SparkSession, brokers: str, home: Path, source: str, target: str) -> None:
    """Copy a topic in small batches, up to its current end."""
    frame = (
        spark.readStream.format("kafka-live")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "200")
        .load()
    )
    query = (
        frame.select("key", "value")
        .writeStream.format("kafka-live")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", target)
        .option("transactionalId", f"copy-{target}")
        .option("checkpointLocation", str(home / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def main(how: str, brokers: str, home: str, *topics: str) -> None:
    """Run the command in the first argument."""
    spark = SparkSession.builder.appName("kafka-live").getOrCreate()
    register(spark)
    if how == "compare":
        compare(spark, brokers, Path(home), *topics)
    else:
        copy(spark, brokers, Path(home), *topics)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
