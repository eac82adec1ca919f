"""Segments in memory: blocks that contain the appended bytes, and whose memory returns to the system."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.broker.storage import MemoryPartitionStore
from kafka_msgs.broker.storage.log_cleanup import delete_old_segments
from tests.broker.storage.making import NOW, batch, new_log
from tests.support.skip_reasons import not_run


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9000), min_size=1, max_size=30),
    cut=st.integers(0, 100_000),
    start=st.integers(0, 100_000),
    length=st.integers(0, 50_000),
)
def test_a_segment_holds_what_was_appended(sizes: list[int], cut: int, start: int, length: int) -> None:
    segment = MemoryPartitionStore().create(0)
    content = b""
    for number, size in enumerate(sizes):
        content += (piece := bytes([number]) * size)
        segment.append(piece)
    before = segment.read(0, segment.size)
    cut = min(cut, segment.size)
    segment.truncate(cut)
    segment.append(b"\xff" * 500)
    expected = content[:cut] + b"\xff" * 500
    assert segment.size == len(expected)
    assert b"".join(segment.read(0, segment.size)) == expected
    assert b"".join(segment.read(start, start + length)) == expected[start : start + length]
    assert b"".join(before) == content


def resident() -> int:
    """Return the resident memory of the process in bytes."""
    status = Path("/proc/self/statm")
    if not status.exists():
        not_run("the memory of a process is read from /proc")
    return int(status.read_text().split()[1]) * 4096


@pytest.mark.parametrize("size", [200, 20_000])
def test_retention_gives_memory_back(size: int) -> None:
    """Batches alternate with small objects that stay, as producers and other partitions leave them."""
    log = new_log(segment_bytes=2**22, retention_bytes=2**20)
    stays: list[bytes] = []
    before = resident()
    for number in range(120_000_000 // (size * 20)):
        log.append(batch(*[bytes(size)] * 20), leader_epoch=0, now=NOW)
        stays.append(b"%d" % number * 20)
    full = resident()
    delete_old_segments(log, NOW)
    assert log.size < 2**23
    assert full - before > 100_000_000
    assert resident() - before < 40_000_000
