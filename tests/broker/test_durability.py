"""State after a machine crash: recovery points never cover bytes that were not synced to disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kafka_msgs import ErrorCode, ProduceResponse
from kafka_msgs.errors import OptionError
from kafka_msgs.log.small_files import RECOVERY_POINTS, read_offset_checkpoint
from tests.support.skip_reasons import not_run
from tests.support.virtual_brokers import VirtualCluster, batch


class Disk:
    """The synced files, and up to which byte. A power failure loses all other bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: dict[Path, int] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._sync)

    def _sync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.synced[path] = os.fstat(descriptor).st_size
        self._fsync(descriptor)

    def crash(self, directory: Path, copy: Path) -> None:
        """Copy a directory as left by a crash: unsynced bytes of batches are zeros."""
        shutil.copytree(directory, copy)
        for path in directory.glob("**/*.log"):
            data = bytearray(path.read_bytes())
            kept = self.synced.get(path, 0)
            data[kept:] = bytes(len(data) - kept)
            (copy / path.relative_to(directory)).write_bytes(data)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    if not Path("/proc/self/fd").exists():
        not_run("the paths of open files are read from /proc")
    return Disk(monkeypatch)


def fill(cluster: VirtualCluster, count: int = 12) -> None:
    cluster.create("t", segment_bytes="1048576", retention_ms="-1")
    for number in range(count):
        answer = cluster.decoded(cluster.produce("t", 0, batch(bytes([number]) * 200_000)), ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def end_offset(cluster: VirtualCluster) -> int:
    log = cluster.cluster.log_manager.get((cluster.topic_id("t"), 0))
    assert log is not None
    return log.log_end_offset


def test_a_recovery_point_covers_nothing_that_was_not_synced(tmp_path: Path, disk: Disk) -> None:
    cluster = VirtualCluster.start(directory=tmp_path / "d")
    fill(cluster)
    cluster.advance(3_600_000)
    assert read_offset_checkpoint(tmp_path / "d" / RECOVERY_POINTS)["t", 0] == 0
    (log,) = (each for each in cluster.cluster.log_manager if each.topic == "t")
    cluster.cluster.close()
    assert read_offset_checkpoint(tmp_path / "d" / RECOVERY_POINTS)["t", 0] == log.log_end_offset == 12


def test_what_a_clean_close_left_survives_a_crash_of_the_machine(tmp_path: Path, disk: Disk) -> None:
    cluster = VirtualCluster.start(directory=tmp_path / "d")
    fill(cluster)
    cluster.cluster.close()
    disk.crash(tmp_path / "d", tmp_path / "crashed")
    after = VirtualCluster.start(directory=tmp_path / "crashed")
    assert end_offset(after) == 12
    after.cluster.close()


def test_a_durable_broker_loses_nothing_that_it_acknowledged(tmp_path: Path, disk: Disk) -> None:
    cluster = VirtualCluster.start(directory=tmp_path / "d", durable=True, brokers=2)
    fill(cluster)
    disk.crash(tmp_path / "d", tmp_path / "crashed")
    after = VirtualCluster.start(directory=tmp_path / "crashed", brokers=2)
    assert end_offset(after) == 12
    after.cluster.close()
    cluster.cluster.close()


def test_a_durable_broker_refuses_what_it_cannot_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster.start(directory=tmp_path, durable=True)
    fill(cluster, 1)

    def fail(descriptor: int) -> None:
        raise OSError("the disk is broken")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        answer = cluster.decoded(cluster.produce("t", 0, batch(b"x")), ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert end_offset(cluster) == 1
    answer = cluster.decoded(cluster.produce("t", 0, batch(b"y")), ProduceResponse)
    assert answer.responses[0].partition_responses[0].base_offset == 1
    cluster.cluster.close()


def test_durability_needs_a_directory() -> None:
    with pytest.raises(OptionError, match="durable"):
        VirtualCluster.start(durable=True)
