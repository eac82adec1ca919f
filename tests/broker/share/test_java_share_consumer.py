"""Kafka's own share consumer with embedded brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kafka_msgs.admin import Admin, ConfigChange, ConfigResource
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Producer
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.testing import new_topic
from tests.support.share_members import ShareProcess, share_process

SETTINGS = {
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.min.record.lock.duration.ms": "1000",
}
EXPLICIT = {"share_acknowledgement_mode": "explicit"}


@pytest.fixture(scope="module")
def members(java_clients: None) -> Iterator[ShareProcess]:
    """Yield a process for the members of all tests."""
    with share_process() as process:
        yield process


def configure(broker: EmbeddedBroker, group: str, **configs: str) -> None:
    """Configure a group to read from the start, with additional configs."""
    wanted = {"share_auto_offset_reset": "earliest", **configs}
    changes = [ConfigChange(name=key.replace("_", "."), value=each) for key, each in wanted.items()]
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_configs({ConfigResource(ConfigResourceType.GROUP, group): changes}).all()


def produce(broker: EmbeddedBroker, topic: str, values: Iterable[str]) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, value.encode())
        producer.flush()


def test_records_are_acknowledged_by_the_next_poll(members: ShareProcess) -> None:
    with EmbeddedBroker(brokers=2, configs=SETTINGS) as broker:
        topic = new_topic(broker, partitions=3)
        configure(broker, "implicit")
        values = [f"v{number}" for number in range(50)]
        produce(broker, topic, values)
        member = members.member(broker.bootstrap_servers, "implicit", topic)
        assert member.collect(50) == dict.fromkeys(values, 1)
        member.poll()
        member.close()
        produce(broker, topic, ["last"])
        later = members.member(broker.bootstrap_servers, "implicit", topic)
        assert later.collect(1) == {"last": 1}
        later.close()
        assert broker.problems == []


def test_members_share_records_and_say_what_becomes_of_each(members: ShareProcess) -> None:
    with EmbeddedBroker(configs=SETTINGS) as broker:
        topic = new_topic(broker)
        configure(broker, "explicit")
        one = members.member(broker.bootstrap_servers, "explicit", topic, **EXPLICIT)
        two = members.member(broker.bootstrap_servers, "explicit", topic, **EXPLICIT)
        produce(broker, topic, ["a", "b", "c"])
        assert one.collect(3) == {"a": 1, "b": 1, "c": 1}
        one.say("accept", "a")
        one.say("release", "b")
        one.say("reject", "c")
        one.commit()
        one.close()
        assert two.collect(1) == {"b": 2}
        two.say("accept", "b")
        two.commit()
        two.close()
        assert broker.problems == []


def test_records_of_a_member_that_hangs_or_crashes_go_to_another(members: ShareProcess, tmp_path: Path) -> None:
    """The group also continues after its directory is opened again.

    A busy machine may lose a lock, which adds a delivery of the record.
    """
    with EmbeddedBroker(configs=SETTINGS, directory=tmp_path) as broker, share_process() as crashing:
        topic = new_topic(broker)
        configure(broker, "crash", share_record_lock_duration_ms="3000")
        servers = broker.bootstrap_servers
        produce(broker, topic, ["a"])
        hangs = members.member(servers, "crash", topic, **EXPLICIT)
        deliveries = [hangs.collect(1)["a"]]
        crashes = crashing.member(servers, "crash", topic, **EXPLICIT)
        deliveries.append(crashes.collect(1)["a"])
        crashing.crash()
        configure(broker, "crash", share_record_lock_duration_ms="30000")
        lives = members.member(servers, "crash", topic, **EXPLICIT)
        deliveries.append(lives.collect(1)["a"])
        lives.say("release", "a")
        lives.commit()
        lives.close()
        hangs.close()
        assert broker.problems == []
    with EmbeddedBroker(configs=SETTINGS, directory=tmp_path) as broker:
        last = members.member(broker.bootstrap_servers, "crash", topic, **EXPLICIT)
        deliveries.append(last.collect(1)["a"])
        last.say("accept", "a")
        last.commit()
        last.close()
        assert broker.problems == []
    assert deliveries == sorted(set(deliveries))
