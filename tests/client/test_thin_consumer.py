"""The thin consumer of Kafka's design for 0.9, on today's protocol; each test has the number of its requirement.

Most consumers run on an in-memory cluster, which exposes every request and simulates time. Tests of broker behaviour
use real brokers. Coordinator state (D10 to D12) is outside the scope of a client. The layouts of the design (D18, D21)
are drafts; today's protocol covers the parts that the design omits (D22).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_msgs.client import Client, TopicPartition
from kafka_msgs.client.config_loading import load_config
from kafka_msgs.client.consumer import ConsumerConfig
from kafka_msgs.client.consumer.config import CONSUMER, parse_consumer_properties
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_msgs.records import ConsumerRecord
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.simulated_groups import GroupCluster, User
from tests.support.simulated_network import apis

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


@pytest.fixture
def cluster() -> Iterator[GroupCluster]:
    """A cluster with two topics; each partition of ``t`` has ten records in two batches."""
    made = GroupCluster({"t": 3, "u": 2})
    for number in range(3):
        for batch in range(2):
            made.produce("t", number, [b"%d-%d" % (number, 5 * batch + each) for each in range(5)])
    yield made
    assert made.network.task_count == 0, "a piece of logic is left behind"


def everything(*partitions: int) -> list[bytes]:
    """Return the values of all records of some partitions of ``t``."""
    return sorted(b"%d-%d" % (number, each) for number in partitions for each in range(10))


def test_d1_the_consumer_needs_the_codec_and_a_network_only() -> None:
    code = "import kafka_msgs.client.consumer, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    parts = {name.split(".")[1] for name in loaded if name.startswith("kafka_msgs.")}
    assert not parts & {"broker", "groups", "log", "topics", "admin", "cli", "spark", "capture", "columns"}
    assert not {"pyarrow", "confluent_kafka", "aiokafka", "kafka"} & set(loaded)


def test_d2_records_carry_offset_partition_and_key_beside_the_value(cluster: GroupCluster) -> None:
    user = User(cluster, group_id=None)
    user.core.set_partitions([T1])
    user.core.seek({T1: 7})
    first = user.poll()[0]
    assert first == ConsumerRecord(7, 1_007, b"key", b"1-7", (("h", b"1"),), "t", 1)
    user.close()


def test_d3_the_loop_of_the_design_reads_everything_and_commits(cluster: GroupCluster) -> None:
    properties = {"bootstrap.servers": "b1:9092", "group.id": "g", "auto.offset.reset": "earliest"}
    client, settings = load_config(properties, {}, CONSUMER)
    assert (str(client.bootstrap_servers[0]), settings["group_id"]) == ("b1:9092", "g")
    consumer = User(cluster, **settings)
    consumer.core.subscribe(["t"])
    processed: list[bytes] = []
    while len(processed) < 30:
        processed += [bytes(record.value or b"") for record in consumer.poll(1.0)]
        consumer.commit()
    assert sorted(processed) == everything(0, 1, 2)
    assert cluster.committed == {("g", "t", number): 10 for number in range(3)}
    consumer.close()
    again = User(cluster)
    again.core.subscribe(["t"])
    assert again.poll() == []
    again.close()


@pytest.mark.parametrize("assignors", ["range", "cooperative-sticky"])
def test_d4_the_function_for_revocation_runs_before_it_takes_effect_and_may_commit(
    cluster: GroupCluster, assignors: str
) -> None:
    first, second = User(cluster, assignors=assignors), User(cluster, assignors=assignors)
    seen: list[tuple[frozenset[TopicPartition], list[TopicPartition]]] = []

    def on_revoked(partitions: list[TopicPartition]) -> None:
        seen.append((first.core.partitions.names, partitions))
        first.commit()

    first.core.subscribe(["t"], on_revoked=on_revoked)
    assert first.values(30) == everything(0, 1, 2)
    assert cluster.committed == {}
    second.core.subscribe(["t"])
    rest: list[ConsumerRecord] = []
    for _ in range(10):
        rest += [*first.poll(1.0), *second.poll(1.0)]
    assert second.core.partitions.names
    assert rest == [], "what was committed is not read again"
    assert cluster.committed == {("g", "t", number): 10 for number in range(3)}
    had, revoked = seen[0]
    assert had == {T0, T1, T2} >= set(revoked)
    assert (set(revoked) == had) == (assignors == "range")
    first.close()
    second.close()


def test_d5_the_function_for_assignment_sets_positions_before_anything_is_fetched(cluster: GroupCluster) -> None:
    user = User(cluster)
    assigned: list[list[TopicPartition]] = []

    def on_assigned(partitions: list[TopicPartition]) -> None:
        assigned.append(partitions)
        stored = {T0: 3, T1: 4, T2: 9}
        assert stored.keys() == set(partitions)
        user.core.seek(stored)

    user.core.subscribe(["t"], on_assigned=on_assigned)
    user.poll()
    assert assigned == [[T0, T1, T2]]
    first = {(topic, number): offset for topic, number, offset in reversed(cluster.fetched)}
    assert first == {T0: 3, T1: 4, T2: 9}
    user.close()


def test_d6_positions_kept_by_the_user_are_never_asked_of_kafka(cluster: GroupCluster) -> None:
    stored: dict[TopicPartition, int] = {}
    for _ in range(2):
        user = User(cluster, offsets_storage="external")

        def on_assigned(partitions: list[TopicPartition], user: User = user) -> None:
            user.core.seek({each: stored.get(each, 5) for each in partitions})

        def on_revoked(partitions: list[TopicPartition], user: User = user) -> None:
            stored.update({each: user.position(each) for each in partitions})

        user.core.subscribe(["t"], on_assigned=on_assigned, on_revoked=on_revoked)
        found = user.values(15) if not stored else user.values(1)
        assert len(found) == (15 if not stored else 0)
        with pytest.raises(OptionError, match="outside of Kafka"):
            user.commit()
        user.close()
    assert stored == {T0: 10, T1: 10, T2: 10}
    assert not {"OffsetFetch", "OffsetCommit"} & set(apis(cluster.requests))


def hash_of(group: str) -> int:
    """Return the absolute value of the hash of an ASCII text in Java (Kafka's ``Utils.abs``)."""
    found = 0
    for unit in group.encode("ascii"):
        found = (31 * found + unit) & 0xFFFFFFFF
    return min(found, 2**32 - found)


def test_d7_d8_d17_every_broker_names_the_leader_of_the_groups_partition(kafka_cluster: ClusterAddresses) -> None:
    groups = [f"thin-{number}" for number in range(8)]
    with Client(kafka_cluster.bootstrap_servers) as client:
        client.call(OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=groups[0]),)))  # makes the topic
        request = MetadataRequest(topics=(MetadataRequestTopic(name="__consumer_offsets"),))
        (topic,) = client.call(request).topics
        leaders = {each.partition_index: each.leader_id for each in topic.partitions}
        expected = {group: leaders[hash_of(group) % len(leaders)] for group in groups}
        for node in kafka_cluster.nodes:
            answer = client.call(FindCoordinatorRequest(coordinator_keys=tuple(groups)), broker_id=node)
            assert {each.key: each.node_id for each in answer.coordinators} == expected
    assert len(set(expected.values())) > 1, "one broker asked about groups of another"


