"""Campaign with damaged log files: ``python -m tests.campaigns.damaged_logs --minutes 5``.

Takes files of real brokers, and files in formats that current brokers no longer write. Damages them in many ways, and
reads them with every reader. For any content, a reader returns values and library errors only, the read and skipped
bytes add up to the file size, and the count by headers matches the batches. Files that violate this are kept in
``build/campaign``, and their seed is printed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from crc32c import crc32c

from kafka_msgs import KafkaMsgsError
from kafka_msgs.cli.render.log_files import LogDumpOptions, rows
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.internal_topics.records import TOPICS
from kafka_msgs.log import indexes, small_files
from kafka_msgs.log.file_scan import FileScan
from kafka_msgs.log.segment import Segment, check_offset_index, check_time_index
from kafka_msgs.log.summary import LogSummary, walk_summary
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, MessageSetBuilder
from tests.support.implementations import implementations
from tests.support.recordings import ACTIVE_LOGS, GROUP_LOGS, LOGS, TIERED_LOGS

__all__ = ["check", "damaged", "main", "seeds"]

_KEPT: Final = Path(__file__).parents[2] / "build" / "campaign"
_INTERESTING: Final = (0, 1, 2, 13, 14, 48, 49, 60, 61, 0x7F, 0x80, 0xFF, 2**15, 2**31 - 1, 2**31, 2**32 - 1)
_SMALL: Final[Mapping[str, Callable[[Path], Any]]] = {
    ".snapshot": small_files.read_producer_snapshot,
    "leader-epoch-checkpoint": small_files.read_leader_epochs,
    "recovery-point-offset-checkpoint": small_files.read_offset_checkpoint,
    "partition.metadata": small_files.read_partition_metadata,
    "meta.properties": small_files.read_meta_properties,
    "quorum-state": small_files.read_quorum_state,
    ".kafka_cleanshutdown": small_files.read_clean_shutdown,
}


def main() -> None:
    """Damage and read files until the time limit."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.damaged_logs", description="Damage log files and read them."
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0, help="where the numbers of the cases start")
    arguments = parser.parse_args()
    end, number = time.monotonic() + 60 * arguments.minutes, arguments.seed
    found = seeds()
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-campaign-") as folder:
        while time.monotonic() < end:
            run_case(found, number, Path(folder))
            number += 1
    print(f"{number - arguments.seed} damaged files, all read to the last byte")


def run_case(found: Mapping[str, bytes], number: int, folder: Path) -> None:
    """Damage the file with this case number, and check all its readers; keep the file if a check fails."""
    rng = Random(number)
    name = rng.choice(sorted(found))
    path = folder / name.rpartition("/")[2]
    for other in folder.iterdir():
        other.unlink()
    # Segments have indexes next to them, which may belong to other segments.
    for suffix in (".log", ".index", ".timeindex"):
        if path.stem.isdecimal() and rng.random() < 0.5:
            neighbour = rng.choice([each for each in found if each.endswith(suffix)])
            path.with_suffix(suffix).write_bytes(found[neighbour])
    path.write_bytes(damaged(found[name], rng, list(found.values())))
    try:
        check(path, rng)
    except BaseException:
        _KEPT.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, _KEPT / str(number), dirs_exist_ok=True)
        print(f"case {number}: {name}, kept in {_KEPT / str(number)}", file=sys.stderr)
        raise


def seeds() -> dict[str, bytes]:
    """Return the undamaged files, by a key that ends with the file name."""
    recorded = {
        f"{folder.name}/{path.parent.name}/{path.name}": path.read_bytes()
        for folder in (LOGS, TIERED_LOGS, GROUP_LOGS, ACTIVE_LOGS)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".txt" and path.stat().st_size
    }
    return recorded | {f"old/{codec.name}/{0:020}.log": _old_formats(codec) for codec in _OLD_CODECS}


_OLD_CODECS: Final = (CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4)


def _old_formats(codec: CompressionType) -> bytes:
    """Return a segment with batches in all formats."""
    data, offset = b"", 0
    builders: list[Any] = [
        MessageSetBuilder(magic=0, codec=codec),
        MessageSetBuilder(magic=1, codec=codec, base_offset=3),
    ]
    for builder in (*builders, BatchBuilder(BatchHeader(base_offset=6), codec=codec)):
        for number in range(3):
            builder.append(b"key", b"value" * number, offset=offset)
            offset += 1
        data += builder.build()
    return data


def damaged(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    """Return the content after up to six changes."""
    data = bytearray(content)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 6))):
        rng.choice(_CHANGES)(data, rng, rng.choice(others))
    return bytes(data)


def _place(data: bytearray, rng: Random) -> int:
    return rng.randrange(len(data) + 1)


def _change_bytes(data: bytearray, rng: Random, other: bytes) -> None:
    for at in (_place(data, rng) for _ in range(rng.randrange(1, 5))):
        data[at : at + 1] = bytes([rng.randrange(256)])


def _write_number(data: bytearray, rng: Random, other: bytes) -> None:
    at, size = _place(data, rng), rng.choice((1, 2, 4, 8))
    data[at : at + size] = (rng.choice(_INTERESTING) % 2 ** (8 * size)).to_bytes(size, "big")


