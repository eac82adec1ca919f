"""Groups of other clients, as ``Admin`` lists and describes them while their members are active.

The clients are Kafka's own consumer (both protocols) and share consumer, librdkafka (both protocols), aiokafka, and
this library. One more test moves the coordinator of a group.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

import pytest

from kafka_msgs.admin import Admin, AsyncAdmin, GroupDescription, GroupState, GroupType, NewTopic
from kafka_msgs.client import Consumer, TopicPartition
from kafka_msgs.drafts.kip_88 import describe_groups_response as draft
from kafka_msgs.errors import BrokerError
from tests.recorders.broker import java_command
from tests.support.cluster_topics import make_topics, new_name
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.shared_cluster import BreakableCluster

OWN = new_name("clients")

TOPIC: Final = f"{OWN}-orders"
BOTH: Final = (TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1))
OLD: Final = TopicPartition(f"{OWN}-payments", 0)
CONSOLE: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SHARE: Final = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
TYPES: Final = {"classic": GroupType.CLASSIC, "consumer": GroupType.CONSUMER}


@pytest.fixture(scope="module")
def admin(kafka_cluster: ClusterAddresses) -> Iterator[Admin]:
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        make_topics(kafka_cluster, NewTopic(TOPIC, 2), NewTopic(OLD.topic, 1))
        yield admin


@contextmanager
def running(tool: str, cluster: ClusterAddresses, *arguments: str) -> Iterator[None]:
    """Run one of Kafka's console consumers, and kill it at the end."""
    java = java_command(
        tool, ["--bootstrap-server", cluster.bootstrap_servers, "--topic", TOPIC, *arguments], heap_mb=64
    )
    process = subprocess.Popen(
        ["timeout", "--signal=KILL", "120", *java],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def settled(admin: Admin, group_id: str, members: int = 1) -> GroupDescription:
    """Wait until a group is stable and its members own both partitions; return its description."""
    found: list[GroupDescription] = []

    def stable() -> bool:
        group = admin.describe_groups([group_id]).ok.get(group_id)
        if not isinstance(group, GroupDescription) or len(group.members) != members:
            return False
        found.append(group)
        owned = sorted(each for member in group.members for each in member.assignment)
        return group.state is GroupState.STABLE and owned == list(BOTH)

    until(stable)
    return found[-1]


def check(admin: Admin, group: GroupDescription, kind: GroupType) -> None:
    """Check that the description and the listing agree, and that the description identifies the members."""
    assert group.type is kind
    assert group.coordinator is not None
    assert group.coordinator.id == admin.find_coordinators([group.group_id])[group.group_id]
    (listed,) = (each for each in admin.list_groups(types=[kind]) if each.group_id == group.group_id)
    assert (listed.type, listed.state) == (kind, GroupState.STABLE)
    for member in group.members:
        assert (member.subscribed_topics, member.problem) == ((TOPIC,), None)
        assert member.client_host == "/127.0.0.1"
        assert (member.epoch is None) == (kind is GroupType.CLASSIC)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_kafkas_own_consumer(kafka_cluster: ClusterAddresses, admin: Admin, protocol: str) -> None:
    group_id = f"{OWN}-java-{protocol}"
    properties = (f"group.protocol={protocol}", f"client.id=java-{protocol}")
    options = [word for each in properties for word in ("--command-property", each)]
    with running(CONSOLE, kafka_cluster, "--group", group_id, *options):
        group = settled(admin, group_id)
        check(admin, group, TYPES[protocol])
        printed = kafka_cluster.consumer_groups("--describe", "--group", group_id, "--members", "--verbose")
    assert [member.client_id for member in group.members] == [f"java-{protocol}"]
    assert group.members[0].member_id in printed
    assert group.assignor in {"range", "uniform"}


def test_a_share_group_of_kafkas_own_consumer(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    with running(SHARE, kafka_cluster, "--group", f"{OWN}-share"):
        group = settled(admin, f"{OWN}-share")
        check(admin, group, GroupType.SHARE)
    assert admin.describe_share_groups([f"{OWN}-share"])[f"{OWN}-share"].assignor == "simple"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_librdkafka(kafka_cluster: ClusterAddresses, admin: Admin, protocol: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka is not installed")
    group_id = f"{OWN}-librdkafka-{protocol}"
    config = {"bootstrap.servers": kafka_cluster.bootstrap_servers, "group.id": group_id, "group.protocol": protocol}
    consumer = confluent_kafka.Consumer({**config, "client.id": "librdkafka"})
    try:
        consumer.subscribe([TOPIC])
        until(lambda: consumer.poll(0.2) is None and len(consumer.assignment()) == 2)
        check(admin, settled(admin, group_id), TYPES[protocol])
    finally:
        consumer.close()
    until(lambda: not admin.describe_consumer_groups([group_id])[group_id].members)


@pytest.mark.skipif(importlib.util.find_spec("aiokafka") is None, reason="NOT RUN: aiokafka is not installed")
def test_a_group_of_aiokafka_on_the_same_loop(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    from aiokafka import AIOKafkaConsumer

    async def describe() -> GroupDescription:
        servers = kafka_cluster.bootstrap_servers
        consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=servers, group_id=f"{OWN}-aiokafka", client_id="aio")
        await consumer.start()
        try:
            async with AsyncAdmin(servers) as on_loop:
                return (await on_loop.describe_consumer_groups([f"{OWN}-aiokafka"]))[f"{OWN}-aiokafka"]
        finally:
            await consumer.stop()

    group = asyncio.run(describe())
    assert (group.type, group.state) == (GroupType.CLASSIC, GroupState.STABLE)
    assert [(each.client_id, each.subscribed_topics, each.assignment) for each in group.members] == [
        ("aio", (TOPIC,), BOTH)
    ]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a9_b12_a_group_that_reads_only_some_topics_gives_all_of_its_offsets(
    kafka_cluster: ClusterAddresses, admin: Admin, protocol: Literal["classic", "consumer"]
) -> None:
    """B9 as well: compared with the assignment, the offsets show which partition has no owner."""
    group_id = f"{OWN}-partly-{protocol}"
    admin.alter_group_offsets(group_id, {BOTH[0]: 0, BOTH[1]: 0, OLD: 42}).all()
    with Consumer(kafka_cluster.bootstrap_servers, group_id=group_id, group_protocol=protocol) as consumer:
        consumer.subscribe([TOPIC])
        until(lambda: len(consumer.poll(timeout=0.2)) == 0 and len(consumer.assignment) == 2)
        offsets = admin.list_group_offsets(group_id).all()
        (described,) = admin.describe_consumer_groups([group_id]).all().values()
        assert {partition: each.offset for partition, each in offsets.items()} == {BOTH[0]: 0, BOTH[1]: 0, OLD: 42}
        owned = {each for member in described.members for each in member.assignment}
        assert offsets.keys() - owned == {OLD}
        (refused,) = admin.alter_group_offsets(group_id, {OLD: 43}).errors.values()
        assert isinstance(refused, BrokerError)
        assert len(admin.describe_consumer_groups([group_id])[group_id].members) == 1
    admin.alter_group_offsets(group_id, {OLD: 43}).all()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_c7_c8_what_the_rejected_draft_would_have_said_is_known_from_two_requests(
    kafka_cluster: ClusterAddresses, admin: Admin, protocol: Literal["classic", "consumer"]
) -> None:
    """The draft adds offsets to the group description: for all assigned partitions, and for empty groups."""
    group_id = f"{OWN}-drafted-{protocol}"

    def described() -> tuple[set[TopicPartition], draft.Group]:
        (group,) = admin.describe_consumer_groups([group_id]).all().values()
        offsets = admin.list_group_offsets(group_id).all()
        message = draft.Group(
            group_id=group_id,
            state=group.state.value,
            members=tuple(draft.Member(member_id=each.member_id) for each in group.members),
            offsets=tuple(draft.Offset(topic=t, partition=n, offset=each.offset) for (t, n), each in offsets.items()),
        )
        assigned = {partition for each in group.members for partition in each.assignment}
        response = draft.DescribeGroupsResponse(groups=(message,))
        assert draft.DescribeGroupsResponse.decode(response.encode(1), 1) == response
        return assigned, message

    admin.alter_group_offsets(group_id, {OLD: 42}).all()
    with Consumer(kafka_cluster.bootstrap_servers, group_id=group_id, group_protocol=protocol) as consumer:
        consumer.subscribe([TOPIC])
        until(lambda: len(consumer.poll(timeout=0.2)) == 0 and len(consumer.assignment) == 2)
        for each in BOTH:
            consumer.position(each)
        consumer.commit()
        assigned, message = described()
    offsets = {TopicPartition(each.topic, each.partition) for each in message.offsets}
    assert offsets > assigned == set(BOTH)
    until(lambda: not admin.describe_consumer_groups([group_id])[group_id].members)
    _, message = described()
    assert (message.state, message.members, len(message.offsets)) == ("Empty", (), 3)


def test_b5_a_real_coordinator_moves(breakable_kafka_cluster: BreakableCluster) -> None:
    partition = TopicPartition(new_name("moves"), 0)
    with Admin(breakable_kafka_cluster.bootstrap_servers) as admin:
        make_topics(breakable_kafka_cluster, NewTopic(partition.topic, assignments={0: [1, 2, 3]}))
        names = [new_name("moves") for _ in range(9)]
        for number, name in enumerate(names):
            admin.alter_group_offsets(name, {partition: number}).all()
        before = admin.find_coordinators(names).all()
        gone = before[names[0]]
        breakable_kafka_cluster.kill(gone)
        expected = {name: {partition: number} for number, name in enumerate(names)}

        def found() -> dict[str, dict[TopicPartition, int]]:
            groups = admin.list_offsets_of_groups(dict.fromkeys(names), timeout=60).all()
            return {name: {place: offsets[place].offset for place in offsets} for name, offsets in groups.items()}

        # A new coordinator responds from replicated records, so an offset may be missing for a short time.
        until(lambda: found() == expected)
        after = admin.find_coordinators(names).all()
        assert gone not in after.values()
        assert all(after[name] == node for name, node in before.items() if node != gone)
