"""``kafka-live`` against real brokers: tables, streams and sinks without a jar, compared with Spark's own connector."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kafka_msgs import OffsetCommitValue, encode_versioned
from kafka_msgs.client import Producer, TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.spark.sources.live_topics import from_json
from kafka_msgs.spark.sources.offset_options import limit_offsets, to_json
from tests.spark.connector import connector_jars
from tests.support.cluster_topics import new_topic
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.spark_tables import followed

pytestmark = pytest.mark.spark

APPLICATION = Path(__file__).parent / "kafka_live_app.py"
SECONDS = 900
"""Maximum run time of an application in seconds: on a busy machine, starting Spark alone takes minutes."""
KEPT = {"retention.ms": "-1"}
"""Records have timestamps of 1970: by default the broker may delete them."""


def fill(cluster: ClusterAddresses, topic: str, numbers: range) -> None:
    """Write one record per number; the number is also the timestamp in ms."""
    with Producer(cluster.bootstrap_servers) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, key=b"k%d" % (number % 7), timestamp=number, headers=[("h", b"1")])


def fill_in_transactions(cluster: ClusterAddresses, topic: str) -> None:
    """Write ten committed records, ten aborted ones, and ten committed ones."""
    with Producer(cluster.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for first, commit in ((0, True), (10, False), (20, True)):
            producer.begin_transaction()
            for number in range(first, first + 10):
                producer.send(topic, b"%d" % number, partition=0)
            producer.flush()
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()


def table(spark: SparkSession, cluster: ClusterAddresses, **options: str) -> DataFrame:
    """Read a table."""
    reader = spark.read.format("kafka-live").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return reader.options(**options).load()


def numbers_in(frame: DataFrame) -> list[int]:
    """Return the values as numbers."""
    return sorted(int(row.value) for row in frame.select("value").collect())


def read_committed(cluster: ClusterAddresses, topic: str, partitions: int = 2) -> list[int]:
    """Read the numbers of a topic with the consumer, up to the current ends of its partitions."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    with Consumer(cluster.bootstrap_servers) as consumer:
        consumer.assign(places)
        consumer.seek_to_end(*places)
        ends = {place: consumer.position(place) for place in places}
    settings: Any = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    found: list[int] = []
    with Consumer(cluster.bootstrap_servers, **settings) as consumer:
        consumer.assign(places)
        # Transaction markers, which are not records, may be written after the EndTxn response.
        while any(consumer.position(place) < end for place, end in ends.items()):
            found += [int(bytes(record.value or b"")) for record in consumer.poll(0.1)]
    return sorted(found)


def stream(spark: SparkSession, cluster: ClusterAddresses, home: Path, target: str, **options: str) -> list[int]:
    """Copy topics to ``target`` up to their current ends; return the row counts of each batch."""
    source = spark.readStream.format("kafka-live").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    sink = (
        source.options(**options)
        .load()
        .select("key", "value", "headers")
        .writeStream.format("kafka-live")
        .option("kafka.bootstrap.servers", cluster.bootstrap_servers)
        .option("topic", target)
        .option("transactionalId", target)
        .option("checkpointLocation", str(home))
    )
    return followed(sink)


def test_a_table_has_every_record_with_the_columns_of_the_log(
    spark: SparkSession, kafka_cluster: ClusterAddresses
) -> None:
    topic = new_topic(kafka_cluster, 2, configs=KEPT)
    fill(kafka_cluster, topic, range(500))
    frame = table(spark, kafka_cluster, subscribe=topic, maxRecordsPerPartition="100")
    assert frame.rdd.getNumPartitions() >= 5
    rows = frame.collect()
    assert sorted(int(row.value) for row in rows) == list(range(500))
    for row in rows:
        number = int(row.value)
        assert (row.topic, bytes(row.key), row.timestamp.timestamp()) == (topic, b"k%d" % (number % 7), number / 1000)
        assert [(each.key, bytes(each.value)) for each in row.headers] == [("h", b"1")]
    assert len({(row.partition, row.offset) for row in rows}) == 500


