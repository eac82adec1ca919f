"""Three Kafka nodes on log directories of an embedded cluster, and back: ``python -m tests.campaigns.three_nodes``.

An embedded cluster of three brokers writes topics, transactions and offsets. Three Kafka nodes open its directories,
verify everything, and write more while one node is stopped; then all nodes are killed. An embedded cluster opens their
directories, verifies all committed data, and makes the replicas equal. The campaign takes half a minute.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import confluent_kafka

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, TopicPartition
from tests.support.kafka_directory import KafkaNodes, assert_equal_replicas, claim_for_node

__all__ = ["main", "round_trip"]

TOPIC: Final = "orders"
GROUP: Final = "billing"
WAIT: Final = 60
NODES: Final = (1, 2, 3)
_SETTINGS: Final = {"metadata.log.max.record.bytes.between.snapshots": "1000"}


def write_transaction(servers: str, values: range) -> None:
    """Commit the values, and abort the same number of other values."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "ledger"})
    producer.init_transactions(WAIT)
    for end, sign in ((producer.abort_transaction, b"-"), (producer.commit_transaction, b"")):
        producer.begin_transaction()
        for value in values:
            producer.produce(TOPIC, sign + b"%d" % value, partition=value % 3)
        end(WAIT)


def committed(servers: str, count: int) -> list[int]:
    """Return the values that a read_committed consumer receives, at least this many."""
    with Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([(TOPIC, partition) for partition in range(3)])
        found: list[int] = []
        while len(found) < count:
            found += [int(bytes(each.value or b"")) for each in consumer.poll(WAIT)]
        return sorted(found)


def seen(servers: str) -> dict[str, Any]:
    """Return the state of a cluster as admin clients see it."""
    with Admin(servers) as admin:
        topic = admin.list_topics()[TOPIC]
        offsets = admin.list_group_offsets(GROUP)
        return {
            "topic id": topic.topic_id,
            "replicas": [partition.replica_nodes for partition in topic.partitions],
            "offsets": {(each.topic, each.partition): offset.offset for each, offset in offsets.items()},
        }


def round_trip(path: Path) -> None:
    """Move data from an embedded cluster to Kafka and back, with the directories in ``path``."""
    ours, theirs = path / "ours", path / "theirs"
    for node in NODES:
        claim_for_node(ours / f"node-{node}", node)
    with EmbeddedBroker(directory=ours, configs=_SETTINGS) as broker:
        servers = broker.bootstrap_servers
        assert len(servers.split(",")) == len(NODES)
        with Admin(servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 3, 3)])
            admin.alter_group_offsets(GROUP, {TopicPartition(TOPIC, 0): 3, TopicPartition(TOPIC, 1): 5})
        write_transaction(servers, range(30))
        known = seen(servers)
        assert broker.problems == []
    assert_equal_replicas(ours)
    with KafkaNodes(*(ours / f"node-{node}" for node in NODES)) as nodes:
        assert seen(nodes.bootstrap_servers) == known
        assert committed(nodes.bootstrap_servers, 30) == list(range(30))
        # A restarted node is in sync when it has caught up. Then one node misses the remaining records.
        nodes.repair()
        nodes.stop(3)
        write_transaction(nodes.bootstrap_servers, range(30, 60))
        for node in (2, 1):
            nodes.kill(node)
        for node in NODES:
            shutil.copytree(nodes.log_dir(node), theirs / f"node-{node}")
    with EmbeddedBroker(directory=theirs) as broker:
        assert seen(broker.bootstrap_servers) == known
        assert committed(broker.bootstrap_servers, 60) == list(range(60))
        write_transaction(broker.bootstrap_servers, range(60, 70))
        assert committed(broker.bootstrap_servers, 70) == list(range(70))
        assert broker.problems == []
    assert_equal_replicas(theirs)


def main() -> None:
    """Run the campaign once."""
    with tempfile.TemporaryDirectory() as path:
        round_trip(Path(path))
    print("three nodes of Kafka and an embedded cluster agree about their log directories")


if __name__ == "__main__":
    main()
