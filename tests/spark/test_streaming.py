"""Live topics in both directions against a real broker, with the application killed midway and restarted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyspark
import pytest
from attrs import frozen

from kafka_msgs import OffsetCommitValue, Versioned, decode_versioned
from kafka_msgs.columns.types import arrow_type
from kafka_msgs.errors import OptionError
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.records import Record
from kafka_msgs.spark.kafka_connector import connector_packages, read_stream
from tests.spark.connector import connector_jars
from tests.support.cluster_topics import new_topic
from tests.support.kafka_cluster import ClusterAddresses

APPLICATION = Path(__file__).parent / "live_app.py"
FIRST, SECOND = range(240), range(240, 300)
AT_VERSION_3 = ("offset", "leader_epoch", "metadata", "commit_timestamp")
SECONDS = 300
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def application(how: str, cluster: ClusterAddresses, topic: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the application in a separate process group, and kill it at the end if it is still running."""
    settings = {**SETTINGS, "spark.jars": ",".join(connector_jars())}
    confs = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"{confs} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, str(APPLICATION), how, cluster.bootstrap_servers, topic, str(home)]
    with (home / "stderr.txt").open("ab") as errors:
        process = subprocess.Popen(
            ["timeout", "--signal=KILL", str(SECONDS), *command],
            cwd=home, env=environment, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], home: Path) -> None:
    while not condition():
        assert process.poll() is None, (home / "stderr.txt").read_text()[-4000:]
        time.sleep(0.02)


@frozen
class Story:
    """A topic, the reader's final rows, their number when the reader was killed, and the written records."""

    topic: str
    seen: list[dict[str, Any]]
    seen_before: int
    written: dict[tuple[int, int], Record]


def made(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset, leader_epoch=7, metadata=f"é{offset}", commit_timestamp=1_700_000_000_000 + offset
    )


def write_commits(home: Path, name: str, offsets: range) -> None:
    """Write a file for the application, which sees it only when complete."""
    schema = pa.schema(list(arrow_type(OffsetCommitValue, 3)))
    rows = [{name: getattr(made(offset), name) for name in schema.names} for offset in offsets]
    (home / "commits").mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), home / name)
    (home / name).rename(home / "commits" / f"{name}.parquet")


def batches_done(home: Path, query: str) -> int:
    """Return how many batches a query has recorded as completed."""
    return len(list((home / "checkpoints" / query / "commits").glob("[0-9]*")))


def records_of(cluster: ClusterAddresses, topic: str) -> dict[tuple[int, int], Record]:
    """Return the records in the brokers' files of a topic, by partition and offset, read without Spark."""
    return {
        (partition.partition, record.offset): record
        for node in cluster.nodes
        for partition in map(Partition, cluster.log_dir(node).glob(f"{topic}-*"))
        for batch in partition.batches()
        for record in batch
    }


def seen(home: Path) -> list[dict[str, Any]]:
    """Return the rows of the files that Spark's sink has recorded as complete."""
    names = {
        name.split('"path":"')[1].split('"')[0].removeprefix("file://")
        for log in (home / "seen" / "_spark_metadata").glob("[0-9]*")
        for name in log.read_text().splitlines()[1:]
    }
    rows: list[dict[str, Any]] = ds.dataset(sorted(names), format="parquet").to_table().to_pylist()
    return rows


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, kafka_cluster: ClusterAddresses) -> Story:
    """The rows and records after the application was killed and restarted."""
    home = tmp_path_factory.mktemp("streaming")
    topic = new_topic(kafka_cluster, 4)
    kafka_cluster.console_producer(topic, ["no message"])
    write_commits(home, "first", FIRST)
    with application("until-killed", kafka_cluster, topic, home) as running:
        wait_for(lambda: batches_done(home, "copying") > 0 and batches_done(home, "watching") > 0, running, home)
    seen_before = len(seen(home))
    write_commits(home, "second", SECOND)
    with application("to-the-end", kafka_cluster, topic, home) as running:
        assert running.wait(SECONDS) == 0, (home / "stderr.txt").read_text()[-4000:]
    return Story(topic, seen(home), seen_before, records_of(kafka_cluster, topic))


@pytest.mark.oracle
def test_a_restarted_writer_has_written_each_message_once(story: Story) -> None:
    found = {}
    for record in story.written.values():
        if record.key is not None and record.value is not None:
            found[int(record.key)] = decode_versioned(OffsetCommitValue, record.value)
            assert record.headers == (("made-by", b"test"),)
    assert len(story.written) == len(found) + 1 == len(FIRST) + len(SECOND) + 1
    assert found == {offset: Versioned(3, made(offset)) for offset in (*FIRST, *SECOND)}


@pytest.mark.oracle
def test_a_restarted_reader_has_lost_and_repeated_nothing(story: Story) -> None:
    assert 0 < story.seen_before < len(FIRST)
    assert sorted((row["partition"], row["offset"]) for row in story.seen) == sorted(story.written)


@pytest.mark.oracle
def test_live_rows_are_what_the_files_of_the_broker_hold(story: Story) -> None:
    for row in story.seen:
        record = story.written[row["partition"], row["offset"]]
        assert (row["topic"], row["timestampType"]) == (story.topic, 0)
        assert row["timestamp"].timestamp() * 1000 == pytest.approx(record.timestamp, abs=0.01)
        assert (row["key"], row["value"]) == (record.key, record.value)
        if record.key is not None:
            assert row["headers"] == [{"key": "made-by", "value": b"test"}]
            expected = made(int(record.key))
            assert all(getattr(expected, name) == row["typed"][name] for name in AT_VERSION_3)
            assert row["typed"]["_error"] is None


@pytest.mark.oracle
def test_bytes_that_are_not_a_message_are_reported_in_their_row(story: Story) -> None:
    (row,) = (row for row in story.seen if row["typed"]["_error"])
    assert (row["value"], row["headers"]) == (b"no message", [])
    assert row["typed"]["_error"].startswith("OffsetCommitValue")
    assert row["typed"]["offset"] is None


def test_connector_is_that_of_the_spark_installed() -> None:
    assert connector_packages() == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert connector_packages("4.3.1").endswith(":4.3.1")


@pytest.mark.parametrize("topic", ["__consumer_offsets", "orders, __transaction_state"])
def test_topics_that_the_connector_passes_over_are_refused(topic: str) -> None:
    with pytest.raises(OptionError, match="internal"):
        read_stream(None, "127.0.0.1:1", topic)  # type: ignore[arg-type]