def test_a_table_begins_and_ends_where_the_options_say(spark: SparkSession, kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, configs=KEPT)
    fill(kafka_cluster, topic, range(100))

    def found(**options: str) -> list[int]:
        return numbers_in(table(spark, kafka_cluster, subscribe=topic, **options))

    start, end = (json.dumps({topic: {"0": offset}}) for offset in (20, 30))
    assert found(startingOffsets=start, endingOffsets=end) == list(range(20, 30))
    assert found(startingTimestamp="90") == list(range(90, 100))
    assert found(startingOffsets="latest") == []
    assert found(startingTimestamp="5000") == []


def test_only_committed_records_are_read_where_that_is_asked_for(
    spark: SparkSession, kafka_cluster: ClusterAddresses
) -> None:
    topic = new_topic(kafka_cluster, configs=KEPT)
    fill_in_transactions(kafka_cluster, topic)
    assert numbers_in(table(spark, kafka_cluster, subscribe=topic)) == list(range(30))
    committed = table(spark, kafka_cluster, subscribe=topic, isolation="read_committed", maxRecordsPerPartition="3")
    assert numbers_in(committed) == [*range(10), *range(20, 30)]


def test_topics_are_chosen_by_pattern_and_partition(spark: SparkSession, kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, 2, configs=KEPT)
    fill(kafka_cluster, topic, range(50))
    assert numbers_in(table(spark, kafka_cluster, subscribePattern=f"{topic[:-3]}.*")) == list(range(50))
    one = table(spark, kafka_cluster, assign=json.dumps({topic: [1]}))
    assert {row.partition for row in one.collect()} == {1}


def test_values_are_typed_and_damage_is_a_row(spark: SparkSession, kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, configs=KEPT)
    value = OffsetCommitValue(offset=17, metadata="m")
    with Producer(kafka_cluster.bootstrap_servers) as producer:
        producer.send(topic, encode_versioned(value, 3))
        producer.send(topic, b"\0")
    rows = (
        table(spark, kafka_cluster, subscribe=topic, message="OffsetCommitValue", columns="offset,decodedValue")
        .orderBy("offset")
        .collect()
    )
    assert (rows[0].decodedValue.offset, rows[0]._error) == (17, None)
    assert rows[1].decodedValue is None
    assert "OffsetCommitValue" in rows[1]._error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "absent-topic"}, "there is no such topic"),
        ({}, "exactly one of subscribe"),
        ({"subscribe": "t", "startingOffset": "earliest"}, "startingOffsets"),
        ({"subscribe": "t", "startingOffsets": "[1]"}, "earliest, latest, or offsets"),
        ({"subscribe": "t", "columns": "file"}, "file"),
    ],
)
def test_a_wrong_option_is_named(
    spark: SparkSession, kafka_cluster: ClusterAddresses, options: dict[str, str], words: str
) -> None:
    with pytest.raises(AnalysisException, match=words):
        table(spark, kafka_cluster, **options).collect()


def test_a_stream_goes_on_after_its_checkpoint_in_batches_of_the_limit(
    spark: SparkSession, kafka_cluster: ClusterAddresses, tmp_path: Path
) -> None:
    source, target = new_topic(kafka_cluster, 2, configs=KEPT), new_topic(kafka_cluster, 2, configs=KEPT)
    fill(kafka_cluster, source, range(300))
    options = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "100"}
    sizes = stream(spark, kafka_cluster, tmp_path, target, **options)
    assert sum(sizes) == 300
    assert max(sizes) <= 100
    fill(kafka_cluster, source, range(300, 350))
    assert stream(spark, kafka_cluster, tmp_path, target, **options) == [50]
    assert read_committed(kafka_cluster, target) == list(range(350))
    offsets = json.loads((tmp_path / "offsets" / "0").read_text().splitlines()[-1])
    assert sum(from_json(offsets).values()) <= 100


