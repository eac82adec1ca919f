"""Indexes compared with their segments: faults of entries. Kafka's own tool reports the same entries."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path
from random import Random
from struct import pack
from typing import Any

import pytest

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.indexes import TimeEntry, read_offset_index, read_time_index
from kafka_msgs.log.segment import check_offset_index, check_time_index
from kafka_msgs.records import BatchBuilder, BatchHeader
from tests.recorders.broker import java_command
from tests.support.recordings import GROUP_LOGS, LOGS, TIERED_LOGS

RECORDED = sorted(
    path
    for folder in (LOGS, TIERED_LOGS, GROUP_LOGS)
    for path in (*folder.rglob("*.index"), *folder.rglob("*.timeindex"))
)
BASE = 1000
MISMATCH = re.compile(r"(?:Index offset|Index timestamp|Indexed offset): (\d+), (?:found )?log ")


def test_every_index_entry_of_a_broker_leads_to_its_batch() -> None:
    count = 0
    for path in RECORDED:
        check, read = (
            (check_offset_index, read_offset_index) if path.suffix == ".index" else (check_time_index, read_time_index)
        )
        entries = list(check(path))
        assert entries == list(read(path)), path
        count += len(entries)
    assert count > 50


def test_entries_without_a_segment_are_not_compared(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.index"
    path.write_bytes(pack(">ii", 7, 4096))
    assert len(list(check_offset_index(path))) == 1


Pairs = list[tuple[int, int]]


def written_segment(folder: Path, rng: Random) -> tuple[Pairs, Pairs]:
    """Write a segment; return two pairs per batch: last offset and position, and maximum time and last offset."""
    data, offset = b"", BASE
    places, times = [], []
    for number in range(12):
        builder = BatchBuilder(BatchHeader(base_offset=offset))
        stamps = [10_000 * number + rng.randrange(9000) for _ in range(rng.randrange(1, 4))]
        for stamp in stamps:
            builder.append(b"key", b"value", timestamp=stamp)
        offset = builder.next_offset
        places.append((offset - 1 - BASE, len(data)))
        times.append((max(stamps), offset - 1 - BASE))
        data += builder.build()
    (folder / f"{BASE:020}.log").write_bytes(data)
    return places, times


def changed(pairs: Pairs, rng: Random, *, which: int) -> Pairs:
    """Return some of the pairs except the first, in ascending order, with one of the two numbers changed in some."""
    kept: Pairs = []
    for first, second in pairs[1:]:
        numbers = [first, second]
        numbers[which] += rng.choice((0, 0, -1, 1))
        if rng.random() < 0.7 and (not kept or (numbers[0] > kept[-1][0] and numbers[1] > kept[-1][1])):
            kept.append((numbers[0], numbers[1]))
    return kept


def write_indexes(folder: Path, offsets: Pairs, times: Pairs) -> None:
    (folder / f"{BASE:020}.index").write_bytes(b"".join(pack(">ii", *pair) for pair in offsets))
    (folder / f"{BASE:020}.timeindex").write_bytes(b"".join(pack(">qi", *pair) for pair in times))


def faults_here(path: Path) -> list[int]:
    """Return the numbers of the faulty entries, as Kafka's tool prints them."""
    items: list[Any] = list(check_offset_index(path) if path.suffix == ".index" else check_time_index(path))
    places = []
    for entry, fault in pairwise(items):
        if isinstance(fault, LogFileError):
            by_time = isinstance(entry, TimeEntry) and "latest time" in fault.reason
            places.append(entry.timestamp if by_time else entry.offset)
    return places


@pytest.mark.oracle
def test_kafkas_tool_reports_the_same_entries(tmp_path: Path) -> None:
    rng, expected = Random(5), {}
    for number in range(30):
        folder = tmp_path / str(number)
        folder.mkdir()
        offsets, times = written_segment(folder, rng)
        if number % 2:
            write_indexes(folder, offsets, changed(times, rng, which=number % 4 // 2))
        else:
            write_indexes(folder, changed(offsets, rng, which=0), [])
        path = folder / f"{BASE:020}{'.timeindex' if number % 2 else '.index'}"
        expected[str(path)] = faults_here(path)
    assert sum(map(len, expected.values())) > 30
    command = java_command("org.apache.kafka.tools.DumpLogSegments", ["--files", ",".join(expected)], heap_mb=256)
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, list[int]] = {path: [] for path in expected}
    at = ""
    for line in (printed.stdout + printed.stderr).splitlines():
        named = re.search(r"(/\S+index)", line)
        at = named[1] if named else at
        mismatch = MISMATCH.search(line)
        if mismatch:
            found[at].append(int(mismatch[1]))
    assert {name: sorted(places) for name, places in found.items()} == {
        name: sorted(printed) for name, printed in expected.items()
    }
