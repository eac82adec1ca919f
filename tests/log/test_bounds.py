"""Bounds on a walk over a file: time by the bytes examined, memory by the bytes that stay mapped."""

from __future__ import annotations

import errno
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack_into
from typing import Any

import pytest

from kafka_msgs.columns import read_record_table
from kafka_msgs.errors import LogFileError
from kafka_msgs.log import file_scan, mapped_file, resync
from kafka_msgs.log.file_scan import read_log, walk_log
from kafka_msgs.log.indexes import read_offset_index
from kafka_msgs.log.small_files import read_offset_checkpoint, read_producer_snapshot
from kafka_msgs.log.summary import read_summary
from kafka_msgs.records import BatchBuilder, BatchHeader, BatchReader, LegacyBatch, RecordBatch, read_batches


def batch(offset: int) -> bytes:
    builder = BatchBuilder(BatchHeader(base_offset=offset))
    assert builder.append(b"key", b"value", timestamp=1)
    return builder.build()


def claiming(data: bytes, size: int) -> bytes:
    """Return a batch with a stated size of ``size`` bytes and a wrong checksum."""
    changed = bytearray(data)
    pack_into(">i", changed, 8, size - 12)
    changed[20] ^= 1
    return bytes(changed)


class Work:
    """Counts the bytes read as batches or searched for nonzero bytes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.size = 0
        work = self

        class Reader(BatchReader):
            def __next__(self) -> Any:
                start = self.position
                try:
                    return super().__next__()
                finally:
                    work.size += max(self.position - start, 0)

        def read(data: bytes) -> Iterator[Any]:
            self.size += len(data)
            return read_batches(data)

        def not_zero(data: mapped_file.Mapped, start: int, end: int) -> int:
            found = mapped_file.first_not_zero(data, start, end)
            self.size += found - start
            return found

        patch.setattr(file_scan, "BatchReader", Reader)
        patch.setattr(resync, "read_batches", read)
        patch.setattr(resync, "first_not_zero", not_zero)


def false_headers(count: int) -> bytes:
    """Return valid batches, each preceded by one whose stated size reaches nearly to the end of the file."""
    sound = [batch(number) for number in range(count)]
    left = 2 * sum(map(len, sound)) + 1
    parts = []
    for each in sound:
        parts += [claiming(each, left), each]
        left -= 2 * len(each)
    return b"".join(parts) + b"!!"


def headers_in_garbage(count: int) -> bytes:
    """Return batches whose stated sizes reach to the end, followed by a valid batch."""
    sound = batch(0)
    garbage = b"".join(claiming(sound, (count - number) * len(sound) + 1) for number in range(count))
    return garbage + sound


def two_holes(count: int) -> bytes:
    """Return damaged batches alternating with valid ones; the stated sizes end before one of two runs of zeros."""
    sound = [batch(number) for number in range(count)]
    step = 2 * len(sound[0])
    hole = bytes(count * step // 4)
    after = count * step
    parts = []
    for number, each in enumerate(sound):
        target = after + (number % 2) * (len(hole) + 1)
        parts += [claiming(each, target - number * step), each]
    return b"".join(parts) + hole + b"!" + hole + b"!"


@pytest.mark.parametrize("damage", [false_headers, headers_in_garbage, two_holes])
def test_a_walk_over_what_looks_like_batches_is_linear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[int], bytes]
) -> None:
    for count in (4_000, 32_000):
        data = damage(count)
        path = tmp_path / f"{count:020}.log"
        path.write_bytes(data)
        with monkeypatch.context() as patch:
            work = Work(patch)
            items = list(walk_log(path))
        assert work.size <= (resync.CHECKED_AT_MOST + 6) * len(data) + resync.CHECKED_AT_LEAST
        sizes = [item.skipped if isinstance(item, LogFileError) else item.size for item in items]
        assert sum(sizes) == len(data)


def test_a_search_that_is_given_up_is_reported(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(false_headers(32_000))
    *others, last = walk_log(path)
    assert isinstance(last, LogFileError)
    assert last.reason.endswith("so the search for the next batch has ended")
    assert not any("given up" in item.reason for item in others if isinstance(item, LogFileError))
    assert any(isinstance(item, RecordBatch) for item in others)


def test_damage_in_many_places_is_passed_over_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join(batch(number) + os.urandom(50) for number in range(2_000)))
    found = [item.base_offset for item in walk_log(path) if isinstance(item, RecordBatch)]
    assert found == list(range(2_000))


PEAK = """
import resource, sys
from pathlib import Path
from kafka_msgs.log.file_scan import walk_log
for item in walk_log(Path(sys.argv[1]).with_name("00000000000000000001.log")):
    pass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
