"""Consume-transform-produce loops with transactions: the broker verifies the committing member (KIP-447)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer, TopicPartition
from kafka_msgs.errors import BrokerError, OptionError
from kafka_msgs.testing import committed_offsets, new_topic, topic_records

Protocol = Literal["classic", "consumer"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(configs={"group.initial.rebalance.delay.ms": "0"}) as broker:
        for protocol in PROTOCOLS:
            new_topic(broker, f"orders-{protocol}", partitions=1)
            new_topic(broker, f"copies-{protocol}", partitions=1)
        with Producer(broker.bootstrap_servers) as producer:
            for protocol in PROTOCOLS:
                producer.send(f"orders-{protocol}", b"an order")
        yield broker
        assert broker.problems == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_left_its_group_cannot_commit_with_a_transaction(
    broker: EmbeddedBroker, protocol: Protocol
) -> None:
    source, target, group = f"orders-{protocol}", f"copies-{protocol}", f"copiers-{protocol}"
    place = TopicPartition(source, 0)
    consumer = Consumer(
        broker.bootstrap_servers, group_id=group, group_protocol=protocol, auto_offset_reset="earliest",
        isolation_level="read_committed",
    )  # fmt: skip
    with consumer, Producer(broker.bootstrap_servers, transactional_id=group) as producer:
        producer.init_transactions()
        consumer.subscribe(source)
        records = consumer.poll(60)
        member = consumer.group_metadata
        assert (member.group_id, member.member_id) == (group, consumer.member_id)
        with producer.transaction():
            for record in records:
                producer.send(target, record.value)
            producer.send_offsets_to_transaction({place: consumer.position(place)}, member)

        consumer.unsubscribe()
        producer.begin_transaction()
        producer.send(target, b"once more")
        with pytest.raises(BrokerError):
            producer.send_offsets_to_transaction({place: 0}, member)
        producer.abort_transaction()
    assert [bytes(each.value or b"") for each in topic_records(broker, target, committed=True)] == [b"an order"]
    assert committed_offsets(broker, group) == {(source, 0): 1}


def test_without_a_group_there_is_no_member(broker: EmbeddedBroker) -> None:
    with Consumer(broker.bootstrap_servers) as consumer, pytest.raises(OptionError, match="group_id"):
        _ = consumer.group_metadata
