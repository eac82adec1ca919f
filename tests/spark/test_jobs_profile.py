"""The topic profile, compared with a plain walk over the same log directories of a real broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_msgs.engines.frames import topic_profile
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.records import ControlRecord, ControlType, RecordBatch
from tests.support.recordings import LOGS

HOUR = 3_600_000

Facts = dict[str, Any]


def batches(partition: Partition) -> Iterator[RecordBatch]:
    for batch in skip_faults(partition.walk_batches()):
        assert isinstance(batch, RecordBatch)
        yield batch


def walked(partition: Partition) -> dict[int, Facts]:
    """Return the same hourly numbers from one walk over a partition."""
    hours: defaultdict[int, Facts] = defaultdict(lambda: defaultdict(int))
    open_records: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    before: int | None = None
    for batch in batches(partition):
        items: list[Any] = list(batch.control_records() if batch.is_control else batch.records())
        if not items:
            continue
        hour = items[0].timestamp // HOUR * HOUR
        facts = hours[hour]
        facts["bytes"] += batch.size
        if batch.is_control:
            settle(items[0], facts, hours, open_records.pop(batch.producer_id, []))
            continue
        if batch.is_transactional:
            open_records[batch.producer_id].append((hour, len(items)))
        facts["batches"] += 1
        facts["records"] += len(items)
        for item in items:
            facts["tombstones"] += item.value is None
            facts["withoutKey"] += item.key is None
            facts["contentBytes"] += sum(len(part) for part in (item.key, item.value) if part is not None)
            facts["contentBytes"] += sum(len(name.encode()) + len(value or b"") for name, value in item.headers)
            facts["outOfOrder"] += before is not None and item.timestamp < before
            before = item.timestamp
    return hours


def settle(marker: ControlRecord, facts: Facts, hours: dict[int, Facts], waiting: list[tuple[int, int]]) -> None:
    if marker.type is ControlType.COMMIT:
        facts["transactions"] += 1
    elif marker.type is ControlType.ABORT:
        facts["abortedTransactions"] += 1
        for hour, count in waiting:
            hours[hour]["abortedRecords"] += count


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, list[Facts]]:
    found = topic_profile(spark, [LOGS])
    return {name: [row.asDict() for row in found[name].collect()] for name in ("profile", "problems")}


FIGURES = (
    "records", "batches", "bytes", "contentBytes", "tombstones", "withoutKey", "transactions", "abortedTransactions",
    "abortedRecords", "outOfOrder",
)  # fmt: skip


def test_figures_are_those_of_a_walk_over_the_files(tables: dict[str, list[Facts]]) -> None:
    found = {
        (row["topic"], row["partition"], row["hourMs"]): {name: row[name] for name in FIGURES}
        for row in tables["profile"]
    }
    expected = {
        (each.topic, each.partition, hour): {name: facts[name] for name in FIGURES}
        for each in LogDirectory(LOGS).partitions
        for hour, facts in walked(each).items()
    }
    assert found == expected
    assert all(row["hour"].timestamp() * 1000 == row["hourMs"] for row in tables["profile"])
    assert sum(row["abortedRecords"] for row in found.values()) > 0
    assert sum(row["outOfOrder"] for row in found.values()) >= 0


def test_every_codec_of_a_topic_is_named(tables: dict[str, list[Facts]]) -> None:
    codecs = {name for row in tables["profile"] if row["topic"] == "codecs" for name in row["codecs"]}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_cut_file_is_a_problem_beside_the_profile(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "codecs-0"
    directory.mkdir()
    log = max((LOGS / "codecs-0").glob("*.log"), key=lambda path: path.stat().st_size)
    (directory / log.name).write_bytes(log.read_bytes()[:-3])
    found = topic_profile(spark, [directory])
    (problem,) = found["problems"].collect()
    assert problem["file"] == str(directory / log.name)
    whole = sum(facts["records"] for facts in walked(Partition(directory)).values())
    assert found["profile"].agg({"records": "sum"}).collect()[0][0] == whole > 0
