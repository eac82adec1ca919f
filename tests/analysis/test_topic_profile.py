"""The topic profile, on a partition with hand-counted statistics and on recorded directories."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import EndTxnMarker
from kafka_msgs.analysis.topic_profile import read_profile
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.log.summary import read_summary
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ControlType, MessageSetBuilder
from tests.support.profile_walk import STATISTICS, profile_by_walk
from tests.support.recordings import GROUP_LOGS, LOGS

HOUR = 3_600_000


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    """Two batches of hour 1 (one aborted, one without a transaction), a marker in hour 2, and a batch without times."""
    aborted = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    aborted.append(b"key", b"value", timestamp=HOUR, headers=[("h", b"12"), ("n", None)])
    aborted.append(None, b"value", timestamp=HOUR + 1)
    plain = BatchBuilder(BatchHeader(base_offset=2), codec=CompressionType.GZIP)
    plain.append(b"key", None, timestamp=HOUR + 5)
    plain.append(b"longer", b"v", timestamp=HOUR + 4)
    plain.append(b"longer", b"v", timestamp=HOUR)
    marker = BatchBuilder(BatchHeader(base_offset=5, producer_id=7, producer_epoch=0, transactional=True, control=True))
    marker.append_control(ControlType.ABORT, EndTxnMarker(), timestamp=2 * HOUR)
    timeless = BatchBuilder(BatchHeader(base_offset=6))
    timeless.append(b"k", b"v", timestamp=-1)
    directory = tmp_path / "orders-3"
    directory.mkdir()
    batches = [builder.build() for builder in (aborted, plain, marker, timeless)]
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))
    return Partition(directory)


def rows(partition: Partition, *by: str) -> dict[Any, dict[str, Any]]:
    found = read_profile([partition])
    assert found.problems == ()
    return {tuple(row[name] for name in by): row for row in found.rows(*by)}


def test_statistics_by_hour(partition: Partition) -> None:
    found = rows(partition, "topic", "partition", "hourMs")
    assert list(found) == [("orders", 3, HOUR), ("orders", 3, 2 * HOUR), ("orders", 3, None)]
    first = found["orders", 3, HOUR]
    assert (first["records"], first["batches"], first["tombstones"], first["withoutKey"]) == (5, 2, 1, 1)
    assert first["contentBytes"] == (3 + 3 + 6 + 6) + (5 + 5 + 1 + 1) + (1 + 2 + 1)
    assert (first["maxKeySize"], first["maxValueSize"]) == (6, 5)
    assert (first["codecs"], first["producers"], first["abortedRecords"]) == (["gzip", "none"], 1, 2)
    assert first["outOfOrder"] == 2
    assert (first["firstOffset"], first["lastOffset"]) == (0, 4)
    assert first["meanKeySize"] == 18 / 5
    assert first["ratio"] == 34 / first["bytes"]


def test_a_marker_counts_for_bytes_and_transactions_only(partition: Partition) -> None:
    second = rows(partition, "hourMs")[2 * HOUR,]
    counts = ("abortedTransactions", "transactions", "records", "batches", "codecs", "producers")
    assert [second[name] for name in counts] == [1, 0, 0, 0, [], 0]
    assert second["bytes"] > 0
    assert (second["ratio"], second["meanKeySize"], second["firstOffset"]) == (None, None, None)


def test_statistics_add_up(partition: Partition) -> None:
    (total,) = rows(partition, "topic").values()
    (segment,) = partition.segments
    assert total["bytes"] == segment.size
    assert (total["records"], total["batches"], total["firstOffset"], total["lastOffset"]) == (6, 3, 0, 6)
    assert total["codecs"] == ["gzip", "none"]
    assert total["outOfOrder"] == 3  # The record without a time counts as earlier than the record before it.


def test_a_producer_of_two_partitions_counts_once_for_the_topic(partition: Partition, tmp_path: Path) -> None:
    copy = Partition(shutil.copytree(partition.path, tmp_path / "orders-4"))
    found = read_profile([partition, copy])
    assert [row["producers"] for row in found.rows("topic", "partition")] == [1, 1]
    (topic,) = found.rows("topic")
    assert (topic["producers"], topic["records"], topic["codecs"]) == (1, 12, ["gzip", "none"])


@pytest.mark.parametrize("directory", [LOGS, GROUP_LOGS], ids=lambda path: path.name)
def test_statistics_are_those_of_a_walk_over_batches(directory: Path) -> None:
    partitions = partitions_in([directory])
    found = read_profile(partitions).rows("topic", "partition", "hourMs")
    places = ("topic", "partition", "hourMs")
    assert {tuple(row[name] for name in places): {name: row[name] for name in STATISTICS} for row in found} == (
        profile_by_walk(partitions)
    )


@pytest.mark.parametrize("directory", [LOGS, GROUP_LOGS], ids=lambda path: path.name)
def test_bytes_are_those_of_all_batches_with_records(directory: Path) -> None:
    for partition in partitions_in([directory]):
        size = sum(row["bytes"] for row in read_profile([partition]).rows("topic"))
        summaries = [read_summary(segment.path) for segment in partition.segments]
        empty = [batch for batch in partition.batches() if not batch.count]  # type: ignore[union-attr]
        assert size == sum(summary.bytes for summary in summaries) - sum(batch.size for batch in empty)


def test_message_sets_count_too(tmp_path: Path) -> None:
    packed = MessageSetBuilder(magic=1, codec=CompressionType.GZIP)
    packed.append(b"k", b"v", timestamp=HOUR)
    packed.append(b"k", b"\xff", timestamp=HOUR + 9)
    directory = tmp_path / "old-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(packed.build())
    (found,) = read_profile([Partition(directory)]).rows("topic")
    assert [found[name] for name in ("records", "batches", "codecs", "producers")] == [2, 1, ["gzip"], 0]


def test_damage_is_a_problem_with_its_file(partition: Partition) -> None:
    (segment,) = partition.segments
    data = bytearray(segment.path.read_bytes())
    data[-1] ^= 1
    segment.path.write_bytes(data)
    found = read_profile([partition])
    (problem,) = found.problems
    assert (problem.topic, problem.partition, problem.file) == ("orders", 3, str(segment.path))
    assert str(segment.path) in problem.reason
    (topic,) = found.rows("topic")
    assert topic["records"] == 5


def test_a_segment_without_batches_is_the_active_one(partition: Partition) -> None:
    (partition.path / f"{7:020}.log").write_bytes(b"")
    segments = read_profile([partition]).summary.segments
    assert [(row["segment"], row["bytes"] > 0) for row in segments] == [(f"{0:020}.log", True), (f"{7:020}.log", False)]
