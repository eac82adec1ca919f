"""Coordinators that load long logs: other clients are served meanwhile, and clients of the group retry."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafka_msgs import ErrorCode, MetadataRequest, OffsetFetchRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.broker.sliced_work import SlicedWork
from kafka_msgs.broker.storage import AppendOrigin
from kafka_msgs.groups.runtime.output import RecordAppend
from kafka_msgs.groups.runtime.record_batches import encode_batch
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequestGroup
from tests.support.raw_client import RawClient
from tests.support.virtual_brokers import VirtualCluster

GROUP = "workers"
COMMITS = 5_000


def commit_often(cluster: Cluster, times: int) -> int:
    """Write this many commits of a group, and return its partition."""
    MoveGroupCoordinator(GROUP, 0).apply(cluster)
    topic = cluster.image.topics[CONSUMER_OFFSETS]
    partition = GroupCoordinatorService.of_broker(cluster, 0).coordinator.partition_for(GROUP)
    log = cluster.log_manager.get((topic.id, partition))
    assert log is not None
    for number in range(times):
        record = TopicRecord(
            topic=CONSUMER_OFFSETS,
            key=OffsetCommitKey(group=GROUP, topic="orders", partition=number % 100),
            value=OffsetCommitValue(offset=number, metadata="", commit_timestamp=cluster.now, leader_epoch=-1),
            version=3,
        )
        data = encode_batch(RecordAppend(partition=partition, records=(record,)), timestamp=cluster.now)
        log.append(data, leader_epoch=0, now=cluster.now, origin=AppendOrigin.COORDINATOR)
    return partition


class Turns:
    """An event loop whose iterations are controlled by a test."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.waiting.append(callback)

    def turn(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


def test_work_is_done_in_slices_and_in_order() -> None:
    done: list[int] = []
    turns, work = Turns(), SlicedWork(lambda step: step())
    work.scheduler = turns

    def steps(first: int, count: int) -> Iterator[None]:
        for number in range(first, first + count):
            done.append(number)
            yield

    work.begin(steps(0, 600))
    work.begin(steps(600, 10))
    lengths = [len(done)]
    while turns.waiting:
        turns.turn()
        lengths.append(len(done))
    assert lengths == [128, 256, 384, 512, 610, 610]
    assert done == list(range(610))


def test_work_that_fails_does_not_stop_other_work() -> None:
    cluster = VirtualCluster.start().cluster
    done: list[int] = []

    def failing() -> Iterator[None]:
        yield
        raise ValueError("broken")

    def sound() -> Iterator[None]:
        done.append(1)
        yield

    cluster.long_work.begin(failing())
    cluster.long_work.begin(sound())
    assert [str(each) for each in cluster.errors] == ["broken"]
    assert done == [1]


def fetch(client: RawClient) -> ErrorCode:
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    return ErrorCode(client.call(OffsetFetchRequest(groups=(group,)), 8).groups[0].error_code)


def test_a_killed_broker_with_many_commits_delays_nobody_else() -> None:
    """Other requests are served between the slices. The group's client gets COORDINATOR_LOAD_IN_PROGRESS."""
    turns = Turns()
    with EmbeddedBroker(brokers=2) as broker:
        broker.run(lambda cluster: commit_often(cluster, COMMITS))
        broker.run(lambda cluster: setattr(cluster.long_work, "scheduler", turns))
        with RawClient(broker, 1) as client:
            broker.kill_broker(0)
            slices = 0
            while fetch(client) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                assert client.call(MetadataRequest(topics=()), 9).brokers
                broker.run(lambda _: turns.turn())
                slices += 1
            assert slices > 5
            group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
            found = client.call(OffsetFetchRequest(groups=(group,)), 8).groups[0].topics[0].partitions
            assert {each.committed_offset for each in found} == set(range(COMMITS - 100, COMMITS))
        assert broker.problems == []


def test_a_leader_that_moves_again_ends_the_loading_of_the_broker_before() -> None:
    with EmbeddedBroker(brokers=3) as broker:
        broker.run(lambda cluster: commit_often(cluster, 2000))

        def move_twice(cluster: Cluster) -> None:
            MoveGroupCoordinator(GROUP, 1).apply(cluster)
            MoveGroupCoordinator(GROUP, 2).apply(cluster)

        broker.run(move_twice)
        with RawClient(broker, 1) as former, RawClient(broker, 2) as leader:
            while fetch(leader) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                pass
            assert fetch(leader) == ErrorCode.NONE
            assert fetch(former) == ErrorCode.NOT_COORDINATOR
        assert broker.problems == []
