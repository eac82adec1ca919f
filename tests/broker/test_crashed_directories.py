"""Directories of a killed process, truncated anywhere: acknowledged records survive, and all replicas agree."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs import ProduceResponse
from kafka_msgs.errors import LogFileError
from kafka_msgs.log import LogDirectory
from tests.support.kafka_directory import assert_equal_replicas
from tests.support.virtual_brokers import VirtualCluster, batch

TOPIC: Final = "t"
COUNT: Final = 40
GROWING: Final = (".log", ".index", ".timeindex", ".txnindex")
"""The extensions of files that are written in place. All other files are replaced atomically."""


def produce(cluster: VirtualCluster, value: bytes) -> None:
    leader = cluster.cluster.image.topics[TOPIC].partitions[0].leader
    answer = cluster.decoded(cluster.produce(TOPIC, 0, batch(value), broker=leader), ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directories of two brokers, copied while the cluster runs."""
    path = tmp_path_factory.mktemp("running") / "data"
    snapshots = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
    cluster = VirtualCluster.start(directory=path, brokers=2, configs=snapshots)
    cluster.create(TOPIC, replication_factor=2, segment_bytes=str(2**20))
    for number in range(COUNT):
        produce(cluster, b"%d" % number)
        if number % 10 == 0:
            cluster.create(f"other-{number}", replication_factor=2)
        if number == COUNT // 2:
            cluster.cluster.log_manager._clean(compacted=False)
            cluster.advance(400_000)
    copy = path.with_name("killed")
    shutil.copytree(path, copy)
    cluster.cluster.close()
    return copy


def opened_values(path: Path) -> list[bytes]:
    """Open the directories, append a record, close them, and return the partition's values."""
    cluster = VirtualCluster.start(directory=path)
    produce(cluster, b"after")
    assert cluster.cluster.errors == []
    cluster.cluster.close()
    assert_equal_replicas(path)
    partition = next(each for each in LogDirectory(path / "broker-0").partitions if each.topic == TOPIC)
    return [bytes(record.value or b"") for each in partition.batches() for record in each]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), hurt=st.sampled_from(["one replica", "all replicas"]))
def test_a_cut_at_any_byte(hurt: str, killed: Path, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Truncating all replicas simulates the loss of unwritten data. Truncating one replica loses no records."""
    path = tmp_path_factory.mktemp("crash") / "data"
    shutil.copytree(killed, path)
    random = Random(seed)
    directories = sorted(path.iterdir()) if hurt == "all replicas" else [random.choice(sorted(path.iterdir()))]
    for directory in directories:
        files = [each for each in sorted(directory.glob(f"{TOPIC}-0/*")) if each.suffix in GROWING]
        for file in random.sample(files, min(2, len(files))):
            content = file.read_bytes()
            file.write_bytes(content[: random.randint(0, len(content))] + bytes(random.choice((0, 0, 30))))
    expected = [b"%d" % number for number in range(COUNT)]
    found = opened_values(path)
    assert found[-1] == b"after"
    assert found[:-1] == expected[: len(found) - 1]
    assert hurt == "all replicas" or len(found) == COUNT + 1
    shutil.rmtree(path)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_metadata_log_that_is_cut_in_one_directory(
    seed: int, killed: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("crash") / "data"
    shutil.copytree(killed, path)
    random = Random(seed)
    log = max(random.choice(sorted(path.iterdir())).glob("__cluster_metadata-0/*.log"))
    content = log.read_bytes()
    log.write_bytes(content[: random.randint(0, len(content))])
    assert len(opened_values(path)) == COUNT + 1
    cluster = VirtualCluster.start(directory=path)
    assert {TOPIC, *(f"other-{number}" for number in range(0, COUNT, 10))} <= set(cluster.cluster.image.topics)
    cluster.cluster.close()
    shutil.rmtree(path)


@pytest.mark.parametrize("left", [".tmp", ".cleaned", ".deleted", ".swap"])
def test_files_of_work_that_was_not_finished_are_removed(left: str, killed: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    shutil.copytree(killed, path)
    for directory in path.iterdir():
        for name in ("leader-epoch-checkpoint.tmp", f"00000000000000000000.timeindex{left}"):
            (directory / f"{TOPIC}-0" / name).write_bytes(b"half")
        (directory / "recovery-point-offset-checkpoint.tmp").write_bytes(b"0\n1\n")
    assert len(opened_values(path)) == COUNT + 1
    assert not [each for each in path.rglob("*") if each.name.endswith((".tmp", left))]


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_that_is_damaged_counts_for_nothing(name: str, killed: Path, tmp_path: Path) -> None:
    """Like Kafka's ``LogManager``, the broker then recovers the log from its first segment."""
    shutil.copytree(killed, tmp_path / "data")
    for directory in (tmp_path / "data").iterdir():
        (directory / name).write_bytes(b"0\n2\nt 0")
    assert len(opened_values(tmp_path / "data")) == COUNT + 1


def test_a_damaged_file_of_high_watermarks_is_an_error(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "data")
    for directory in (tmp_path / "data").iterdir():
        (directory / "replication-offset-checkpoint").write_bytes(b"0\n2\nt 0")
    with pytest.raises(LogFileError, match="replication-offset-checkpoint"):
        VirtualCluster.start(directory=tmp_path / "data")
