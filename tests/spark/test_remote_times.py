"""Time lookups in logs on an S3 server: equal to those in local copies, with few bytes fetched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from kafka_msgs.engines.plan import NO_SPLIT
from kafka_msgs.engines.replicas import JobInputs, list_replicas, segments_in
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.segment_lookup import lookups_in
from kafka_msgs.log.indexes import TIME_LAYOUT
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.timestamps import LogTimestamps
from kafka_msgs.log.writers.partition_writer import LogWriteOptions, PartitionWriter
from tests.support.recordings import GROUP_LOGS
from tests.support.s3_server import S3Server, s3_server

SEGMENT = 2**21
RECORDS = 6000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition of three segments of up to 2 MiB, one record per second, as a broker writes it."""
    path = tmp_path_factory.mktemp("large") / "large-0"
    writer = PartitionWriter(path, LogWriteOptions(batch_bytes=2**13, segment_bytes=SEGMENT))
    for number in range(RECORDS):
        writer.append(b"key", os.urandom(800), offset=number, timestamp=1000 * (number + 1))
    writer.close()
    return path


@pytest.fixture(scope="module")
def server(large: Path) -> Iterator[S3Server]:
    """A server with the recorded group logs and the large partition."""
    with s3_server() as made:
        store = made.store()
        store.create_dir("logs")
        for source in (GROUP_LOGS, large.parent):
            fs.copy_files(str(source), f"logs/{source.name}", fs.LocalFileSystem(), store)
        yield made


def remote(server: S3Server, path: str) -> dict[tuple[str, int], LogTimestamps]:
    inputs = JobInputs.at([f"s3a://logs/{path}"], FilesystemOptions.from_mapping(server.settings))
    (root,), (directory,) = inputs.roots, inputs.directories
    return {
        (each["topic"], each["partition"]): LogTimestamps(lookups_in(segments_in(root, each["directory"])))
        for each in list_replicas(root, 0, directory.path, None, NO_SPLIT)
    }


def test_times_are_those_of_the_same_logs_here(server: S3Server) -> None:
    times = remote(server, GROUP_LOGS.name)
    assert len(times) > 3
    for (topic, number), there in times.items():
        here = LogTimestamps(Partition(GROUP_LOGS / f"{topic}-{number}"))
        assert there.latest_timestamp() == here.latest_timestamp()
        moments = {here.timestamp_at_or_after(offset) for offset in range(0, 60, 7)}
        assert [there.timestamp_at_or_after(offset) for offset in range(0, 60, 7)] == [
            here.timestamp_at_or_after(offset) for offset in range(0, 60, 7)
        ]
        for moment in (each for each in moments if each is not None):
            assert there.end_offset_at(moment, 99) == here.end_offset_at(moment, 99)


def test_indexes_and_a_few_batches_are_fetched_and_no_segment(server: S3Server, large: Path) -> None:
    sizes = [each.size for each in Partition(large).segments]
    assert len(sizes) == 3
    (times,) = remote(server, large.parent.name).values()
    server.sent.clear()
    assert [times.timestamp_at_or_after(offset) for offset in (10, 3000, RECORDS - 1, RECORDS)] == [
        11_000, 3_001_000, RECORDS * 1000, None,
    ]  # fmt: skip
    assert [times.end_offset_at(1000 * number, RECORDS) for number in (11, 3001, RECORDS, RECORDS + 1)] == [
        10, 3000, RECORDS - 1, RECORDS,
    ]  # fmt: skip
    assert times.latest_timestamp() == RECORDS * 1000
    assert sum(server.sent.values()) < sum(sizes) // 4


def test_a_question_that_comes_again_asks_no_earlier_segment_again(server: S3Server, large: Path) -> None:
    (times,) = remote(server, large.parent.name).values()
    server.sent.clear()
    for _ in range(20):
        assert times.end_offset_at(1000 * RECORDS, RECORDS) == RECORDS - 1
    first, second, _ = (each.path.with_suffix(".timeindex").name for each in Partition(large).segments)
    fetched = {path.rpartition("/")[2]: count for path, count in server.sent.items()}
    assert fetched[first] == fetched[second] == TIME_LAYOUT.size


def test_times_of_a_segment_without_an_index_are_not_known_where_all_of_it_would_be_read(
    server: S3Server, large: Path
) -> None:
    store = server.store()
    for segment in Partition(large).segments:
        store.create_dir("logs/bare")
        fs.copy_files(str(segment.path), f"logs/bare/large-0/{segment.path.name}", fs.LocalFileSystem(), store)
    (times,) = remote(server, "bare").values()
    server.sent.clear()
    assert (times.timestamp_at_or_after(10), times.end_offset_at(11_000, RECORDS)) == (None, None)
    assert sum(server.sent.values()) == 0
