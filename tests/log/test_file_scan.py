"""Damaged files of batches: the scan reports the position of the damage and reads everything around it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_msgs.errors import CrcMismatchError, LogFileError
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, FileScan, read_log, walk_log
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, MessageSetBuilder, ReadOptions


def batch(base_offset: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    builder = BatchBuilder(BatchHeader(base_offset=base_offset), codec=codec)
    for number in range(3):
        builder.append(b"key", b"value %d" % number, timestamp=1000 + base_offset + number)
    return builder.build()


FIRST, SECOND, THIRD = batch(0), batch(3), batch(6, CompressionType.GZIP)
START, END = len(FIRST), len(FIRST) + len(SECOND)
SOUND = FIRST + SECOND + THIRD
PIECES = (FIRST, SECOND, THIRD[:50], bytes(70))


@pytest.fixture
def log(tmp_path: Path) -> Callable[[bytes], Path]:
    def log(data: bytes) -> Path:
        path = tmp_path / "00000000000000000000.log"
        path.write_bytes(data)
        return path

    return log


Log = Callable[[bytes], Path]


def offsets(path: Path, start: int = 0) -> list[int]:
    return [record.offset for each in skip_faults(walk_log(path, start=start)) for record in each]


def faults(path: Path) -> list[tuple[int, int, str]]:
    items = walk_log(path)
    found = [item for item in items if isinstance(item, LogFileError)]
    assert {fault.file for fault in found} <= {str(path)}
    return [(fault.position, fault.skipped, fault.reason) for fault in found]


def test_batches_have_their_position_in_the_file(log: Log) -> None:
    assert [each.position for each in read_log(log(SOUND))] == [0, START, END]
    assert offsets(log(SOUND)) == list(range(9))


def test_reading_starts_at_the_given_position(log: Log) -> None:
    assert offsets(log(SOUND), start=START) == [3, 4, 5, 6, 7, 8]
    assert [each.position for each in read_log(log(SOUND), start=END)] == [END]


@pytest.mark.parametrize("closed", [False, True])
def test_nothing_is_behind_the_end(log: Log, closed: bool) -> None:
    assert [*read_log(log(SOUND), start=len(SOUND) + 1, closed=closed)] == []


def test_an_empty_file_has_no_batches(log: Log) -> None:
    assert list(read_log(log(b""))) == []


def test_a_missing_file_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "00000000000000000000.log")


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        (8, "8 bytes left, too few for a batch"),
        (16, "16 bytes left, too few for a batch"),
        (17, f"a batch of {len(THIRD)} bytes, 17 left"),
        (len(THIRD) - 1, f"a batch of {len(THIRD)} bytes, {len(THIRD) - 1} left"),
    ],
)
def test_a_torn_tail(log: Log, left: int, reason: str) -> None:
    path = log(FIRST + SECOND + THIRD[:left])
    assert faults(path) == [(END, left, reason)]
    assert offsets(path) == list(range(6))


def test_a_hole(log: Log) -> None:
    path = log(FIRST + bytes(len(SECOND)) + THIRD)
    assert faults(path) == [(START, len(SECOND), f"{len(SECOND)} bytes that are all zero")]
    assert offsets(path) == [0, 1, 2, 6, 7, 8]


def test_a_hole_that_starts_and_ends_within_batches(log: Log) -> None:
    path = log(FIRST[:-5] + bytes(5 + 20) + SECOND[20:] + THIRD)
    ((position, skipped, reason),) = faults(path)
    assert (position, skipped) == (0, END)
    assert reason.startswith("the checksum is ")
    assert offsets(path) == [6, 7, 8]


@pytest.mark.parametrize("zeros", [1, 7, 16, 17, 61, 5000, 3 * 2**20 + 1])
def test_space_that_was_allocated_in_advance_is_not_damage(log: Log, zeros: int) -> None:
    scan = FileScan(log(SOUND + bytes(zeros)))
    assert [item.position for item in scan] == [0, START, END]
    assert (scan.preallocated, scan.position) == (zeros, len(SOUND) + zeros)
    assert [*read_log(log(SOUND + bytes(zeros)))][-1].last_offset == 8


def test_zeros_at_the_end_of_a_file_that_is_closed_are_damage(log: Log) -> None:
    scan = FileScan(log(SOUND + bytes(5000)), closed=True)
    *_, fault = scan
    assert isinstance(fault, LogFileError)
    assert (fault.position, fault.reason) == (len(SOUND), "5000 bytes that are all zero")
    assert (scan.preallocated, scan.position) == (0, len(SOUND) + 5000)


def test_a_file_of_zeros_holds_nothing(log: Log) -> None:
    scan = FileScan(log(bytes(100)))
    assert ([*scan], scan.preallocated) == ([], 100)


def test_a_torn_batch_in_front_of_allocated_space_ends_where_it_says(log: Log) -> None:
    """The remains of a preallocated segment after a crash."""
    scan = FileScan(log(FIRST + SECOND[:-20] + bytes(20 + 5000)))
    first, fault = scan
    assert (first.position, fault.position) == (0, START)
    assert isinstance(fault, LogFileError)
    assert (fault.skipped, scan.preallocated) == (len(SECOND), 5000)


def test_a_changed_byte(log: Log) -> None:
    path = log(FIRST + SECOND[:-1] + b"?" + THIRD)
    ((position, skipped, reason),) = faults(path)
    assert (position, skipped) == (START, len(SECOND))
    assert reason.startswith("the checksum is ")
    assert offsets(path) == [0, 1, 2, 6, 7, 8]


@pytest.mark.parametrize("size", [-1, 0, 13, 14, 48, 49, 60, len(SECOND) - 11, 2**31 - 1])
def test_a_changed_size(log: Log, size: int) -> None:
    """The scan finds the next batch independent of the damaged batch's size."""
    path = log(FIRST + SECOND[:8] + size.to_bytes(4, "big", signed=True) + SECOND[12:] + THIRD)
    assert offsets(path) == [0, 1, 2, 6, 7, 8]
    assert sum(skipped for _, skipped, _ in faults(path)) == len(SECOND)