def test_a_batch_that_spark_repeats_is_written_once(
    spark: SparkSession, kafka_cluster: ClusterAddresses, tmp_path: Path
) -> None:
    source, target = new_topic(kafka_cluster, 2, configs=KEPT), new_topic(kafka_cluster, 2, configs=KEPT)
    fill(kafka_cluster, source, range(100))
    options = {"subscribe": source, "startingOffsets": "earliest"}
    stream(spark, kafka_cluster, tmp_path, target, **options)
    last = max((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()  # as if the driver had been killed before it recorded the end of the batch
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    stream(spark, kafka_cluster, tmp_path, target, **options)
    assert read_committed(kafka_cluster, target) == list(range(100))


def test_a_table_is_written_to_the_topics_of_its_rows(spark: SparkSession, kafka_cluster: ClusterAddresses) -> None:
    topics = [new_topic(kafka_cluster, configs=KEPT) for _ in range(2)]
    rows = [(topics[number % 2], f"k{number}", b"%d" % number, number % 1) for number in range(40)]
    frame = spark.createDataFrame(rows, "topic string, key string, value binary, partition int")
    sink = frame.write.format("kafka-live").option("kafka.bootstrap.servers", kafka_cluster.bootstrap_servers)
    sink.option("compression", "zstd").mode("append").save()
    assert read_committed(kafka_cluster, topics[0], 1) == list(range(0, 40, 2))
    assert read_committed(kafka_cluster, topics[1], 1) == list(range(1, 40, 2))


def application(how: str, cluster: ClusterAddresses, home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start the application in a separate process group."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.jars": ",".join(connector_jars()) if how == "compare" else "",
    }
    confs = " ".join(f"--conf {name}={value}" for name, value in settings.items() if value)
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"{confs} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, str(APPLICATION), how, cluster.bootstrap_servers, str(home), *arguments]
    with (home / "stderr.txt").open("ab") as errors:
        return subprocess.Popen(
            ["timeout", "--signal=KILL", str(SECONDS), *command],
            cwd=home, env=environment, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip


def test_rows_are_those_of_sparks_own_connector(kafka_cluster: ClusterAddresses, tmp_path: Path) -> None:
    topic = new_topic(kafka_cluster, 2, configs=KEPT)
    fill(kafka_cluster, topic, range(200))
    process = application("compare", kafka_cluster, tmp_path, topic)
    assert process.wait() == 0, (tmp_path / "stderr.txt").read_text()[-4000:]
    found = json.loads((tmp_path / "compared.json").read_text())
    ours, theirs = found.pop("metrics")
    assert all(computed == reported for computed, reported in theirs)
    assert max(int(computed["maxOffsetsBehindLatest"]) for computed, _ in theirs) > 0
    assert [computed for computed, _ in ours] == [computed for computed, _ in theirs]
    assert found == {"ours": 200, "theirs": 200, "different": 0}


def test_a_killed_stream_loses_and_repeats_nothing(kafka_cluster: ClusterAddresses, tmp_path: Path) -> None:
    source, target = new_topic(kafka_cluster, 2, configs=KEPT), new_topic(kafka_cluster, 2, configs=KEPT)
    fill(kafka_cluster, source, range(1200))
    process = application("copy", kafka_cluster, tmp_path, source, target)
    commits = tmp_path / "checkpoint" / "commits"
    while len(list(commits.glob("[0-9]*"))) < 2:
        assert process.poll() is None, (tmp_path / "stderr.txt").read_text()[-4000:]
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(commits.glob("[0-9]*")))
    again = application("copy", kafka_cluster, tmp_path, source, target)
    assert again.wait() == 0, (tmp_path / "stderr.txt").read_text()[-4000:]
    assert done < len(list(commits.glob("[0-9]*")))
    assert read_committed(kafka_cluster, target) == list(range(1200))


def test_a_limit_is_shared_by_what_waits_and_starves_nobody() -> None:
    start = {TopicPartition("t", number): 0 for number in range(3)}
    end = {TopicPartition("t", 0): 1000, TopicPartition("t", 1): 1, TopicPartition("t", 2): 0}
    assert limit_offsets(start, end, 100) == {("t", 0): 99, ("t", 1): 1, ("t", 2): 0}
    assert limit_offsets(start, end, 5000) == end


def test_positions_have_the_form_of_sparks_checkpoints() -> None:
    offsets = {TopicPartition("b", 1): 7, TopicPartition("a", 0): 2, TopicPartition("b", 0): 5}
    assert to_json(offsets) == {"a": {"0": 2}, "b": {"0": 5, "1": 7}}
    assert from_json(to_json(offsets)) == offsets
