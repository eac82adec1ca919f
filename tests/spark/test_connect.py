"""Sources, functions and SQL over Spark Connect: a loopback server, a client without a JVM, and shipped code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import OffsetCommitValue
from kafka_msgs.internal_topics.records import TopicRecord, decode_record
from kafka_msgs.log.log_directory import LogDirectory
from kafka_msgs.records import Record
from tests.support.recordings import GROUP_LOGS

APPLICATION = Path(__file__).parent / "connect_app.py"
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
SECONDS = 300

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The output of the application, which runs in a directory outside the project."""
    home = tmp_path_factory.mktemp("connect")
    confs = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"{confs} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Makes the server use a free port instead of the default one.
        "SPARK_TESTING": "1",
    }
    command = [sys.executable, str(APPLICATION), "local[2]", str(GROUP_LOGS)]
    done = subprocess.run(
        ["timeout", "--kill-after=10", str(SECONDS), *command],
        cwd=home, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def records(topic: str) -> list[Record]:
    return [
        record
        for partition in LogDirectory(GROUP_LOGS).partitions
        if partition.topic == topic
        for batch in partition.batches()
        if not batch.is_control  # type: ignore[union-attr]
        for record in batch
    ]


def commits() -> list[tuple[bytes, OffsetCommitValue]]:
    """Return commits with their bytes, read without Spark."""
    found = []
    for record in records("__consumer_offsets"):
        typed = decode_record("__consumer_offsets", record.key, record.value)
        if isinstance(typed, TopicRecord) and isinstance(typed.value, OffsetCommitValue):
            assert record.value is not None
            found.append((bytes(record.value), typed.value))
    return found


def test_session_is_one_of_connect(answers: dict[str, Any]) -> None:
    assert answers["session"].startswith("pyspark.sql.connect")


def test_log_source_gives_the_records_of_a_topic(answers: dict[str, Any]) -> None:
    orders = records("orders")
    assert answers["orders"] == [len(orders), sum(record.offset for record in orders)]
    assert answers["counted"] == len(orders)


def test_functions_decode_what_the_library_decodes(answers: dict[str, Any]) -> None:
    values = commits()
    assert answers["commits"] == len(values)
    assert answers["sum"] == answers["sum by SQL"] == sum(value.offset for _, value in values)


def test_messages_are_written_back_to_their_bytes(answers: dict[str, Any]) -> None:
    modern = sum(data.startswith(b"\0\4") for data, _ in commits())
    assert answers["modern"] == answers["written alike"] == modern > 10


def test_offsets_source_names_every_group_that_committed(answers: dict[str, Any]) -> None:
    committed = {"audit", "billing", "inspection", "ledger", "seasonal", "settlement", "shipping", "totals", "watch"}
    assert set(answers["groups"]) == committed | {"retired"}