def test_an_unknown_format(log: Log) -> None:
    path = log(FIRST + SECOND[:16] + b"\3" + SECOND[17:] + THIRD)
    assert faults(path) == [(START, len(SECOND), "the format 3 is unknown")]
    assert offsets(path) == [0, 1, 2, 6, 7, 8]


def test_a_batch_from_before_the_damage_is_not_taken_for_the_next(log: Log) -> None:
    """For example, a batch in the value of a record in a damaged batch."""
    path = log(FIRST + SECOND + b"damage" + FIRST + THIRD)
    assert offsets(path) == [*range(6), 6, 7, 8]


def message_set(magic: int, offset: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    builder = MessageSetBuilder(magic=magic, codec=codec, base_offset=offset)
    builder.append(b"key", b"value", timestamp=5 if magic else -1)
    builder.append(None, b"", timestamp=6 if magic else -1)
    return builder.build()


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_around_damage_are_read(log: Log, magic: int, codec: CompressionType) -> None:
    path = log(message_set(magic, 0, codec) + b"damage" + message_set(magic, 5, codec) + b"more" + batch(9))
    assert offsets(path) == [0, 1, 5, 6, 9, 10, 11]
    assert sum(skipped for _, skipped, _ in faults(path)) == len(b"damage" + b"more")


def test_message_sets_of_every_format_are_found_behind_a_hole_at_the_start(log: Log) -> None:
    path = log(bytes(300) + b"x" + message_set(0, 2) + b"\1" + message_set(1, 4) + b"\xff" + batch(9))
    assert offsets(path) == [2, 3, 4, 5, 9, 10, 11]


@pytest.mark.parametrize("zeros", [1, 11, 12, 13, 2**20 - 1, 2**20, 2**20 + 5, 2**26])
@pytest.mark.parametrize("first", [FIRST, message_set(0, 0), message_set(1, 0)], ids=["2", "0", "1"])
def test_the_first_batch_behind_a_hole_is_found_however_long_it_is(log: Log, zeros: int, first: bytes) -> None:
    """Its offset is 0, so its first bytes are also zero."""
    scan = FileScan(log(bytes(zeros) + first + batch(9)))
    fault, found, *_ = scan
    assert isinstance(fault, LogFileError)
    assert (fault.skipped, found.position) == (zeros, zeros)


def test_message_sets_behind_newer_batches_are_not_looked_for(log: Log) -> None:
    """Logs are upgraded from old formats to new ones; an apparently older batch is record content."""
    path = log(FIRST + b"damage" + message_set(1, 5) + batch(9))
    assert offsets(path) == [0, 1, 2, 9, 10, 11]


def test_damage_is_raised_by_default(log: Log) -> None:
    path = log(FIRST + SECOND[:-1] + b"?" + THIRD)
    batches = read_log(path)
    assert next(batches).position == 0
    with pytest.raises(LogFileError, match=r"\.log at byte \d+: the checksum is") as raised:
        next(batches)
    assert raised.value.position == START


def test_the_cause_of_damage_is_the_error_of_the_batch(log: Log) -> None:
    (fault,) = [item for item in walk_log(log(FIRST + SECOND[:-1] + b"?")) if isinstance(item, LogFileError)]
    assert isinstance(fault.__cause__, CrcMismatchError)
    assert fault.__cause__.offset == 3


def test_damage_is_yielded_in_its_place(log: Log) -> None:
    items = list(walk_log(log(FIRST + bytes(40) + SECOND)))
    assert [isinstance(item, LogFileError) for item in items] == [False, True, False]


def test_checksums_may_be_left_aside(log: Log) -> None:
    path = log(FIRST + SECOND[:-1] + b"?" + THIRD)
    assert [each.position for each in read_log(path, ReadOptions(check_crc=False))] == [0, START, END]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(data=st.data())
def test_batches_and_damage_cover_the_file_whatever_is_in_it(log: Log, data: st.DataObject) -> None:
    content = bytearray(SOUND)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.sampled_from((0, 1, 4, 30, 200)))
        content[at : at + length] = data.draw(st.binary(max_size=40) | st.sampled_from(PIECES))
    scan, position = FileScan(log(bytes(content))), 0
    for item in scan:
        assert item.position == position
        position += item.skipped if isinstance(item, LogFileError) else item.size
    assert position + scan.preallocated == len(content)