def test_d9_a_broker_that_does_not_coordinate_a_group_refuses_its_members(kafka_cluster: ClusterAddresses) -> None:
    with Client(kafka_cluster.bootstrap_servers) as client:
        client.call(OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="thin"),)))
        (found,) = client.call(FindCoordinatorRequest(coordinator_keys=("thin",))).coordinators
        others = [node for node in kafka_cluster.nodes if node != found.node_id]
        request = HeartbeatRequest(group_id="thin", generation_id=1, member_id="m")
        for node in others:
            assert client.call(request, broker_id=node).error_code == ErrorCode.NOT_COORDINATOR
        assert client.call(request, broker_id=found.node_id).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_d13_without_a_subscription_a_poll_is_empty_and_asks_nobody(cluster: GroupCluster) -> None:
    user = User(cluster)
    assert [user.poll() for _ in range(3)] == [[], [], []]
    assert cluster.requests == []
    assert cluster.network.connections == 0
    user.close()


def test_d14_explicit_partitions_need_no_coordinator(cluster: GroupCluster) -> None:
    user = User(cluster, group_id=None)
    user.core.set_partitions([T0, T2])
    assert user.values(20) == everything(0, 2)
    assert set(apis(cluster.requests)) == {"Metadata", "ListOffsets", "Fetch"}
    user.close()


