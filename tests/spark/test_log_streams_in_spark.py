"""``readStream.format("kafka-log")`` in Spark, beside a broker that writes to the directory meanwhile."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Producer

SECONDS = 240
TOPIC = "events"
COLUMNS = "topic,partition,offset,timestamp,key,value,headers,file,batchPosition"


def fill(broker: EmbeddedBroker, numbers: range) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for number in numbers:
            value = b"%d" % number + bytes(12_000)
            producer.send(TOPIC, value, key=b"k%d" % (number % 5), timestamp=number, headers=[("h", b"1")])


def drain(spark: SparkSession, logs: Path, home: Path) -> list[int]:
    """Follow the directory up to where it ends now; return the rows of each micro-batch."""
    rows = spark.readStream.format("kafka-log").option("columns", COLUMNS).option("maxOffsetsPerTrigger", "200")
    sink = rows.load(str(logs)).writeStream.format("parquet").option("checkpointLocation", str(home / "checkpoint"))
    query = sink.option("path", str(home / "rows")).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(SECONDS)
        return [count for each in query.recentProgress if (count := each["numInputRows"])]
    finally:
        query.stop()


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
        last.unlink()  # as if the driver had died before it noted the end of the batch
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
        fill(broker, range(250, 300))
        drain(spark, logs / f"{TOPIC}-*", home)
        table = spark.read.format("kafka-log").option("columns", COLUMNS).load(str(logs / f"{TOPIC}-*"))
        assert sorted(spark.read.parquet(str(home / "rows")).collect()) == sorted(table.collect())
        assert table.count() == 300