def test_what_is_made_to_look_like_batches_is_searched_in_bounded_time(log: Log) -> None:
    """Each header's stated size covers the rest of the file, so each would cause another checksum over it."""
    count = 20_000
    head = bytearray(FIRST[:61])
    size = len(head) * count
    content = bytearray(b"damage")
    for number in range(count):
        head[8:12] = (size - len(head) * number - 12).to_bytes(4, "big")
        content += head
    (fault,) = faults(log(bytes(content)))
    assert fault[:2] == (0, len(content))


SCAN = """
import resource, sys
from pathlib import Path
from kafka_msgs.log.file_scan import read_log
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(batch.count for batch in read_log(Path(sys.argv[1]))))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of resident memory, which is in KiB on Linux")
def test_a_long_file_is_scanned_in_little_memory(log: Log) -> None:
    builder = BatchBuilder()
    builder.append(None, bytes(2**20), timestamp=0)
    path = log(builder.build() * 192)
    done = subprocess.run([sys.executable, "-c", SCAN, path], capture_output=True, text=True, check=True, timeout=60)
    count, megabytes = map(int, done.stdout.split())
    assert count == 192
    assert megabytes < 64


def test_a_batch_outlives_the_walk(log: Log) -> None:
    batches: list[AnyBatch] = list(read_log(log(SOUND), ReadOptions(zero_copy=True)))
    log(b"")
    assert [bytes(record.value or b"") for record in batches[2]] == [b"value 0", b"value 1", b"value 2"]
