"""The end offsets of partitions in directories, including directories of a running broker."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import end_offset_of, end_offsets_of, partitions_in, topic_names
from kafka_msgs.log.segment import Segment
from kafka_msgs.records import BatchBuilder, BatchHeader
from tests.support.unreadable import forbid_listing


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


def test_a_partition_that_cannot_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = partition(tmp_path, "orders-0", 0)
    forbid_listing(monkeypatch, orders.path)
    for listing in ("segments", "snapshots", "producer_snapshots"):
        with pytest.raises(PermissionError):
            getattr(orders, listing)
    with pytest.raises(PermissionError):
        end_offsets_of(partitions_in([tmp_path]))


def test_a_topic_id_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = partition(tmp_path, "orders-0", 0)
    assert topic_names([orders]) == {}

    def refuse(_: Partition) -> NoReturn:
        raise PermissionError

    monkeypatch.setattr(Partition, "metadata", refuse)
    with pytest.raises(PermissionError):
        topic_names([orders])


def test_a_log_directory_with_another_log_file_is_no_partition(tmp_path: Path) -> None:
    home = tmp_path / "broker-1"
    home.mkdir()
    (home / "server.log").write_text("INFO")
    orders = partition(home, "orders-0", 0)
    assert partitions_in([home]) == partitions_in([orders.path]) == [orders]


def test_a_partition_directory_is_found_by_its_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = partition(tmp_path, "orders-0", 0)
    (orders.path / "below").mkdir()
    monkeypatch.chdir(orders.path)
    assert partitions_in([Path()]) == [orders]
    monkeypatch.chdir("below")
    assert partitions_in([Path("..")]) == [orders]


def test_names_with_too_large_numbers_are_no_partitions_and_no_segments(tmp_path: Path) -> None:
    orders = partition(tmp_path, "orders-0", 0)
    partition(tmp_path, "orders-2147483648", 0)
    partition(tmp_path, "orders", 0)
    (orders.path / f"{2**63:020}.log").write_bytes(b"")
    (found,) = partitions_in([tmp_path])
    assert found == orders
    assert [segment.base_offset for segment in found.segments] == [0]
