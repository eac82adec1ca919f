"""Logs after a crash: recovery restores exactly the complete batches."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.binary_layouts import CRC_START
from kafka_msgs.broker.storage import AppendOrigin, PartitionLog
from kafka_msgs.broker.storage.file_store import FilePartitionStore
from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.broker.storage.partition_files import PartitionFiles
from kafka_msgs.broker.storage.producer_state import ProducerStateEntry
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.log import read_log
from kafka_msgs.log.writers.small_files import format_partition_metadata, uuid_text
from kafka_msgs.records import RecordBatch
from tests.broker.storage.making import NOW, TOPIC_ID, batch, new_log, values
from tests.broker.storage.oracle import StorageOracle

CONFIG: dict[str, Any] = {"segment_bytes": 1200, "index_interval_bytes": 200}


def stored(path: Path, *, recovery_point: int = 0, clean: bool = False) -> FilePartitionStore:
    return FilePartitionStore(
        PartitionFiles(OpenFileCache(2), path), clean=clean, recovery_point=recovery_point, log_start_offset=0
    )


def written(path: Path) -> PartitionLog:
    """Return an open log with several segments, producers and transactions."""
    path.mkdir()
    (path / "partition.metadata").write_bytes(format_partition_metadata(TOPIC_ID))
    log = new_log(stored(path, clean=True), **CONFIG)
    for round_ in range(8):
        epoch = round_ // 3
        log.append(batch(b"plain", b"x" * 50 * round_), leader_epoch=epoch, now=NOW)
        numbered = batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=2 * round_)
        log.append(numbered, leader_epoch=epoch, now=NOW)
        guard = log.verify(9, 0, round_, bumps_epoch=False, now=NOW)
        owned = batch(b"t" * 30, producer_id=9, producer_epoch=0, base_sequence=round_, transactional=True)
        log.append(owned, leader_epoch=epoch, now=NOW, guard=guard)
        if round_ % 2:
            log.append_marker(
                9, 0, committed=round_ % 4 == 1, coordinator_epoch=0, leader_epoch=epoch, now=NOW + round_
            )
    log.append(batch(b"last"), leader_epoch=4, now=NOW)
    return log


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crashed") / "orders-0"
    log = written(path)
    assert len(log.segments) >= 3
    log.segments.store.close()
    return path


def last_segment(path: Path) -> Path:
    return sorted(path.glob("*.log"))[-1]


def replayed(path: Path) -> PartitionLog:
    """Return a log in memory with the complete batches of the files."""
    log = new_log(**CONFIG)
    for each in sorted(path.glob("*.log")):
        for found in read_log(each):
            assert isinstance(found, RecordBatch)
            log.append(bytes(found.stored_bytes), leader_epoch=0, now=NOW, origin=AppendOrigin.REPLAY)
    return log


def producers(log: PartitionLog) -> list[ProducerStateEntry]:
    states = (each.condensed() for each in log.producers.states.values())
    return sorted(states, key=lambda state: state.producer_id)


def assert_equal(found: PartitionLog, expected: PartitionLog) -> None:
    assert values(found) == values(expected)
    assert producers(found) == producers(expected)
    for name in ("log_start_offset", "log_end_offset", "last_stable_offset"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.epochs.entries == expected.epochs.entries
    if found.log_end_offset:
        reads = (each.read(0, 1 << 20, isolation="read_committed") for each in (found, expected))
        known = [[(entry.producer_id, entry.first_offset) for entry in read.aborted or ()] for read in reads]
        assert known[0] == known[1]


def _changed(data: bytes, at: int) -> bytes:
    """Change the byte at ``at``, or the next byte that a checksum covers."""
    start = 0
    while start < len(data):
        end = start + int.from_bytes(data[start + 8 : start + 12], "big") + 12
        if at < end:
            at = max(at, start + CRC_START)
            return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        start = end
    return data


Damage = Callable[[bytes, int], bytes]
DAMAGES: dict[str, Damage] = {
    "cut": lambda data, at: data[:at],
    "zeros behind": lambda data, at: data[:at] + bytes(200),
    "a changed byte": lambda data, at: _changed(data, at),
}


@pytest.mark.parametrize("damage", DAMAGES)
@settings(max_examples=25, deadline=None)
@given(share=st.floats(0, 1))
def test_a_crash_at_any_byte_keeps_all_complete_batches(
    damage: str, crashed: Path, tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("crash") / "orders-0"
    shutil.copytree(crashed, path)
    last = last_segment(path)
    content = last.read_bytes()
    at = round(share * len(content))
    last.write_bytes(DAMAGES[damage](content, at))
    log = new_log(stored(path, recovery_point=int(last.stem)), **CONFIG)
    assert content.startswith(last.read_bytes())
    assert_equal(log, replayed(path))
    end = log.log_end_offset
    log.append(batch(b"after"), leader_epoch=5, now=NOW)
    log.close()
    assert values(new_log(stored(path, clean=True, recovery_point=end), **CONFIG), end) == [(end, b"after")]
    shutil.rmtree(path)


@pytest.mark.parametrize("cut", [0, 1, 60, 200, 350, 500])
def test_kafka_recovers_the_same(cut: int, crashed: Path, kafka_log: StorageOracle, tmp_path: Path) -> None:
    kafka, ours = tmp_path / "kafka" / "orders-0", tmp_path / "ours" / "orders-0"
    for path in (kafka, ours):
        shutil.copytree(crashed, path)
        content = last_segment(path).read_bytes()
        last_segment(path).write_bytes(content[: max(0, len(content) - cut)])
    config = {"internal.segment.bytes": "1200", "index.interval.bytes": "200"}
    place = {"dir": str(kafka), "topic_id": uuid_text(TOPIC_ID)}
    state = kafka_log.run(do="open", clean=False, recovery_point=0, config=config, now=NOW, **place)["state"]
    kafka_log.run(do="close", state=False)
    log = new_log(stored(ours), **CONFIG)
    assert [state["end"], state["stable"]] == [log.log_end_offset, log.last_stable_offset]
    assert state["segments"] == [[each.base_offset, each.size] for each in log.segments]
    log.close()
    for path in sorted(kafka.iterdir()):
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex") and path.stat().st_size:
            assert (ours / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(tmp_path / "orders-0")
    known = values(log), producers(log), log.segments.active.size
    room = 100

    def write(file: int, data: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        part, room = data[:room], 0
        return os_write(file, part)

    os_write = os.write
    numbered = batch(b"n" * 200, producer_id=7, producer_epoch=0, base_sequence=16)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(RequestRefusedError) as refused:
            log.append(numbered, leader_epoch=4, now=NOW)
    assert refused.value.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert (values(log), producers(log), log.segments.active.size) == known
    assert last_segment(tmp_path / "orders-0").stat().st_size == known[2]
    assert not log.append(numbered, leader_epoch=4, now=NOW).duplicate
    log.close()


def test_a_closed_log_is_opened_as_it_was(tmp_path: Path) -> None:
    log = written(tmp_path / "orders-0")
    log.delete_records(3)
    log.close()
    opened = FilePartitionStore(
        PartitionFiles(OpenFileCache(2), tmp_path / "orders-0"),
        clean=True,
        recovery_point=log.log_end_offset,
        log_start_offset=3,
    )
    again = new_log(opened, **CONFIG)
    assert values(again, 3) == values(log, 3)
    assert producers(again) == producers(log)
    assert (again.log_start_offset, again.last_stable_offset) == (3, log.last_stable_offset)
    assert again.epochs.entries == log.epochs.entries