items = list(walk_log(Path(sys.argv[1]), closed=sys.argv[2] == "closed"))
print(len(items), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="holes of files, and the peak in KiB, are those of Linux")
@pytest.mark.parametrize("state", ["open", "closed"])
def test_a_sparse_segment_is_looked_through_in_bounded_memory(tmp_path: Path, state: str) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch(0))
    with path.open("r+b") as file:
        file.truncate(2**29)
        if state == "closed":
            file.seek(2**29)
            file.write(batch(1))
    (tmp_path / f"{1:020}.log").write_bytes(batch(1))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path), state], capture_output=True, text=True, timeout=120, check=True
    )
    count, mebibytes = map(int, done.stdout.split())
    assert count == (1 if state == "open" else 3)
    assert mebibytes <= 2 * mapped_file.WINDOW // 2**20


class Searched:
    """Counts the bytes searched for nonzero bytes and for the start of a batch."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.size = 0
        work = self

        class File(mapped_file._File):
            def __getitem__(self, at: Any) -> Any:
                found = super().__getitem__(at)
                work.size += len(found) if isinstance(found, bytes) else 1
                return found

        class Pattern:
            def __init__(self, pattern: re.Pattern[bytes]) -> None:
                self.pattern = pattern

            def search(self, data: mapped_file.Mapped, start: int, end: int) -> re.Match[bytes] | None:
                found = self.pattern.search(data, start, end)
                work.size += (found.end() if found else min(end, len(data))) - start
                return found

        patch.setattr(mapped_file, "_File", File)
        patch.setattr(mapped_file, "_NOT_ZERO", Pattern(mapped_file._NOT_ZERO))
        for name in ("_FROM_MAGIC", "_FROM_ANY_MAGIC"):
            patch.setattr(resync, name, Pattern(getattr(resync, name)))


HOLE = 2**36


def sparse(path: Path, hole: int, before: bytes) -> None:
    """Write a batch, bytes that are not a batch, a hole, and a batch."""
    path.write_bytes(batch(0) + before)
    with path.open("r+b") as file:
        file.seek(hole)
        file.write(batch(1))


@pytest.mark.skipif(sys.platform != "linux", reason="holes of files are those of Linux")
@pytest.mark.parametrize("before", [b"", b"\xff" * 5000, bytes(5000)])
def test_holes_are_passed_over_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes) -> None:
    path = tmp_path / f"{0:020}.log"
    sparse(path, HOLE, before)
    work = Searched(monkeypatch)
    items = list(walk_log(path, closed=True))
    assert [item.base_offset for item in items if isinstance(item, RecordBatch)] == [0, 1]
    assert sum(item.skipped for item in items if isinstance(item, LogFileError)) == HOLE - len(batch(0))
    assert work.size <= 4 * mapped_file.WINDOW


def no_holes_known(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(os, "SEEK_DATA")


def holes_refused(patch: pytest.MonkeyPatch) -> None:
    def lseek(*given: int) -> int:
        raise OSError(errno.EINVAL, "this file system does not know holes")

    patch.setattr(os, "lseek", lseek)


@pytest.mark.skipif(sys.platform != "linux", reason="holes of files are those of Linux")
@pytest.mark.parametrize("system", [no_holes_known, holes_refused])
@pytest.mark.parametrize("before", [b"", b"\xff" * 5000])
def test_a_system_without_holes_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: Callable[[pytest.MonkeyPatch], None], before: bytes
) -> None:
    path = tmp_path / f"{0:020}.log"
    sparse(path, 2**27, before)
    known = [str(item) for item in walk_log(path, closed=True)]
    with monkeypatch.context() as patch:
        system(patch)
        assert [str(item) for item in walk_log(path, closed=True)] == known


@pytest.mark.skipif(sys.platform != "linux", reason="holes of files are those of Linux")
def test_a_message_that_ends_in_a_hole_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second search window starts at the hole: at the magic of the message."""
    page = 4096
    monkeypatch.setattr(resync, "WINDOW", page - 11)
    entry = struct.pack(">qiI", 5, 14, zlib.crc32(bytes(10)))
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"\xff" * (page - len(entry)) + entry)
    os.truncate(path, 64 * page)
    found = [item for item in walk_log(path) if isinstance(item, LegacyBatch)]
    assert [(item.position, item.last_offset) for item in found] == [(page - len(entry), 5)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
@pytest.mark.parametrize(
    "read",
    [
        lambda path: list(read_log(path)),
        lambda path: list(walk_log(path)),
        read_summary,
        lambda path: list(read_offset_index(path)),
        read_offset_checkpoint,
        read_producer_snapshot,
        lambda path: list(read_record_table(path)),
    ],
    ids=["read_log", "walk_log", "summary", "index", "checkpoint", "snapshot", "table"],
)
def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    path = tmp_path / f"{0:020}.index"
    os.mkfifo(path)
    with pytest.raises(LogFileError, match="this is a FIFO, not a regular file"):
        read(path)


def test_a_directory_is_refused_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match="this is a directory, not a regular file"):
        read_log(tmp_path)
