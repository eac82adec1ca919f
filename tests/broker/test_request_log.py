"""The request log: recorded requests, searches, and dropped entries."""

from __future__ import annotations

import pytest

from kafka_msgs import ErrorCode, FetchRequest, MetadataRequest, ProduceRequest
from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer
from kafka_msgs.errors import OptionError
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.testing import new_topic
from tests.support.raw_client import RawClient


def test_a_producer_asks_for_the_metadata_of_its_topic_once() -> None:
    with EmbeddedBroker(brokers=2) as broker:
        topic, other = new_topic(broker), new_topic(broker)
        with broker.requests() as log, Producer(broker.bootstrap_servers, client_id="writer") as producer:
            for number in range(20):
                producer.send(topic, b"%d" % number).result()
        assert len(log.find(api="Metadata", client_id="writer", topic=topic)) == 1
        assert log.find(topic=other) == []
        produced = log.find(api="Produce", topic=topic)
        assert len(produced) == 20
        for each in produced:
            assert isinstance(each.request, ProduceRequest)
            assert (each.errors, each.took_ms >= 0, each.client_id) == ((), True, "writer")
        leader = broker.run(lambda cluster: cluster.image.topics[topic].partitions[0].leader)
        assert {each.broker_id for each in produced} == {leader}
        assert log.find(broker_id=1 - leader, api="Produce") == []


def test_topics_are_named_that_a_request_has_by_id() -> None:
    with EmbeddedBroker() as broker:
        topic = new_topic(broker)
        with broker.requests() as log, Consumer(broker.bootstrap_servers) as consumer:
            consumer.assign([(topic, 0)])
            consumer.poll(2)
        found = [each for each in log.find(api="Fetch", topic=topic) if isinstance(each.request, FetchRequest)]
        assert found
        assert found[0].version >= 13


def test_errors_are_found_in_order() -> None:
    with EmbeddedBroker(configs={"auto.create.topics.enable": "false"}) as broker, RawClient(broker) as client:
        with broker.requests() as log:
            names = tuple(MetadataRequestTopic(name=name) for name in ("missing", "not allowed", "gone"))
            client.call(MetadataRequest(topics=names), 9)
        (entry,) = log.find(error=ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert entry.topics == ("missing", "not allowed", "gone")
        assert entry.errors == (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )


def test_a_log_ends_when_it_is_stopped_and_keeps_the_latest() -> None:
    with EmbeddedBroker() as broker, RawClient(broker) as client:
        log = broker.requests(max_requests=3)
        for _ in range(5):
            client.call(MetadataRequest(topics=()), 9)
        assert (len(log), log.dropped) == (3, 2)
        log.clear()
        log.stop()
        client.call(MetadataRequest(topics=()), 9)
        assert (len(log), log.dropped) == (0, 0)
        unstopped = broker.requests()
        with Admin(broker.bootstrap_servers) as admin:
            admin.list_topics()
    assert [each.api for each in unstopped][-1] == "Metadata"
    unstopped.stop()


def test_a_log_of_no_requests_is_refused() -> None:
    with EmbeddedBroker() as broker, pytest.raises(OptionError):
        broker.requests(max_requests=0)
