"""Generated log directories: of the requested size, reproducible, and as complete as a broker's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.big_directory import CONTENTS, byte_count, write_directory
from kafka_msgs.internal_topics.records import TopicRecord, decode_record
from kafka_msgs.log.indexes import read_aborted_transactions
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.records import CompressionType, ControlType, RecordBatch

SMALL: dict[str, Any] = {"block_bytes": 20_000, "segment_bytes": 70_000}


def files(path: Path) -> dict[Path, bytes]:
    return {each.relative_to(path): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def batches(partition: Partition) -> list[RecordBatch]:
    found = list(partition.batches())
    assert all(isinstance(batch, RecordBatch) for batch in found)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("content", CONTENTS)
def test_directory_has_its_size_and_is_the_same_every_time(content: str, tmp_path: Path) -> None:
    seen: list[int] = []
    written = write_directory(tmp_path / "a", 1_000_000, content, progress=seen.append, **SMALL)
    assert written == write_directory(tmp_path / "b", 1_000_000, content, **SMALL)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert sum(path.stat().st_size for path in tmp_path.glob("a/*/*.log")) == written.size == seen[-1]
    assert 1_000_000 <= written.size < 1_300_000


@pytest.mark.parametrize("content", CONTENTS)
def test_offsets_go_on_without_a_gap_from_file_to_file(content: str, tmp_path: Path) -> None:
    written = write_directory(tmp_path, 1_000_000, content, **SMALL)
    records = markers = 0
    for partition in LogDirectory(tmp_path).partitions:
        assert len(partition.segments) > 1
        found = batches(partition)
        offsets = [record.offset for batch in found for record in batch]
        assert offsets == list(range(len(offsets)))
        markers += sum(batch.count for batch in found if batch.is_control)
        records += sum(batch.count for batch in found if not batch.is_control)
    assert (records, markers) == (written.records, written.markers)


@pytest.mark.parametrize("content", CONTENTS)
def test_aborted_transactions_are_in_the_index_of_their_segment(content: str, tmp_path: Path) -> None:
    write_directory(tmp_path, 1_000_000, content, **SMALL)
    for partition in LogDirectory(tmp_path).partitions:
        found = [
            (batch.producer_id, batch.last_offset)
            for batch in batches(partition)
            for control in batch.control_records()
            if control.type is ControlType.ABORT
        ]
        indexes = sorted(partition.path.glob("*.txnindex"))
        entries = [each for index in indexes for each in read_aborted_transactions(index)]
        assert [(each.producer_id, each.last_offset) for each in entries] == found
        assert found


def test_events_use_every_codec_and_offsets_every_kind_of_record(tmp_path: Path) -> None:
    write_directory(tmp_path, 2_000_000, "events", block_bytes=200_000)
    codecs = Counter(batch.codec for each in LogDirectory(tmp_path).partitions for batch in batches(each))
    assert codecs.keys() == set(CompressionType)
    write_directory(tmp_path / "offsets", 400_000, "offsets")
    kinds = set()
    for partition in LogDirectory(tmp_path / "offsets").partitions:
        for batch in batches(partition):
            for record in batch if not batch.is_control else ():
                key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
                typed = decode_record(partition.topic, key, value)
                assert isinstance(typed, TopicRecord)
                kinds.add((type(typed.key).__name__, value is None, batch.is_transactional))
    assert kinds == {
        ("GroupMetadataKey", False, False),
        ("OffsetCommitKey", False, False),
        ("OffsetCommitKey", False, True),
        ("OffsetCommitKey", True, False),
    }


def test_sizes_have_units() -> None:
    assert [byte_count(text) for text in ("7", "2K", "3m", "2G")] == [7, 2048, 3 << 20, 2 << 30]
    with pytest.raises(ValueError, match="not a number of bytes"):
        byte_count("2 gigabytes")
