"""Topics that are created, deleted and recreated during consumption, in both group protocols."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import ClientConfig, Consumer, Producer, TopicPartition
from kafka_msgs.errors import UnknownTopicError
from tests.support.simulated_groups import GroupCluster, User

PROTOCOLS = ["classic", "consumer"]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """An embedded broker for all tests of this module."""
    configs = {"group.initial.rebalance.delay.ms": "0", "group.consumer.heartbeat.interval.ms": "1000"}
    configs["group.consumer.min.heartbeat.interval.ms"] = "1000"
    with EmbeddedBroker(configs=configs) as broker:
        yield broker


@pytest.fixture(scope="module")
def servers(broker: EmbeddedBroker) -> str:
    """The address of the broker."""
    return broker.bootstrap_servers


def consumer(servers: str, group: str, protocol: Any, **options: Any) -> Consumer:
    """Return a consumer that refreshes its metadata often."""
    config = ClientConfig(bootstrap_servers=servers, metadata_max_age=0.3)
    return Consumer(config, group_id=group, group_protocol=protocol, auto_offset_reset="earliest", **options)


def create(servers: str, topic: str, values: list[bytes]) -> None:
    """Create a topic with some records."""
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 1)]).all()
    with Producer(servers) as producer:
        for value in values:
            producer.send(topic, value)


def delete(servers: str, topic: str) -> None:
    """Delete a topic."""
    with Admin(servers) as admin:
        admin.delete_topics([topic]).all()


def read(member: Consumer, count: int) -> list[bytes]:
    """Poll until ``count`` records have arrived."""
    found: list[bytes] = []
    eventually(lambda: len(found) >= count, lambda: found.extend(bytes(each.value or b"") for each in member.poll(0.2)))
    return found


def eventually(holds: Callable[[], bool], go_on: Callable[[], object]) -> None:
    """Call ``go_on`` until the condition holds. Fails after 30 seconds."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        go_on()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_is_created_after_the_subscription_is_read(servers: str, protocol: str) -> None:
    topic = f"late-{protocol}"
    create(servers, f"{topic}-other", [b"x"])
    with consumer(servers, topic, protocol) as member:
        member.subscribe([topic, f"{topic}-other"])
        assert read(member, 1) == [b"x"]
        member.commit()
        create(servers, topic, [b"a", b"b"])
        assert read(member, 2) == [b"a", b"b"]


