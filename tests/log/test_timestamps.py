"""Times in logs, compared with a reading of every record."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_msgs.log.indexes import TIME_LAYOUT
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.log.segment import LARGEST
from kafka_msgs.log.timestamps import (
    LogTimestamps,
    newest_of,
    with_log_times,
)
from kafka_msgs.log.writers.partition_writer import LogWriteOptions, PartitionWriter
from kafka_msgs.records import Record, RecordBatch
from tests.support.recordings import GROUP_LOGS, LOGS

PARTITIONS = [each for path in (GROUP_LOGS, LOGS) for each in LogDirectory(path).partitions]


def data_records(partition: Partition) -> list[Record]:
    batches = [each for each in partition.batches() if not (isinstance(each, RecordBatch) and each.is_control)]
    return [record for batch in batches for record in batch.records()]


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda each: str(each.path.relative_to(each.path.parents[2])))
def test_the_record_that_waits_is_the_first_one_at_the_offset_or_after_it(partition: Partition) -> None:
    records = data_records(partition)
    end = max((record.offset for record in records), default=-1) + 1
    for offset in range(0, end + 2, max(1, end // 40)):
        waiting = next((record for record in records if record.offset >= offset), None)
        assert LogTimestamps(partition).timestamp_at_or_after(offset) == (waiting and waiting.timestamp), offset
    times = [record.timestamp for batch in partition.batches() for record in batch.records()]
    for moment in (0, *times[:: max(1, len(times) // 20)], max(times, default=0) + 1):
        since = [r.offset for b in partition.batches() for r in b.records() if r.timestamp >= moment]
        assert LogTimestamps(partition).end_offset_at(moment, end) == (since[0] if since else end)


def test_the_latest_time_is_the_newest_one_of_all_records() -> None:
    for partition in PARTITIONS[:14]:
        times = [record.timestamp for batch in partition.batches() for record in batch.records()]
        assert LogTimestamps(partition).latest_timestamp() == max(times, default=None)


def test_a_partition_that_is_not_in_the_input_or_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    row = {"topic": "orders", "topicPartition": 0, "committedOffset": 1, "endOffset": 10, "firstCommitMs": 5}
    rows, as_of = with_log_times([{**row, "commitTimestampMs": 77}], {})
    assert (rows[0].get("unreadMs"), rows[0].get("firstEndOffset"), as_of) == (None, None, 77)
    shutil.copytree(GROUP_LOGS / "orders-0", tmp_path / "orders-0")
    places = {("orders", 0): LogTimestamps(Partition(tmp_path / "orders-0"))}
    rows, as_of = with_log_times([row], places)
    assert rows[0]["unreadMs"] is not None
    assert rows[0]["firstEndOffset"] == 0
    assert as_of == places["orders", 0].latest_timestamp()
    for path in (tmp_path / "orders-0").glob("*.log"):
        path.write_bytes(b"\0" * 50)
    rows, _ = with_log_times([row], places)
    assert rows[0]["unreadMs"] is None
    (tmp_path / "orders-0" / f"{50:020}.log").symlink_to("deleted-meanwhile")
    rows, as_of = with_log_times([{**row, "commitTimestampMs": 77}], places)
    assert (rows[0].get("unreadMs"), as_of) == (None, 77)


def test_a_wrong_last_time_of_a_closed_segment_hides_no_record(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "orders-0", LogWriteOptions(batch_bytes=200, segment_bytes=1000))
    for offset in range(100):
        writer.append(b"key", b"value", offset=offset, timestamp=1000 * offset)
    writer.close()
    partition = Partition(tmp_path / "orders-0")
    first, *_, last = partition.segments
    assert (first.end, last.end) == (partition.segments[1].base_offset, LARGEST)
    first.path.with_suffix(".timeindex").write_bytes(TIME_LAYOUT.pack(1, first.end - 1))
    assert LogTimestamps(partition).end_offset_at(3000, 100) == 3


def test_the_largest_lags_are_looked_up_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_msgs.log.timestamps._LOOKED_UP", 1)
    row = {"topic": "orders", "topicPartition": 0, "committedOffset": 1, "endOffset": 10}
    places = {("orders", 0): LogTimestamps(Partition(GROUP_LOGS / "orders-0"))}
    rows, _ = with_log_times([{**row, "lag": lag} for lag in (None, 3, 9, 4)], places)
    assert ["unreadMs" in each for each in rows] == [False, False, True, False]


def test_the_newest_time_is_never_later_than_now() -> None:
    assert newest_of([None, 3, 5]) == 5
    assert newest_of([None]) is None
    assert (newest_of([2**62]) or 0) < 2**50
