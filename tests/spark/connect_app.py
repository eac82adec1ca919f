"""Typical calls of a Spark Connect user, in a separate process; prints the results as one line of JSON.

``connect_app.py REMOTE LOG_DIRECTORY``: ``REMOTE`` is ``local[2]``, which starts a server on loopback, or ``sc://...``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafka_msgs.spark import count_records, from_kafka, register, to_kafka


def answers(spark: SparkSession, directory: str) -> dict[str, Any]:
    """Return one result of each source, function and SQL statement."""
    log = spark.read.format("kafka-log").load(directory)
    orders = log.where("topic = 'orders'").agg(sf.count("*"), sf.sum("offset")).first()
    commits = log.where("topic = '__consumer_offsets' AND value IS NOT NULL").select(
        "partition", "offset", from_kafka("key", "OffsetCommitKey").alias("key"), "value"
    )
    values = commits.where("key._error IS NULL").withColumn("typed", from_kafka("value", "OffsetCommitValue"))
    modern = values.where("startswith(hex(value), '0004')")
    written = modern.select("value", to_kafka("typed", "OffsetCommitValue", 4, prefix=True).alias("again"))
    values.select("value").createOrReplaceTempView("commits")
    by_sql = spark.sql(
        "SELECT sum(typed.offset) FROM (SELECT from_kafka_offset_commit_value(value) AS typed FROM commits)"
    )
    groups = spark.read.format("kafka-offsets").load(directory).where("recordType = 'OffsetCommit'")
    return {
        "orders": list(orders or ()),
        "commits": values.count(),
        "sum": one(values.agg(sf.sum("typed.offset"))),
        "sum by SQL": one(by_sql),
        "modern": written.count(),
        "written alike": written.where("value = again").count(),
        "counted": count_records(spark, directory, topics="orders"),
        "groups": sorted(row[0] for row in groups.select("group").distinct().collect()),
    }


def one(rows: DataFrame) -> Any:
    """Return the single value of a table."""
    (row,) = rows.collect()
    return row[0]


def main(remote: str, directory: str) -> None:
    """Run all calls over one session."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    register(spark)
    print(json.dumps({"session": type(spark).__module__, **answers(spark, directory)}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
