"""Offsets committed in a transaction for valid and invalid topics: the embedded broker responds like a real one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Client
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_msgs.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_msgs.testing import new_topic
from tests.support.cluster_topics import new_name
from tests.support.cluster_topics import new_topic as new_topic_of_kafka
from tests.support.kafka_cluster import ClusterAddresses

NOWHERE: Final = UUID(int=7)
FIRST_WITH_IDS: Final = 6
VERSIONS: Final = range(7)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker
        assert broker.problems == []


def answers(servers: str, topic: str) -> list[Any]:
    """Return the responses in each version to a commit for one existing and three missing partitions."""
    found = []
    with Client(servers) as client:
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
        topic_id = client.call(asked).topics[0].topic_id
        transactional_id = new_name("offsets")
        producer = client.call(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000))
        for version in VERSIONS:
            by_id = version >= FIRST_WITH_IDS
            places = (
                ({"topic_id": topic_id}, {"topic_id": NOWHERE}) if by_id else ({"name": topic}, {"name": "nowhere"})
            )
            partitions = tuple(
                TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
                for index in (0, 5)
            )
            request = TxnOffsetCommitRequest(
                transactional_id=transactional_id,
                group_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                topics=tuple(TxnOffsetCommitRequestTopic(**place, partitions=partitions) for place in places),
            )
            found.append(
                [
                    (each.topic_id == topic_id, each.name == topic, each.partitions)
                    for each in client.call(request, version=version).topics
                ]
            )
    return found


def test_topics_are_found_by_name_and_by_id(broker: EmbeddedBroker, kafka_cluster: ClusterAddresses) -> None:
    ours = answers(broker.bootstrap_servers, new_topic(broker))
    theirs = answers(kafka_cluster.bootstrap_servers, new_topic_of_kafka(kafka_cluster))
    assert ours == theirs
