"""Spark application for ``kafka-live`` in a separate process, to be killed or to load a connector's jars.

* python kafka_live_app.py compare BROKERS HOME TOPIC
* python kafka_live_app.py copy BROKERS HOME SOURCE TARGET
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kafka_msgs.spark import register

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")


def compare(spark: SparkSession, brokers: str, home: Path, topic: str) -> None:
    """Read a topic with this library and with Spark's own connector, and write the number of different rows."""

    def read(source: str, **options: str) -> DataFrame:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
        return reader.options(**options).load().select(*COLUMNS)

    ours, theirs = read("kafka-live"), read("kafka", includeHeaders="true")
    rows = [set(map(str, frame.collect())) for frame in (ours, theirs)]
    found = {"ours": len(rows[0]), "theirs": len(rows[1]), "different": len(rows[0] ^ rows[1])}
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
