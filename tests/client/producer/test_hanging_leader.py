"""A leader that accepts connections without responding, and whose partitions move to another broker."""

from __future__ import annotations

import time

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.faults import Fault, NeverRespond
from kafka_msgs.client import Producer
from kafka_msgs.testing import new_topic

_FIRST, _SECOND = 0, 1


def test_a_producer_follows_the_leader_while_a_connection_attempt_hangs() -> None:
    with EmbeddedBroker(brokers=2) as broker:
        topic = new_topic(broker, replicas=2)
        broker.move_leader(topic, 0, _FIRST)
        hanging = broker.faults.add(Fault(NeverRespond(), api=ApiKey.API_VERSIONS, broker=_FIRST, times=None))
        second = broker.bootstrap_servers.split(",")[_SECOND]
        with Producer(second, request_timeout=60.0, connect_timeout=60.0, retry_backoff_max=0.2) as producer:
            delivery = producer.send(topic, b"tea")
            while not hanging.hits:
                time.sleep(0.01)
            broker.move_leader(topic, 0, _SECOND)
            assert delivery.result(timeout=20).offset == 0


def test_metadata_is_not_requested_from_a_leader_that_does_not_answer() -> None:
    """The leader stops answering, also on its idle connections: a producer asks another broker for the new leader."""
    with EmbeddedBroker(brokers=2) as broker:
        topic = new_topic(broker, replicas=2)
        broker.move_leader(topic, 0, _FIRST)
        first = broker.bootstrap_servers.split(",")[_FIRST]
        with Producer(first, request_timeout=1.0, linger=0.0) as producer:
            producer.send_and_wait(topic, b"tea")
            faults = [
                broker.faults.add(Fault(NeverRespond(), api=api, broker=_FIRST, times=None))
                for api in (ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.API_VERSIONS)
            ]
            delivery = producer.send(topic, b"coffee")
            while not faults[0].hits:
                time.sleep(0.01)
            broker.move_leader(topic, 0, _SECOND)
            assert delivery.result(timeout=20).offset == 1
            assert faults[1].hits == 0
