"""The small files of a log directory, written as by a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.errors import RecordWriteError
from kafka_msgs.log import (
    LogDirectory,
    Segment,
    read_clean_shutdown,
    read_leader_epochs,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
    read_producer_snapshot,
    read_quorum_state,
)
from kafka_msgs.log.writers.index_writer import DEFAULT_INTERVAL
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.log.writers.small_files import (
    format_clean_shutdown,
    format_leader_epochs,
    format_meta_properties,
    format_offset_checkpoint,
    format_partition_metadata,
    format_producer_snapshot,
    format_quorum_state,
)
from kafka_msgs.records import BatchBuilder, BatchHeader, RecordBatch

INTERVALS = {"codecs-0": 1}
"""The ``index.interval.bytes`` of topics with a non-default value."""

RECORDINGS = Path(__file__).parents[1] / "recordings"


def recorded(pattern: str) -> list[Path]:
    found = sorted(RECORDINGS.rglob(pattern))
    assert found
    return found


def rewritten(path: Path) -> bytes:
    """Read a file and write its contents again."""
    match path.name:
        case "leader-epoch-checkpoint":
            return format_leader_epochs(read_leader_epochs(path))
        case "partition.metadata":
            return format_partition_metadata(read_partition_metadata(path).topic_id)
        case ".kafka_cleanshutdown":
            return format_clean_shutdown(read_clean_shutdown(path))
        case "quorum-state":
            version, state = read_quorum_state(path)
            return format_quorum_state(state, version)
        case "meta.properties":
            return format_meta_properties(read_meta_properties(path).properties, 1_763_746_718_000)
    if path.suffix == ".snapshot":
        return format_producer_snapshot(read_producer_snapshot(path))
    return format_offset_checkpoint(read_offset_checkpoint(path))


@pytest.mark.parametrize(
    "name",
    [
        "*.snapshot",
        "*-offset-checkpoint",
        ".kafka_cleanshutdown",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    ],
)
def test_a_file_is_written_as_kafka_wrote_it(name: str) -> None:
    for path in recorded(name):
        assert rewritten(path) == path.read_bytes(), path


def test_the_properties_differ_in_the_date_only() -> None:
    for path in recorded("meta.properties"):
        kafka, ours = (content.splitlines(keepends=True) for content in (path.read_bytes(), rewritten(path)))
        assert ours[0] == kafka[0]
        assert ours[1] == b"#Fri Nov 21 17:38:38 UTC 2025\n"
        assert ours[2:] == kafka[2:]


def closed_segments() -> list[Segment]:
    """Return the recorded segments of magic 2 that the broker closed."""
    partitions = [each for each in LogDirectory(RECORDINGS / "logs").partitions if each.topic != "__cluster_metadata"]
    found = [segment for partition in partitions for segment in partition.segments if segment.size]
    assert len(found) >= 3
    return found


@pytest.mark.parametrize("segment", closed_segments(), ids=lambda segment: segment.path.parent.name)
def test_a_segment_is_written_as_a_broker_wrote_it(segment: Segment, tmp_path: Path) -> None:
    interval = INTERVALS.get(segment.path.parent.name, DEFAULT_INTERVAL)
    with SegmentWriter(tmp_path, segment.base_offset, interval=interval) as writer:
        for each in segment.batches():
            assert isinstance(each, RecordBatch)
            writer.append(each.stored_bytes)
        for transaction in segment.aborted_transactions():
            writer.add_aborted(transaction)
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        kafka = segment.path.with_suffix(suffix)
        if kafka.exists() and (suffix != ".txnindex" or kafka.stat().st_size):
            assert writer.path.with_suffix(suffix).read_bytes() == kafka.read_bytes(), suffix


def test_a_segment_refuses_what_does_not_follow(tmp_path: Path) -> None:
    builder = BatchBuilder(BatchHeader(base_offset=7))
    builder.append(None, b"value")
    data = builder.build()
    with SegmentWriter(tmp_path, 7) as writer:
        writer.append(data)
        for wrong in (data, data[:-1], data + data, b""):
            with pytest.raises(RecordWriteError):
                writer.append(wrong)
    assert writer.path.read_bytes() == data
