"""Consumers whose brokers never answer some requests, on an embedded in-memory cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.controller.topics import TopicToCreate
from kafka_msgs.broker.faults import Fault, NeverRespond
from kafka_msgs.client.consumer import ConsumerConfig
from kafka_msgs.client.consumer.core import ConsumerCore
from tests.support.broker_network import BrokerNetwork
from tests.support.virtual_brokers import batch

CONFIGS = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}
BOTH = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT, ApiKey.LIST_OFFSETS)
HUNG = [
    *((api, "classic") for api in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.FETCH, *BOTH)),
    *((api, "consumer") for api in (ApiKey.CONSUMER_GROUP_HEARTBEAT, *BOTH)),
]


@pytest.mark.parametrize(("api", "protocol"), HUNG, ids=lambda each: getattr(each, "name", each))
def test_a_member_outlives_requests_that_hang(api: ApiKey, protocol: Any) -> None:
    network = BrokerNetwork(1, configs=CONFIGS)
    cluster = network.cluster
    cluster.create_topic(TopicToCreate(name="t", num_partitions=1, replication_factor=1))
    log = cluster.log_manager.get((cluster.image.topics["t"].id, 0))
    assert log is not None
    client = network.core(request_timeout=2.0, timeout=8.0)
    settings = ConsumerConfig(
        group_id="g", group_protocol=protocol, auto_offset_reset="earliest", session_timeout=6.0, rebalance_timeout=4.0
    )
    consumer = ConsumerCore(client, settings, background=True)
    consumer.subscribe(["t"])
    for number in range(2):
        fault = cluster.faults.add(Fault(NeverRespond(), api=api, times=2))
        log.append(batch(b"%d" % number), leader_epoch=0, now=cluster.now)
        cluster.settle()
        records = network.run(consumer.poll(network.time + 60, 10))
        assert [bytes(record.value or b"") for record in records] == [b"%d" % number]
        for _ in range(10):
            network.run(consumer.poll(network.time + 2, 10))
        cluster.faults.remove(fault)
        network.run(consumer.positions.commit(None, network.time + 30))
    assert cluster.errors == []
    network.run(consumer.close(network.time + 10))
    client.close()
    assert network.task_count == 0
