"""Topics of one partition, for tests of clients."""

from __future__ import annotations

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.client import Consumer, TopicPartition

__all__ = ["create_topic", "values"]


def create_topic(servers: str, request: pytest.FixtureRequest) -> str:
    """Create a topic of one partition with the name of the test, and return the name."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(name, 1)]).all()
    return name


def values(servers: str, topic: str) -> list[bytes]:
    """Return the values of a topic, in order."""
    partition = TopicPartition(topic, 0)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        found: list[bytes] = []
        while consumer.position(partition) < end:
            found += [bytes(record.value or b"") for record in consumer.poll(1.0)]
    return found
