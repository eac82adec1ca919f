"""The topic profile, on a partition with hand-counted statistics and on recorded directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs import EndTxnMarker
from kafka_msgs.analysis.topic_profile import read_profile
from kafka_msgs.analysis.topic_stats import merge_stats
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.log.summary import read_summary
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ControlType, MessageSetBuilder
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


def test_figures_by_hour(partition: Partition) -> None:
    found = read_profile([partition])
    assert found.problems == ()
    assert set(found.figures) == {("orders", 3, HOUR), ("orders", 3, 2 * HOUR), ("orders", 3, None)}
    first = found.figures["orders", 3, HOUR]
    assert (first.records, first.batches, first.tombstones, first.without_key) == (5, 2, 1, 1)
    assert (first.key_bytes, first.value_bytes, first.header_bytes) == (3 + 3 + 6 + 6, 5 + 5 + 1 + 1, 1 + 2 + 1)
    assert (first.max_key_size, first.max_value_size) == (6, 5)
    assert (first.codecs, first.producers, first.aborted_records) == ({"none", "gzip"}, {7}, 2)
    assert first.out_of_order == 2
    assert (first.first_offset, first.last_offset) == (0, 4)
    assert first.mean_key_size == 18 / 5
    assert first.ratio == 34 / first.data_bytes


def test_a_marker_counts_for_bytes_and_transactions_only(partition: Partition) -> None:
    second = read_profile([partition]).figures["orders", 3, 2 * HOUR]
    assert (second.aborted_transactions, second.transactions, second.records, second.batches) == (1, 0, 0, 0)
    assert second.bytes > 0
    assert (second.ratio, second.mean_key_size, second.first_offset) == (None, None, None)


def test_figures_add_up(partition: Partition) -> None:
    found = read_profile([partition]).figures
    total = merge_stats(found.values())
    (segment,) = partition.segments
    assert total.bytes == segment.size
    assert (total.records, total.batches, total.first_offset, total.last_offset) == (6, 3, 0, 6)
    assert total.codecs == {"none", "gzip"}
    assert total.out_of_order == 3  # The record without a time counts as earlier than the record before it.


@pytest.mark.parametrize("directory", [LOGS, GROUP_LOGS], ids=lambda path: path.name)
def test_bytes_are_those_of_all_batches_with_records(directory: Path) -> None:
    for partition in partitions_in([directory]):
        figures = merge_stats(read_profile([partition]).figures.values())
        summaries = [read_summary(segment.path) for segment in partition.segments]
        assert figures.bytes <= sum(summary.bytes for summary in summaries)
        empty = [batch for batch in partition.batches() if not batch.count]  # type: ignore[union-attr]
        assert figures.bytes == sum(summary.bytes for summary in summaries) - sum(batch.size for batch in empty)


def test_message_sets_count_too(tmp_path: Path) -> None:
    packed = MessageSetBuilder(magic=1, codec=CompressionType.GZIP)
    packed.append(b"k", b"v", timestamp=HOUR)
    packed.append(b"k", b"\xff", timestamp=HOUR + 9)
    directory = tmp_path / "old-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(packed.build())
    (figures,) = read_profile([Partition(directory)]).figures.values()
    assert (figures.records, figures.batches, figures.codecs, figures.producers) == (2, 1, {"gzip"}, set())


def test_what_is_damaged_is_a_problem_with_its_file(partition: Partition) -> None:
    (segment,) = partition.segments
    data = bytearray(segment.path.read_bytes())
    data[-1] ^= 1
    segment.path.write_bytes(data)
    found = read_profile([partition])
    (problem,) = found.problems
    assert (problem.topic, problem.partition, problem.file) == ("orders", 3, str(segment.path))
    assert str(segment.path) in problem.reason
    assert merge_stats(found.figures.values()).records == 5
