"""``store_offsets``: the program decides which records the next commit covers, as with confluent-kafka."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.client import Consumer, TopicPartition
from kafka_msgs.client.consumer import OffsetAndMetadata
from kafka_msgs.client.consumer.consumer_state import offsets_to_commit
from kafka_msgs.errors import OffsetPositionError, OptionError, RecordError
from tests.support.simulated_groups import GroupCluster, User

T0 = TopicPartition("t", 0)
VALUES = [b"%d" % number for number in range(6)]


@pytest.fixture
def cluster() -> GroupCluster:
    """A cluster with six records in one partition."""
    found = GroupCluster({"t": 1})
    found.produce("t", 0, VALUES)
    return found


def reader(cluster: GroupCluster, **options: Any) -> User:
    """Return a group member that stores offsets itself."""
    user = User(cluster, auto_offset_store=False, **options)
    user.core.subscribe(["t"])
    return user


def test_an_automatic_commit_commits_the_stored_offset(cluster: GroupCluster) -> None:
    user = reader(cluster, auto_commit=True, auto_commit_interval=1.0)
    records = user.poll(room=4)
    assert len(records) == 4
    cluster.network.pass_time(3.0)
    assert cluster.committed[("g", "t", 0)] == 0
    user.core.store_offsets(offsets_to_commit(records[1]))
    cluster.network.pass_time(3.0)
    assert cluster.committed[("g", "t", 0)] == 2
    user.core.store_offsets({T0: OffsetAndMetadata(3, metadata="m")})
    user.close()
    assert cluster.committed[("g", "t", 0)] == 3


def test_a_commit_commits_the_stored_offset(cluster: GroupCluster) -> None:
    user = reader(cluster)
    records = user.poll(room=4)
    user.core.store_offsets(offsets_to_commit(records[2]))
    user.commit()
    assert cluster.committed[("g", "t", 0)] == 3
    user.commit(offsets_to_commit(records[3]))
    assert cluster.committed[("g", "t", 0)] == 4
    user.close()


def test_an_offset_can_be_stored_only_for_a_partition_of_the_consumer(cluster: GroupCluster) -> None:
    user = reader(cluster)
    user.poll()
    with pytest.raises(OffsetPositionError, match="does not have it"):
        user.core.store_offsets({TopicPartition("t", 1): 1})
    user.close()


def test_an_offset_of_a_deleted_topic_cannot_be_stored(cluster: GroupCluster) -> None:
    user = reader(cluster)
    records = user.poll(room=4)
    cluster.recreate("t")
    cluster.produce("t", 0, [b"a", b"b"])
    cluster.network.pass_time(2.0)
    with pytest.raises(OffsetPositionError, match="deleted and created again"):
        user.core.store_offsets(offsets_to_commit(records[-1]))
    assert user.values(2) == [b"a", b"b"]
    user.core.store_offsets({T0: 1})
    user.close()


def test_without_the_option_offsets_are_not_stored(cluster: GroupCluster) -> None:
    user = User(cluster)
    user.core.subscribe(["t"])
    user.poll()
    with pytest.raises(OptionError, match="auto_offset_store"):
        user.core.store_offsets({T0: 1})
    user.close()


def test_the_property_of_librdkafka_is_known() -> None:
    with Consumer({"bootstrap.servers": "b:1", "enable.auto.offset.store": "false"}) as consumer:
        assert not consumer.config.auto_offset_store


def test_records_returned_beside_damaged_ones_are_not_handled_before_the_next_poll(cluster: GroupCluster) -> None:
    """An automatic commit between the two polls must not cover the records that the first one returned."""
    cluster.produce("t", 0, [b"6"])
    damaged = bytearray(cluster.batches["t", 0][-1])
    damaged[-1] ^= 1
    cluster.batches["t", 0][-1] = bytes(damaged)
    user = User(cluster, auto_commit=True, auto_commit_interval=1.0)
    user.core.subscribe(["t"])
    assert len(user.poll(room=100)) == 6
    cluster.network.pass_time(3.0)
    assert cluster.committed.get(("g", "t", 0), 0) == 0
    with pytest.raises(RecordError):
        user.poll()
    cluster.network.pass_time(3.0)
    assert cluster.committed["g", "t", 0] == 6
    user.crash()
