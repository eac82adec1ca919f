"""Real Kafka Streams applications on embedded brokers, in both protocols, with repartition and changelog topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Producer
from kafka_msgs.testing import committed_offsets, new_topic, topic_records
from tests.support.eventually import until
from tests.support.streams_application import streams_application

ITEMS = 5
ORDERS = 200


def order(item: int) -> bytes:
    """Return an order of an item, in the application's format."""
    return b'{"customer": "c", "item-%d": 1}' % item


def totals(broker: EmbeddedBroker, application: str) -> dict[bytes, int]:
    """Return the latest count of each item in the application's changelog."""
    records = topic_records(broker, f"{application}-totals-changelog")
    return {bytes(each.key or b""): int.from_bytes(bytes(each.value or b""), "big") for each in records}


@pytest.mark.usefixtures("java_clients")
@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_instances_share_the_work_of_an_application(tmp_path: Path, protocol: str) -> None:
    """Two instances count all orders. Then one crashes, and a new instance continues from the committed state."""
    application = f"totals-{protocol}"
    with EmbeddedBroker(brokers=2) as broker:
        topic = new_topic(broker, partitions=3, replicas=2)

        def produce() -> None:
            with Producer(broker.bootstrap_servers) as producer:
                for number in range(ORDERS):
                    producer.send(topic, order(number % ITEMS), key=b"%d" % number)
                producer.flush()

        expected = {b"item-%d" % item: ORDERS // ITEMS for item in range(ITEMS)}
        produce()
        servers = broker.bootstrap_servers
        with streams_application(servers, application, tmp_path / "two", topic, instances=2, protocol=protocol):
            until(lambda: f"{application}-totals-changelog" in broker.run(lambda cluster: list(cluster.image.topics)))
            until(lambda: totals(broker, application) == expected)
            until(lambda: sum(committed(broker, application, topic)) == ORDERS)
        produce()
        twice = {item: 2 * count for item, count in expected.items()}
        with streams_application(servers, application, tmp_path / "one", topic, protocol=protocol):
            until(lambda: totals(broker, application) == twice)
        assert broker.problems == []


def committed(broker: EmbeddedBroker, group: str, topic: str) -> list[int]:
    """Return the committed offsets of the application for a topic."""
    return [offset for (name, _), offset in committed_offsets(broker, group).items() if name == topic]