def test_d15_a_subscription_finds_the_coordinator_first_and_the_same_one_again_sends_nothing(
    cluster: GroupCluster,
) -> None:
    user = User(cluster)
    user.core.subscribe(["t"])
    user.values(30)
    names = [name for broker in cluster.brokers.values() for name in apis(broker.requests)]
    assert names.count("FindCoordinator") == 1
    assert names.count("JoinGroup") == 2  # the first one only gets a member id
    assert apis(cluster.brokers[1].requests)[0] in ("FindCoordinator", "Metadata")
    user.core.subscribe(["t"])
    user.poll(2.0)
    again = [name for broker in cluster.brokers.values() for name in apis(broker.requests)]
    assert again.count("JoinGroup") == 2
    user.core.subscribe(["t", "u"])
    user.poll(2.0)
    assert {each.topic for each in user.core.partitions.names} == {"t", "u"}
    user.close()


def test_d16_the_client_id_has_a_default_and_the_coordinator_gives_out_member_ids(cluster: GroupCluster) -> None:
    users = [User(cluster), User(cluster)]
    for user in users:
        user.core.subscribe(["t"])
    for _ in range(6):
        for user in users:
            user.poll(0.5)
    ids = {user.core.state.identity.member_id for user in users}
    assert ids == set(cluster.group("g").members)
    assert len(ids) == 2
    frames = [frame for broker in cluster.brokers.values() for frame in broker.frames]
    assert {frame.header.client_id for frame in frames} == {"kafka-msgs"}
    for user in users:
        user.close()


def test_d19_a_silent_member_is_removed_and_a_lost_coordinator_is_found_again(cluster: GroupCluster) -> None:
    quick: dict[str, Any] = {"session_timeout": 6.0, "heartbeat_frequency": 3, "assignors": "cooperative-sticky"}
    silent, living = User(cluster, **quick), User(cluster, **quick)
    for user in (silent, living):
        user.core.subscribe(["t"])
    for _ in range(8):
        silent.poll(0.5)
        living.poll(0.5)
    assert len(cluster.group("g").members) == 2
    silent.crash()
    for _ in range(10):
        living.poll(1.0)
    assert set(cluster.group("g").members) == {living.core.state.identity.member_id}
    assert living.core.partitions.names == {T0, T1, T2}
    beats = apis(cluster.brokers[2].requests).count("Heartbeat")
    cluster.network.stop(cluster.brokers[2])  # the coordinator moves to another broker with its state
    cluster.coordinator = 3
    for _ in range(10):
        living.poll(1.0)
    assert apis(cluster.brokers[2].requests).count("Heartbeat") == beats
    assert "Heartbeat" in apis(cluster.brokers[3].requests)
    assert living.core.partitions.names == {T0, T1, T2}, "the member stayed in its group"
    living.close()


@pytest.mark.parametrize("frequency", [1, 2.5, 0, -3, True])
def test_d20_the_heartbeat_frequency_is_a_whole_number_above_one(frequency: Any) -> None:
    assert ConsumerConfig(session_timeout=30.0, heartbeat_frequency=3).heartbeat_interval == 10.0
    with pytest.raises(OptionError, match="heartbeat_frequency"):
        ConsumerConfig(session_timeout=30.0, heartbeat_frequency=frequency)


def test_d20_kafkas_interval_becomes_a_frequency() -> None:
    found = parse_consumer_properties({"session.timeout.ms": "30000", "heartbeat.interval.ms": "10000"})
    assert ConsumerConfig(**found).heartbeat_interval == 10.0
    with pytest.raises(OptionError, match=r"heartbeat\.interval\.ms"):
        parse_consumer_properties({"session.timeout.ms": "30000", "heartbeat.interval.ms": "30000"})


def test_d20_heartbeats_leave_once_per_interval_while_a_poll_waits(cluster: GroupCluster) -> None:
    user = User(cluster, session_timeout=30.0, heartbeat_frequency=3)
    user.core.subscribe(["t"])
    user.values(30)
    user.poll(101.0)
    assert apis(cluster.requests).count("Heartbeat") == 10
    user.close()
