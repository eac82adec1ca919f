"""Summaries of batch files: the headers alone give the same result as full batches, for any content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_msgs.errors import CrcMismatchError, LogFileError
from kafka_msgs.log.file_scan import FileScan
from kafka_msgs.log.summary import LogSummary, read_summary, walk_summary
from kafka_msgs.records import CompressionType, MessageSetBuilder, ReadOptions
from tests.support.log_fragments import PIECES, PLAIN, batch
from tests.support.recordings import LOGS

Log = Callable[[bytes], Path]

FILES = sorted([*LOGS.rglob("*.log"), *LOGS.rglob("*.checkpoint")])


@pytest.fixture
def log(tmp_path: Path) -> Log:
    def log(data: bytes) -> Path:
        path = tmp_path / "00000000000000000000.log"
        path.write_bytes(data)
        return path

    return log


def counted(path: Path) -> LogSummary:
    """Return the summary of the valid batches of a file, skipping damage."""
    summary = LogSummary()
    for _ in walk_summary(path, summary):
        pass
    return summary


def by_batches(path: Path) -> tuple[dict[str, Any], int]:
    summary, scan = LogSummary(), FileScan(path)
    for item in scan:
        if isinstance(item, LogFileError):
            summary.add_error(item)
            summary.skipped += item.skipped
        else:
            summary.add_batch(item)
    summary.preallocated = scan.preallocated
    return summary.facts(), summary.skipped


def by_headers(path: Path) -> tuple[dict[str, Any], int]:
    summary = counted(path)
    assert summary.bytes + summary.skipped + summary.preallocated == path.stat().st_size
    return summary.facts(), summary.skipped


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_what_a_broker_wrote_comes_to_the_same_by_headers(path: Path) -> None:
    assert by_headers(path) == by_batches(path)
    assert read_summary(path).batches > 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400)
@given(pieces=st.lists(st.sampled_from(PIECES) | st.binary(max_size=30), max_size=9))
def test_any_file_comes_to_the_same_by_headers(log: Log, pieces: list[bytes]) -> None:
    path = log(b"".join(pieces))
    assert by_headers(path) == by_batches(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400)
@given(data=st.data())
def test_changed_headers_come_to_the_same(log: Log, data: st.DataObject) -> None:
    """The first 21 bytes are outside the checksum."""
    content = bytearray(b"".join(PIECES[:7]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path = log(bytes(content))
    assert by_headers(path) == by_batches(path)


def test_times_are_those_of_records_where_the_header_tells_them(log: Log) -> None:
    facts = read_summary(log(PLAIN + batch(20, log_append_timestamp=700) + batch(6, delete_horizon=900))).facts()
    assert (facts["firstTimestamp"], facts["lastTimestamp"]) == (3, 700)
    facts = read_summary(log(batch(-1) + batch())).facts()
    assert (facts["firstTimestamp"], facts["lastTimestamp"], facts["records"]) == (None, None, 1)


def test_damage_is_raised_unless_it_is_skipped(log: Log) -> None:
    path = log(PLAIN + PLAIN[:-1] + b"?" + PLAIN)
    with pytest.raises(LogFileError, match="the checksum is") as raised:
        read_summary(path)
    assert raised.value.position == len(PLAIN)
    assert isinstance(raised.value.__cause__, CrcMismatchError)
    summary = counted(path)
    assert (summary.batches, summary.errors, summary.crc_failures) == (2, 1, 1)
    assert (summary.bytes, summary.skipped) == (2 * len(PLAIN), len(PLAIN))


def test_checksums_may_be_left_aside(log: Log) -> None:
    assert read_summary(log(PLAIN[:-1] + b"?"), ReadOptions(check_crc=False)).records == 3


def test_a_compressed_message_set_that_cannot_be_counted_is_reported(log: Log) -> None:
    wrapper = MessageSetBuilder(magic=1)
    wrapper.append(None, b"not compressed", timestamp=0)
    data = bytearray(wrapper.build())
    data[17] |= CompressionType.GZIP
    with pytest.raises(LogFileError, match="the checksum is"):
        read_summary(log(bytes(data)))
    summary = counted(log(bytes(data)))
    assert (summary.batches, summary.records, summary.errors) == (0, 0, 1)


def test_progress_is_reported_while_a_long_file_is_read(log: Log) -> None:
    large = batch(1) + batch(*range(1000), base_offset=1) * 1200
    path, seen = log(large), list[int]()
    assert list(walk_summary(path, LogSummary(), progress=seen.append)) == []
    assert seen == sorted(seen)
    assert (len(seen), seen[-1]) == (-(-len(large) // 2**25), len(large))