def test_an_assigned_partition_that_is_created_again_is_read_from_its_start(servers: str) -> None:
    create(servers, "assigned", [b"1", b"2", b"3"])
    with consumer(servers, "assigned", "classic") as reader:
        reader.assign([("assigned", 0)])
        assert read(reader, 3) == [b"1", b"2", b"3"]
        delete(servers, "assigned")
        create(servers, "assigned", [b"a", b"b", b"c", b"d"])
        assert read(reader, 4) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_matches_a_pattern_again_is_read_again(servers: str, protocol: str) -> None:
    with consumer(servers, f"pattern-{protocol}", protocol) as member:
        member.subscribe(pattern=re.compile(f"^matching-{protocol}-.*"))
        create(servers, f"matching-{protocol}-1", [b"1"])
        assert read(member, 1) == [b"1"]
        delete(servers, f"matching-{protocol}-1")
        eventually(lambda: not member.assignment, lambda: member.poll(0.2))
        create(servers, f"matching-{protocol}-1", [b"2"])
        create(servers, f"matching-{protocol}-2", [b"3"])
        # Without commits, a rebalance for the second topic may reset the position in the first one.
        found: set[bytes] = set()
        eventually(lambda: {b"2", b"3"} <= found, lambda: found.update(read(member, 1)))
        assert found == {b"2", b"3"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_whose_topic_is_deleted_becomes_stable_without_it(servers: str, protocol: str) -> None:
    topic = f"deleted-{protocol}"
    create(servers, topic, [b"1"])
    create(servers, f"{topic}-kept", [b"2"])
    with consumer(servers, topic, protocol) as member, Admin(servers) as admin:
        member.subscribe([topic, f"{topic}-kept"])
        assert sorted(read(member, 2)) == [b"1", b"2"]
        delete(servers, topic)
        eventually(lambda: {each.topic for each in member.assignment} == {f"{topic}-kept"}, lambda: member.poll(0.2))

        def is_stable() -> bool:
            (found,) = (each for each in admin.list_groups().all() if each.group_id == topic)
            return str(found.state).upper().endswith("STABLE")

        eventually(is_stable, lambda: member.poll(0.2))


def test_a_partition_of_an_unknown_topic_is_an_error_after_some_time(servers: str) -> None:
    config = ClientConfig(bootstrap_servers=servers, metadata_max_age=0.3, timeout=1.0)
    with Consumer(config) as reader:
        reader.assign([("nowhere", 0)])
        with pytest.raises(UnknownTopicError, match="clients do not create topics"):
            read(reader, 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_subscription_to_an_unknown_topic_is_logged_once(
    servers: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    with consumer(servers, f"unknown-{protocol}", protocol) as member:
        member.subscribe(["nowhere"])
        for _ in range(5):
            assert member.poll(0.3) == []
    logged = [each.getMessage() for each in caplog.records if "nowhere" in each.getMessage()]
    assert len(logged) == 1
    assert "clients do not create topics" in logged[0]


def subscribe(member: Consumer, kind: str, topic: str) -> None:
    """Subscribe to a topic by its name, in a list of topics, or by a pattern."""
    if kind == "pattern":
        member.subscribe(pattern=re.compile(f"^{topic}$"))
    else:
        member.subscribe([topic, "never-created"] if kind == "list" else [topic])


@pytest.mark.parametrize("kind", ["name", "list", "pattern"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_is_created_again_is_read_from_its_start_by_a_group(
    servers: str, protocol: str, kind: str
) -> None:
    topic = f"again-{protocol}-{kind}"
    create(servers, topic, [b"1", b"2", b"3"])
    with consumer(servers, topic, protocol, auto_commit=kind == "name") as member:
        subscribe(member, kind, topic)
        assert read(member, 3) == [b"1", b"2", b"3"]
        member.commit()
        delete(servers, topic)
        create(servers, topic, [b"a", b"b", b"c", b"d", b"e"])
        assert read(member, 5) == [b"a", b"b", b"c", b"d", b"e"]


@pytest.mark.parametrize("kind", ["name", "list", "pattern"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_that_are_added_are_read(servers: str, protocol: str, kind: str) -> None:
    topic = f"grown-{protocol}-{kind}"
    create(servers, topic, [b"1"])
    with consumer(servers, topic, protocol) as member, Admin(servers) as admin, Producer(servers) as producer:
        subscribe(member, kind, topic)
        assert read(member, 1) == [b"1"]
        member.commit()
        admin.create_partitions({topic: 2}).all()
        eventually(lambda: len(member.assignment) == 2, lambda: member.poll(0.2))
        producer.send(topic, b"2", partition=1).result()
        assert read(member, 1) == [b"2"]


def test_topics_that_match_a_pattern_of_the_broker_are_read_also_when_they_are_created_again(
    broker: EmbeddedBroker, servers: str
) -> None:
    create(servers, "resolved-1", [b"1"])
    with consumer(servers, "resolved", "consumer") as member:
        member.subscribe(pattern="^resolved-.*")
        assert read(member, 1) == [b"1"]
        delete(servers, "resolved-1")
        create(servers, "resolved-1", [b"a", b"b"])
        create(servers, "resolved-2", [b"c"])
        found: list[bytes] = []

        def poll_later() -> None:
            broker.jump_clock(11_000)
            found.extend(bytes(each.value or b"") for each in member.poll(0.5))

        eventually(lambda: len(found) == 3, poll_later)
        assert sorted(found) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_commit_of_a_deleted_topic_does_not_become_that_of_the_topic_that_replaced_it(
    servers: str, protocol: str
) -> None:
    topic = f"replaced-{protocol}"
    create(servers, topic, [b"1", b"2", b"3"])
    with consumer(servers, topic, protocol, auto_commit=True) as member:
        member.subscribe([topic])
        assert read(member, 3) == [b"1", b"2", b"3"]
        delete(servers, topic)
        create(servers, topic, [b"a", b"b", b"c", b"d"])
    with consumer(servers, topic, protocol) as member:
        member.subscribe([topic])
        assert read(member, 4) == [b"a", b"b", b"c", b"d"]


def test_the_coordinator_deletes_the_offsets_of_a_deleted_topic(servers: str) -> None:
    create(servers, "forgotten", [b"1"])
    create(servers, "remembered", [b"1"])
    with consumer(servers, "offsets", "classic") as reader, Admin(servers) as admin:
        reader.commit({TopicPartition("forgotten", 0): 1, TopicPartition("remembered", 0): 1})
        delete(servers, "forgotten")
        create(servers, "forgotten", [b"1", b"2"])
        assert set(admin.list_group_offsets("offsets")) == {TopicPartition("remembered", 0)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_transaction_cannot_commit_offsets_of_a_deleted_topic(servers: str, protocol: str) -> None:
    """A16: with names, the offset of the deleted topic would skip the records of the new one (KIP-1319)."""
    topic = f"transactional-{protocol}"
    create(servers, topic, [b"1", b"2", b"3"])
    with (
        consumer(servers, topic, protocol) as member,
        Producer(servers, transactional_id=topic) as producer,
        Admin(servers) as admin,
    ):
        producer.init_transactions()
        member.subscribe([topic])
        assert read(member, 3) == [b"1", b"2", b"3"]
        place, group = TopicPartition(topic, 0), member.group_metadata
        delete(servers, topic)
        create(servers, topic, [b"a", b"b", b"c", b"d"])
        with pytest.raises(UnknownTopicError), producer.transaction():
            producer.send_offsets_to_transaction({place: 3}, group)
        assert not admin.list_group_offsets(topic)
        assert read(member, 4) == [b"a", b"b", b"c", b"d"]
        with producer.transaction():
            producer.send_offsets_to_transaction({place: 4}, member.group_metadata)
        assert admin.list_group_offsets(topic)[place].offset == 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_record_of_a_deleted_topic_cannot_be_committed_after_the_client_knows_the_new_topic(
    servers: str, protocol: str
) -> None:
    topic = f"record-{protocol}"
    create(servers, topic, [b"1", b"2", b"3"])
    with consumer(servers, topic, protocol) as member, Admin(servers) as admin:
        member.subscribe([topic])
        records: list[Any] = []
        eventually(lambda: len(records) >= 3, lambda: records.extend(member.poll(0.2)))
        delete(servers, topic)
        create(servers, topic, [b"a", b"b"])
        member.partitions_for_topic(topic)
        with pytest.raises(UnknownTopicError):
            member.commit(records[-1])
        commit = member.commit_nowait({TopicPartition(topic, 0): 3})
        eventually(lambda: commit.done, lambda: time.sleep(0.01))
        with pytest.raises(UnknownTopicError):
            commit.result()
        assert not admin.list_group_offsets(topic)
        assert read(member, 2) == [b"a", b"b"]
        member.commit()
        assert admin.list_group_offsets(topic)[TopicPartition(topic, 0)].offset == 2


def test_metadata_of_a_new_topic_that_another_call_fetched_restart_the_partition() -> None:
    """On simulated time: the consumer is paused, so that no fetch fails with an unknown topic id first."""
    cluster = GroupCluster({"t": 1})
    cluster.produce("t", 0, [b"1", b"2", b"3"])
    user, place = User(cluster), TopicPartition("t", 0)
    user.core.subscribe(["t"])
    assert user.values(3) == [b"1", b"2", b"3"]
    user.core.pause([place], paused=True)
    cluster.network.pass_time(2.0)
    cluster.recreate("t")
    cluster.produce("t", 0, [b"a", b"b", b"c", b"d", b"e"])
    cluster.network.run(user.core.positions.partitions_of("t", cluster.network.time + 5))
    user.core.pause([place], paused=False)
    assert user.values(5) == [b"a", b"b", b"c", b"d", b"e"]
    user.close()


def test_an_automatic_commit_commits_nothing_of_a_deleted_topic() -> None:
    """On simulated time: the metadata changes between the poll and the automatic commit at the end."""
    cluster = GroupCluster({"t": 1})
    cluster.produce("t", 0, [b"1", b"2", b"3"])
    user = User(cluster, auto_commit=True)
    user.core.subscribe(["t"])
    assert user.values(3) == [b"1", b"2", b"3"]
    cluster.recreate("t")
    cluster.network.run(user.core.positions.partitions_of("t", cluster.network.time + 5))
    user.close()
    assert cluster.committed == {}


def test_a_position_of_a_topic_that_was_created_again_belongs_to_the_new_topic() -> None:
    """On simulated time: a program that sends all positions with each transaction continues, without a new record."""
    cluster, place = GroupCluster({"t": 1}), TopicPartition("t", 0)
    cluster.produce("t", 0, [b"1", b"2"])
    user = User(cluster)
    user.core.subscribe(["t"])
    assert user.values(2) == [b"1", b"2"]
    old = user.core.positions.group_metadata().topic_ids[place]
    cluster.recreate("t")
    cluster.network.pass_time(2.0)
    assert user.core.positions.group_metadata().topic_ids[place] == old
    assert user.position(place) == 0
    assert user.core.positions.group_metadata().topic_ids[place] == cluster.topic_id("t") != old
    user.close()
