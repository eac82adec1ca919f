"""The bytes that Spark sends to tasks: each input of a task has its own files and transactions, and nothing else."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from kafka_msgs.records import BatchBuilder
from kafka_msgs.spark.sources.counts import KafkaLogCountsSource
from kafka_msgs.spark.sources.log import KafkaLogSource
from kafka_msgs.spark.sources.offsets import KafkaOffsetsSource

PARTITIONS = 300
SEGMENTS = 4


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The directories of many partitions with small segments."""
    home, found = tmp_path_factory.mktemp("logs"), []
    builder = BatchBuilder()
    builder.append(None, b"value", timestamp=1)
    data = builder.build()
    for number in range(PARTITIONS):
        directory = home / f"events-{number}"
        directory.mkdir()
        for segment in range(SEGMENTS):
            (directory / f"{segment * 1000:020}.log").write_bytes(data)
        found.append(directory)
    return found


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("source", [KafkaLogSource, KafkaLogCountsSource])
def test_the_input_of_a_task_names_only_its_own_logs(source: type, isolation: str, logs: list[Path]) -> None:
    options = {"path": str(logs[0].parent), "isolation": isolation, "splitBytes": "2m"}
    partitions = source(options).reader(StructType()).partitions()
    assert len(partitions) > 100
    seen: set[str] = set()
    for each in partitions:
        own = {part.file.directory for part in each.value}
        data = pickle.dumps(each)
        assert {str(path) for path in logs if f"{path}/".encode() in data} == own
        assert len(data) < 2000 + 500 * len(each.value)
        seen |= own
    assert seen == set(map(str, logs))


@pytest.mark.parametrize("source", [KafkaLogSource, KafkaLogCountsSource, KafkaOffsetsSource])
def test_the_reader_of_a_task_does_not_grow_with_the_paths(source: type, logs: list[Path]) -> None:
    directory = logs[0].rename(logs[0].parent / "__consumer_offsets-0") if source is KafkaOffsetsSource else logs[0]
    few = source({"path": str(directory)}).reader(StructType())
    many = source({"path": str(directory), "paths": str([*map(str, logs[1:])]).replace("'", '"')}).reader(StructType())
    assert len(pickle.dumps(many)) == len(pickle.dumps(few)) < 6000
    assert pickle.loads(pickle.dumps(many)).reading == many.reading
