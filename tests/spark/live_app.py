"""A typical streaming application, started, killed and restarted by ``test_streaming``.

``live_app.py until-killed|to-the-end BOOTSTRAP TOPIC HOME`` copies Parquet files with the columns of an
``OffsetCommitValue`` from ``HOME/commits`` to the topic, and from there to Parquet in ``HOME/seen``, a few records at a
time. Checkpoints are below ``HOME/checkpoints``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kafka_msgs.spark import from_kafka, register, schema_of, to_kafka
from kafka_msgs.spark.kafka_connector import read_stream, write_stream

VERSION = 3
FEW = "60"


def started(writer: DataStreamWriter, home: Path, name: str, *, to_the_end: bool) -> StreamingQuery:
    """Start a query with its checkpoint; if it has no end, it runs batch after batch."""
    writer = writer.option("checkpointLocation", str(home / "checkpoints" / name))
    return (writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime="0 seconds")).start()


def copying(spark: SparkSession, bootstrap: str, topic: str, home: Path) -> DataStreamWriter:
    """Copy commits from files to a topic."""
    schema = schema_of("OffsetCommitValue", VERSION)
    rows = spark.readStream.schema(schema).parquet(str(home / "commits"))
    value = to_kafka(sf.struct(*schema.names), "OffsetCommitValue", VERSION, prefix=True)
    named = sf.array(sf.struct(sf.lit("made-by").alias("key"), sf.lit(b"test").alias("value")))
    made = rows.select(sf.col("offset").cast("string").alias("key"), value.alias("value"), named.alias("headers"))
    return write_stream(made, bootstrap, topic=topic)


def watching(spark: SparkSession, bootstrap: str, topic: str, home: Path) -> DataStreamWriter:
    """Copy the topic to files, a few records at a time."""
    rows = read_stream(spark, bootstrap, topic, options={"maxOffsetsPerTrigger": FEW})
    typed = rows.withColumn("typed", from_kafka("value", "OffsetCommitValue"))
    return typed.writeStream.format("parquet").option("path", str(home / "seen"))


def main(how: str, bootstrap: str, topic: str, directory: str) -> None:
    """Run both streams: concurrently, or the second after the first, so that it reads all output."""
    home, to_the_end = Path(directory), how == "to-the-end"
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    copy = started(copying(spark, bootstrap, topic, home), home, "copying", to_the_end=to_the_end)
    if to_the_end:
        copy.awaitTermination()
    watch = started(watching(spark, bootstrap, topic, home), home, "watching", to_the_end=to_the_end)
    watch.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
