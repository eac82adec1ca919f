"""The end offsets of partitions in directories, including directories of a running broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import end_offset_of, end_offsets_of
from kafka_msgs.log.segment import Segment
from kafka_msgs.records import BatchBuilder, BatchHeader


def partition(directory: Path, name: str, base_offset: int) -> Partition:
    """A partition with one segment of two records."""
    place = directory / name
    place.mkdir()
    builder = BatchBuilder(BatchHeader(base_offset=base_offset))
    for value in (b"one", b"two"):
        builder.append(None, value, timestamp=0)
    (place / f"{base_offset:020d}.log").write_bytes(builder.build())
    return Partition(place)


def test_the_end_is_after_the_last_record(tmp_path: Path) -> None:
    assert end_offset_of(partition(tmp_path, "orders-0", 40)) == 42


def test_a_partition_that_is_deleted_meanwhile_has_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, deleted = partition(tmp_path, "orders-0", 0), partition(tmp_path, "orders-1", 0)
    listed = {each.path: each.segments for each in (kept, deleted)}
    deleted.segments[0].path.unlink()

    def as_listed(each: Partition) -> tuple[Segment, ...]:
        return listed[each.path]

    monkeypatch.setattr(Partition, "segments", property(as_listed))
    assert end_offsets_of([kept, deleted]) == {("orders", 0): 2}
