"""Clusters of several brokers with a log directory each: equal, lagging, and diverged replicas."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import ProduceResponse
from kafka_msgs.broker.faults import MoveLeader
from kafka_msgs.errors import LogFileError, OptionError
from kafka_msgs.log import LogDirectory, read_meta_properties
from tests.support.kafka_directory import assert_equal_replicas, claim_for_node
from tests.support.virtual_brokers import VirtualCluster, batch


def opened(path: Path, **settings: Any) -> VirtualCluster:
    return VirtualCluster.start(directory=path, **settings)


def produce(cluster: VirtualCluster, topic: str, partition: int, *values: bytes) -> int:
    """Produce to the leader of a partition, and return the offset."""
    leader = cluster.cluster.image.topics[topic].partitions[partition].leader
    answer = cluster.decoded(cluster.produce(topic, partition, batch(*values), broker=leader), ProduceResponse)
    response = answer.responses[0].partition_responses[0]
    assert response.error_code == 0
    return response.base_offset


def hosted(path: Path) -> dict[str, set[str]]:
    """Return the partitions in each log directory."""
    return {
        each.name: {found.path.name for found in LogDirectory(each).partitions} - {"__cluster_metadata-0"}
        for each in sorted(path.iterdir())
    }


def values(path: Path, partition: str) -> list[bytes]:
    found = next(each for each in LogDirectory(path).partitions if each.path.name == partition)
    return [bytes(record.value or b"") for each in found.batches() for record in each]


def test_each_broker_has_the_partitions_that_it_is_a_replica_of(tmp_path: Path) -> None:
    cluster = opened(tmp_path, brokers=3)
    cluster.create("t", partitions=3, replication_factor=2)
    replicas = {f"t-{each.partition}": each.replicas for each in cluster.cluster.image.topics["t"].partitions}
    for partition in range(3):
        produce(cluster, "t", partition, b"a", b"b")
    # Acknowledged records are in all directories before any of them is closed.
    for name, brokers in replicas.items():
        for broker in brokers:
            assert values(tmp_path / f"broker-{broker}", name) == [b"a", b"b"]
    cluster.cluster.close()
    wanted = {f"broker-{each}": {name for name, found in replicas.items() if each in found} for each in range(3)}
    assert hosted(tmp_path) == wanted
    assert_equal_replicas(tmp_path)
    metas = [read_meta_properties(tmp_path / name / "meta.properties") for name in wanted]
    assert [meta.node_id for meta in metas] == [0, 1, 2]
    assert (len({meta.cluster_id for meta in metas}), len({meta.directory_id for meta in metas})) == (1, 3)
    assert all((tmp_path / name / "bootstrap.checkpoint").exists() for name in wanted)


def test_the_brokers_of_a_cluster_are_those_of_its_directories(tmp_path: Path) -> None:
    opened(tmp_path, brokers=2).cluster.close()
    assert [opened(tmp_path).cluster.broker_ids] == [(0, 1)]


def test_more_brokers_than_directories_get_new_ones(tmp_path: Path) -> None:
    opened(tmp_path, brokers=2).cluster.close()
    cluster = opened(tmp_path, brokers=3)
    assert cluster.cluster.broker_ids == (0, 1, 2)
    cluster.create("t", replication_factor=3)
    cluster.cluster.close()
    assert hosted(tmp_path) == {f"broker-{each}": {"t-0"} for each in range(3)}
    assert_equal_replicas(tmp_path)


def test_a_moved_partition_moves_its_files(tmp_path: Path) -> None:
    cluster = opened(tmp_path, brokers=3)
    cluster.create("t", replication_factor=1)
    (old,) = cluster.cluster.image.topics["t"].partitions[0].replicas
    produce(cluster, "t", 0, b"a")
    new = (old + 1) % 3
    MoveLeader("t", 0, new).apply(cluster.cluster)
    assert produce(cluster, "t", 0, b"b") == 1
    cluster.cluster.close()
    assert hosted(tmp_path) == {f"broker-{each}": {"t-0"} if each == new else set() for each in range(3)}
    assert values(tmp_path / f"broker-{new}", "t-0") == [b"a", b"b"]
    after = opened(tmp_path)
    assert produce(after, "t", 0, b"c") == 2
    after.cluster.close()


def test_a_replica_that_lags_gets_what_it_missed(tmp_path: Path) -> None:
    cluster = opened(tmp_path, brokers=3)
    cluster.create("t", replication_factor=3)
    produce(cluster, "t", 0, b"a")
    cluster.cluster.close()
    for each in range(2):
        shutil.copytree(tmp_path / f"broker-{each}", tmp_path / "old" / f"broker-{each}")
    cluster = opened(tmp_path)
    produce(cluster, "t", 0, b"b")
    cluster.create("u", replication_factor=3)
    cluster.cluster.close()
    for each in range(2):
        shutil.rmtree(tmp_path / f"broker-{each}")
        (tmp_path / "old" / f"broker-{each}").rename(tmp_path / f"broker-{each}")
    (tmp_path / "old").rmdir()
    cluster = opened(tmp_path)
    assert set(cluster.cluster.image.topics) == {"t", "u"}
    assert produce(cluster, "t", 0, b"c") == 2
    cluster.cluster.close()
    assert_equal_replicas(tmp_path)
    assert values(tmp_path / "broker-0", "t-0") == [b"a", b"b", b"c"]


def test_records_that_were_never_replicated_give_way_to_those_in_sync(tmp_path: Path) -> None:
    """A leader that lost its leadership while it was down has a longer log, with records of an older epoch."""
    cluster = opened(tmp_path, brokers=2)
    cluster.create("t", replication_factor=2)
    cluster.cluster.close()
    shutil.copytree(tmp_path, tmp_path.with_name("away"))
    away = opened(tmp_path.with_name("away") / "broker-0")
    produce(away, "t", 0, b"lost", b"lost", b"lost")
    away.cluster.close()
    there = opened(tmp_path)
    there.cluster.kill_broker(0)
    produce(there, "t", 0, b"kept")
    there.cluster.close()
    log = tmp_path / "broker-0" / "t-0"
    shutil.rmtree(log)
    shutil.copytree(tmp_path.with_name("away") / "broker-0" / "t-0", log)
    cluster = opened(tmp_path)
    assert produce(cluster, "t", 0, b"next") == 1
    cluster.cluster.close()
    assert_equal_replicas(tmp_path)
    assert values(log.parent, "t-0") == [b"kept", b"next"]


def test_an_older_topic_of_the_same_name_is_put_aside(tmp_path: Path) -> None:
    cluster = opened(tmp_path, brokers=2)
    cluster.create("t", replication_factor=2)
    produce(cluster, "t", 0, b"new")
    cluster.cluster.close()
    other = opened(tmp_path.with_name("other"))
    other.create("t")
    produce(other, "t", 0, b"old", b"old")
    other.cluster.close()
    shutil.rmtree(tmp_path / "broker-1" / "t-0")
    shutil.copytree(tmp_path.with_name("other") / "t-0", tmp_path / "broker-1" / "t-0")
    opened(tmp_path).cluster.close()
    assert values(tmp_path / "broker-1", "t-0") == [b"new"]
    assert [each.name.startswith("t-0.") for each in (tmp_path / "broker-1").glob("*-stray")] == [True]


def test_directories_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    opened(tmp_path / "one").cluster.close()
    with pytest.raises(OptionError, match="the log directory of one node"):
        opened(tmp_path / "one", brokers=3)
    opened(tmp_path / "two").cluster.close()
    with pytest.raises(LogFileError, match="node 0 has another directory"):
        opened(tmp_path)
    shutil.rmtree(tmp_path / "two")
    claim_for_node(tmp_path / "two", node=1)
    with pytest.raises(LogFileError, match="the cluster is"):
        opened(tmp_path)
    # A refusal leaves no lock behind.
    opened(tmp_path / "one").cluster.close()
