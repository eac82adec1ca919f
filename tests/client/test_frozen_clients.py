"""Clients whose process is suspended for a while, on simulated time: responses that have arrived are not late."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import OffsetResetStrategy
from kafka_msgs.messages.produce_request import ProduceRequest
from tests.support.produce_cluster import ProduceCluster
from tests.support.simulated_groups import GroupCluster, User

STEPS = range(1, 60)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_that_stands_still_repeats_nothing(step: int, acks: int) -> None:
    cluster = ProduceCluster()
    options: dict[str, Any] = {"acks": acks, "idempotence": False, "request_timeout": 1.0, "linger": 0.0}
    producer = cluster.producer(**options, delivery_timeout=3.0)
    cluster.network.freeze(step, 2.0)
    records = [cluster.add_one(producer, b"%d" % number, partition=1) for number in range(3)]
    cluster.flush(producer)
    for number in range(3, 6):
        records.append(cluster.add_one(producer, b"%d" % number, partition=1))
        cluster.flush(producer)
    assert cluster.logs[1].values == [b"%d" % number for number in range(6)]
    assert [batch.delivery_of(index)[0].error for batch, index in records] == [None] * 6
    sent = cluster.requests(ProduceRequest)
    assert len(sent) <= 6
    assert cluster.network.connections <= 4


@pytest.mark.parametrize("step", STEPS)
def test_a_consumer_that_stands_still_connects_once(step: int) -> None:
    cluster = GroupCluster({"t": 3})
    cluster.produce("t", 0, [b"a", b"b"])
    user = User(cluster, cluster.core(request_timeout=1.0), session_timeout=60.0)
    user.core.subscribe(["t"])
    cluster.network.freeze(step, 3.0)
    assert user.values(2) == [b"a", b"b"]
    for _ in range(5):
        user.poll(1.0)
    connections = cluster.network.connections
    assert connections <= 8
    user.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_stood_still_longer_than_its_session_returns_nothing_before_it_is_sure(protocol: Any) -> None:
    cluster = GroupCluster({"t": 1})
    cluster.produce("t", 0, [b"%d" % number for number in range(4)])
    user = User(cluster, session_timeout=6.0, background=True, group_protocol=protocol)
    user.core.subscribe(["t"])
    assert [record.value for record in user.poll(10.0, room=1)] == [b"0"]
    cluster.network.time += 60.0
    assert user.core.taker.take(1, []) == []
    name = TopicPartition("t", 0)
    partition = user.core.partitions.get(name)
    assert partition is None or partition.position == 1
    user.core.client.close()
    for task in user.core.tasks:
        task.cancel()


@pytest.mark.parametrize("first", [4, OffsetResetStrategy.EARLIEST])
def test_a_seek_while_a_position_is_looked_up_is_kept(first: int) -> None:
    """``seek``, and ``seek_to_beginning``, while ListOffsets for the end is in flight."""
    cluster = GroupCluster({"t": 1})
    cluster.produce("t", 0, [b"%d" % number for number in range(9)])
    name = TopicPartition("t", 0)
    for step in range(40):
        user = User(cluster, group_id=None, auto_offset_reset="latest")
        user.core.set_partitions([name])
        network = cluster.network

        def seek(user: User = user) -> None:
            if first == OffsetResetStrategy.EARLIEST:
                user.core.reset([name], first)
            else:
                user.core.seek({name: first})

        network.later(step * 0.0005, seek)
        network.pass_time(0.03)
        assert [record.offset for record in user.poll(2.0)] == list(range(max(first, 0), 9))
        user.close()