def _cut(data: bytearray, rng: Random, other: bytes) -> None:
    del data[_place(data, rng) :]


def _take_out(data: bytearray, rng: Random, other: bytes) -> None:
    at = _place(data, rng)
    del data[at : at + rng.choice((1, 7, 61, 200))]


def _put_in(data: bytearray, rng: Random, other: bytes) -> None:
    at, start = _place(data, rng), rng.randrange(len(other))
    data[at:at] = rng.choice((rng.randbytes(9), other[start : start + 150], bytes(rng.randrange(100))))


def _make_a_hole(data: bytearray, rng: Random, other: bytes) -> None:
    at, size = _place(data, rng), rng.choice((1, 16, 61, 500))
    data[at : at + size] = bytes(min(size, len(data) - at))


def _allocate(data: bytearray, rng: Random, other: bytes) -> None:
    data += bytes(rng.choice((1, 16, 61, 4096)))


def _append(data: bytearray, rng: Random, other: bytes) -> None:
    data += other


def _change_under_the_checksum(data: bytearray, rng: Random, other: bytes) -> None:
    """Change the first batch of magic 2 and fix its checksum, so that readers accept its content."""
    size = int.from_bytes(data[8:12], "big") + 12
    if 61 <= size <= len(data) and data[16] == 2:
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(21, size)] = rng.choice((rng.randrange(256), 0, 0x7F, 0x80, 0xFF))
        data[17:21] = crc32c(bytes(data[21:size])).to_bytes(4, "big")


_CHANGES: Final = (
    _change_bytes, _write_number, _cut, _take_out, _put_in, _make_a_hole, _allocate, _append,
    _change_under_the_checksum, _change_under_the_checksum,
)  # fmt: skip


def check(path: Path, rng: Random) -> None:
    """Read a file with every reader of its kind; raises ``AssertionError`` for inconsistent results."""
    if path.suffix in (".log", ".checkpoint"):
        _check_batches(path)
        _check_seeking(path, rng)
    elif path.suffix in (".index", ".timeindex", ".txnindex"):
        _check_index(path)
    else:
        read = _SMALL.get(path.suffix) or _SMALL.get(path.name) or _SMALL["recovery-point-offset-checkpoint"]
        _ends(lambda: read(path), LogFileError)
    summary, kinds = LogSummary(), frozenset({"batch", "record", "entry"})
    shown = list(
        rows(path, LogDumpOptions(kinds=kinds, topic=rng.choice((None, *TOPICS))), summary, lambda position: None)
    )
    json.dumps([row.facts for row in shown])
    assert summary.errors == sum(row.kind == "error" for row in shown)


def _ends(read: Callable[[], Any], *errors: type[KafkaMsgsError]) -> None:
    """Read, and ignore only these errors."""
    with suppress(*errors):
        read()


def _check_batches(path: Path) -> None:
    scan, position, summary = FileScan(path), 0, LogSummary()
    for item in scan:
        assert item.position == position
        if isinstance(item, LogFileError):
            summary.add_error(item)
            position += item.skipped
            assert item.skipped > 0
        else:
            _ends(lambda batch=item: summary.add_batch(batch), RecordError)  # type: ignore[misc]
            _ends(item.records, RecordError)
            position += item.size
    size = path.stat().st_size
    assert position + scan.preallocated == size
    counted = _counted(path)
    assert counted.bytes + counted.skipped + counted.preallocated == size
    unlike = ("errors", "crcFailures", "preallocated")
    assert {**counted.facts(), **dict.fromkeys(unlike)} == {**summary.facts(), **dict.fromkeys(unlike)}
    data = path.read_bytes()
    for start in (0, min(7, size)):
        found = [each.count_batches(data, start, size, True) for each in implementations("kafka_msgs.log")]
        assert all(each == found[0] for each in found)


def _counted(path: Path) -> LogSummary:
    """Return the summary of the intact batches of a file, skipping damage."""
    summary = LogSummary()
    for _ in walk_summary(path, summary):
        pass
    return summary


def _check_seeking(path: Path, rng: Random) -> None:
    if not path.stem.isdecimal():
        return
    segment = Segment(path)
    offset = rng.choice((0, 1, 5, 40, 10**6))
    for item in segment.walk_batches(offset):
        assert isinstance(item, LogFileError) or item.last_offset >= offset
    _ends(lambda: segment.first_at(rng.choice((0, 1_700_000_003_000, 2**62))), RecordError)


_READERS: Final[Mapping[str, tuple[Callable[..., Iterator[Any]], int]]] = {
    ".index": (indexes.walk_offset_index, indexes.OFFSET_LAYOUT.size),
    ".timeindex": (indexes.walk_time_index, indexes.TIME_LAYOUT.size),
    ".txnindex": (indexes.walk_aborted_transactions, 34),
}


def _check_index(path: Path) -> None:
    data, (read, entry_size) = path.read_bytes(), _READERS[path.suffix]
    items = list(read(path))
    accounted = sum(item.skipped if isinstance(item, LogFileError) else entry_size for item in items)
    assert accounted <= len(data)
    assert accounted >= len(data.rstrip(b"\0"))
    if path.suffix != ".txnindex":
        list(check_offset_index(path) if path.suffix == ".index" else check_time_index(path))


if __name__ == "__main__":
    main()
