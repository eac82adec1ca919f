"""Faults that change the cluster, triggered by requests and times, and random fault scripts."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kafka_msgs import ConsumerGroupHeartbeatRequest, FetchRequest, ListGroupsRequest, MetadataRequest
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker import EmbeddedBroker, ManualClock, SystemClock
from kafka_msgs.broker.faults import (
    At,
    Change,
    Chaos,
    Disconnect,
    DropResponse,
    Fail,
    Fault,
    FillDisk,
    Heal,
    JumpClock,
    KillBroker,
    MoveController,
    MoveGroupCoordinator,
    MoveLeader,
    MoveTransactionCoordinator,
    RestartBroker,
    StartBroker,
    StopBroker,
)
from kafka_msgs.client import Producer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.testing import new_topic, topic_records
from tests.support.virtual_brokers import START, VirtualCluster, batch

HOUR: Final = 3_600_000
CHAOS: Final = Chaos(
    brokers=range(3),
    topics={"orders": 3},
    groups=["kitchen"],
    transactional_ids=["cook"],
    effects=[DropResponse(), Disconnect()],
    apis=[ApiKey.PRODUCE, ApiKey.FETCH],
    full_disk=True,
    jump_ms=1000,
    least_running=2,
)


@pytest.fixture
def virtual() -> VirtualCluster:
    cluster = VirtualCluster.start(brokers=3)
    cluster.create("orders", partitions=3, replication_factor=3)
    MoveGroupCoordinator("kitchen", 0).apply(cluster.cluster)
    MoveTransactionCoordinator("cook", 0).apply(cluster.cluster)
    return cluster


def facts(cluster: VirtualCluster) -> dict[str, Any]:
    """Return the state that faults change: leaders, running brokers, controller, clock skew, and the disk."""
    image = cluster.cluster.image
    states = [(name, state) for name, topic in image.topics.items() for state in topic.partitions]
    return {
        "leaders": {(name, state.partition): state.leader for name, state in states},
        "running": [broker.id for broker in image.alive()],
        "controller": cluster.cluster.controller_id,
        "skew": cluster.cluster.now - cluster.time,
        "full": cluster.cluster.faults.disk_full,
    }


@pytest.mark.parametrize(
    ("change", "fact", "expected"),
    [
        (KillBroker(1), "running", [0, 2]),
        (StopBroker(1), "running", [0, 2]),
        (MoveController(2), "controller", 2),
        (JumpClock(-5000), "skew", -5000),
        (FillDisk(), "full", True),
    ],
    ids=repr,
)
def test_a_change_happens_at_its_moment_and_at_a_request(
    virtual: VirtualCluster, change: Change, fact: str, expected: object
) -> None:
    before = facts(virtual)
    virtual.cluster.faults.play([At(100, change)])
    virtual.advance(99)
    assert facts(virtual) == before
    virtual.advance(1)
    assert facts(virtual)[fact] == expected

    other = VirtualCluster.start(brokers=3)
    other.cluster.faults.add(Fault(change, api=ApiKey.METADATA, after=1))
    for happened in (False, True):
        assert other.call(MetadataRequest(topics=()), 13).cluster_id
        assert (facts(other)[fact] == expected) is happened


def test_leaders_and_coordinators_move(virtual: VirtualCluster) -> None:
    before = facts(virtual)["leaders"]
    changes: list[Change] = [MoveLeader("orders", partition, (partition + 2) % 3) for partition in range(3)]
    changes += [MoveGroupCoordinator("kitchen", 2), MoveTransactionCoordinator("cook", 2)]
    virtual.cluster.faults.play(At(10, change) for change in changes)
    virtual.advance(10)
    after = facts(virtual)["leaders"]
    assert [after["orders", each] for each in range(3)] == [2, 0, 1]
    moved = {place[0] for place, leader in after.items() if before[place] != leader}
    assert {"__consumer_offsets", "__transaction_state"} <= moved


def test_a_broker_is_back_after_its_time_and_heal_brings_all_back(virtual: VirtualCluster) -> None:
    faults = virtual.cluster.faults
    faults.add(Fault(Disconnect(), times=None))
    faults.play([At(0, RestartBroker(1, down_ms=50)), At(10, KillBroker(2)), At(20, FillDisk()), At(200, Heal())])
    seen = []
    for ms in (10, 50, 140):
        virtual.advance(ms)
        seen.append(facts(virtual)["running"])
    assert seen == [[0], [0, 1], [0, 1, 2]]
    assert not faults.disk_full
    assert virtual.call(ListGroupsRequest(), 5).error_code == 0


def test_a_request_that_kills_its_own_broker_is_lost(virtual: VirtualCluster) -> None:
    leader = virtual.cluster.image.topics["orders"].partitions[0].leader
    virtual.cluster.faults.add(Fault(KillBroker(leader), api=ApiKey.PRODUCE))
    asked = virtual.produce("orders", 0, batch(b"a"), broker=leader)
    assert asked.answer is None
    assert asked.call.session.closed
    log = virtual.cluster.log_manager.get((virtual.topic_id("orders"), 0))
    assert log is not None
    assert log.log_end_offset == 0


def test_what_cannot_be_done_is_left_out(virtual: VirtualCluster) -> None:
    faults = virtual.cluster.faults
    faults.play([At(0, KillBroker(9)), At(0, JumpClock(-2 * START)), At(0, MoveLeader("none", 0, 1))])
    faults.play([At(5, KillBroker(1))])
    virtual.advance(5)
    assert [type(change) for change, _ in faults.refused] == [KillBroker, JumpClock, MoveLeader]
    assert all(isinstance(error, OptionError) for _, error in faults.refused)
    assert facts(virtual)["running"] == [0, 2]
    assert virtual.cluster.errors == []


def test_clear_ends_scripts(virtual: VirtualCluster) -> None:
    virtual.cluster.faults.play([At(5, KillBroker(1))])
    virtual.cluster.faults.clear()
    virtual.advance(5)
    assert facts(virtual)["running"] == [0, 1, 2]


def test_ages_change_when_the_clock_jumps() -> None:
    virtual = VirtualCluster.start(configs={"log.initial.task.delay.ms": "1000"})
    virtual.create("t", retention_ms="60000", file_delete_delay_ms="0")
    virtual.produce("t", 0, batch(b"a"))
    virtual.cluster.jump_clock(HOUR)
    virtual.advance(1001)
    log = virtual.cluster.log_manager.get((virtual.topic_id("t"), 0))
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)


@pytest.mark.parametrize("ms", [HOUR, -HOUR])
def test_what_waits_waits_as_long_when_the_clock_jumps(ms: int) -> None:
    virtual = VirtualCluster.start()
    virtual.create("t")
    MoveGroupCoordinator("kitchen", 0).apply(virtual.cluster)
    joins = ConsumerGroupHeartbeatRequest(
        group_id="kitchen", member_id="m", member_epoch=0, rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",), topic_partitions=(),
    )  # fmt: skip
    epoch = virtual.call(joins, 1).member_epoch
    topic = FetchTopic(topic="t", partitions=(FetchPartition(partition=0, partition_max_bytes=1000),))
    poll = virtual.ask(FetchRequest(max_wait_ms=500, min_bytes=1, topics=(topic,)), 12)

    virtual.advance(400)
    virtual.cluster.jump_clock(ms)
    virtual.advance(99)
    assert poll.answer is None
    virtual.advance(1)
    assert poll.answer is not None

    beats = ConsumerGroupHeartbeatRequest(group_id="kitchen", member_id="m", member_epoch=epoch)
    virtual.advance(44_000)
    assert virtual.call(beats, 1).error_code == 0
    virtual.advance(46_000)
    assert virtual.call(beats, 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_seed_gives_one_script() -> None:
    script = CHAOS.script(7)
    assert script == CHAOS.script(7)
    assert script != CHAOS.script(8)
    assert [each.ms for each in script] == sorted(each.ms for each in script)
    assert script[-1] == At(CHAOS.duration_ms, Heal())
    kinds = {type(each.what) for seed in range(20) for each in CHAOS.script(seed)}
    assert kinds == {
        FillDisk, Fault, Heal, JumpClock, KillBroker, MoveController, MoveGroupCoordinator, MoveLeader,
        MoveTransactionCoordinator, StartBroker, StopBroker,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_the_same_script_gives_the_same_history_and_ends_well(seed: int) -> None:
    def history() -> list[dict[str, Any]]:
        virtual = VirtualCluster.start(brokers=3, seed=1)
        virtual.create("orders", partitions=3, replication_factor=3)
        virtual.cluster.faults.play(script)
        found = []
        for _ in range(110):
            virtual.advance(100)
            found.append(facts(virtual))
        assert list(virtual.cluster.faults.refused) == []
        assert virtual.cluster.errors == []
        return found

    script = CHAOS.script(seed)
    first = history()
    assert first == history()
    assert min(len(each["running"]) for each in first) == CHAOS.least_running
    assert first[-1]["running"] == [0, 1, 2]


def test_each_api_has_dice_of_its_own(virtual: VirtualCluster) -> None:
    def outcomes(others: int) -> list[int]:
        virtual.cluster.faults.random(3, [Fail(ErrorCode.UNKNOWN_SERVER_ERROR)], 0.5)
        found = []
        for _ in range(30):
            found.append(virtual.call(ListGroupsRequest(), 5).error_code)
            for _ in range(others):
                virtual.ask(MetadataRequest(topics=()), 13)
        return found

    assert outcomes(0) == outcomes(2)


def test_a_script_runs_in_an_embedded_broker_whose_clock_a_test_moves() -> None:
    clock = ManualClock(SystemClock().now())
    with EmbeddedBroker(brokers=3, clock=clock) as broker:
        topic = new_topic(broker, partitions=3, replicas=3)
        broker.run_fault_script([At(1000, KillBroker(0)), At(2000, JumpClock(HOUR)), At(3000, StartBroker(0))])
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(4):
                producer.send(topic, b"%d" % number, partition=0)
                producer.flush()
                clock.advance(1000)
        assert [bytes(record.value or b"") for record in topic_records(broker, topic)] == [b"0", b"1", b"2", b"3"]
        assert broker.run(lambda cluster: cluster.now) == clock.now() + HOUR
        assert broker.run(lambda cluster: len(cluster.image.alive())) == 3
        broker.jump_clock(-HOUR)
        assert broker.run(lambda cluster: cluster.now) == clock.now()
        assert broker.problems == []
