"""Helpers for tests with an embedded broker: new topics and groups, topic contents, and committed offsets.

They need no client, and work with every test runner.

    >>> from kafka_msgs.broker import EmbeddedBroker
    >>> from kafka_msgs.testing import new_topic, topic_records
    >>> with EmbeddedBroker() as broker:
    ...     topic = new_topic(broker, partitions=2)
    ...     topic_records(broker, topic)
    []
"""

from __future__ import annotations

import unittest
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from uuid import uuid4

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS
from kafka_msgs.broker.controller.topics import TopicToCreate
from kafka_msgs.broker.coordinators.leadership import iter_records
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.errors import UnknownInternalTopicError
from kafka_msgs.groups.runtime.timeline_map import partition_for_key
from kafka_msgs.internal_topics.replay import replay
from kafka_msgs.log import AbortedTransaction
from kafka_msgs.records import ConsumerRecord, RecordBatch, read_batches

__all__ = ["KafkaTestCase", "committed_offsets", "new_group", "new_topic", "topic_records"]

_READ_BYTES: Final = 2**20


def new_topic(
    broker: EmbeddedBroker, name: str | None = None, *, partitions: int = 1, replicas: int = 1, **configs: str
) -> str:
    """Create a topic, and return its name. Without a name it gets a unique one.

    ``configs`` are topic configs, with ``_`` for ``.``: ``cleanup_policy="compact"``. Raises ``RequestRefusedError``
    with Kafka's error for an invalid topic.
    """
    new = TopicToCreate(
        name=name or f"topic-{uuid4().hex[:12]}",
        num_partitions=partitions,
        replication_factor=replicas,
        configs={key.replace("_", "."): value for key, value in configs.items()},
    )
    broker.run(lambda cluster: cluster.create_topic(new))
    return new.name


def new_group() -> str:
    """Return a unique group id."""
    return f"group-{uuid4().hex[:12]}"


def topic_records(broker: EmbeddedBroker, topic: str, *, committed: bool = False) -> list[ConsumerRecord]:
    """Return all records of a topic, partition by partition in offset order.

    With ``committed``, records of open and aborted transactions are excluded, as for a consumer with
    ``isolation.level=read_committed``. Raises ``UnknownInternalTopicError``.
    """
    return broker.run(lambda cluster: _records(cluster, topic, committed))


def _records(cluster: Cluster, topic: str, committed: bool) -> list[ConsumerRecord]:
    state = cluster.image.topics.get(topic)
    if state is None:
        raise UnknownInternalTopicError(topic=topic)
    logs = (cluster.log_manager.get(each.key) for each in state.partitions)
    return [record for log in logs if log is not None for record in _partition_records(log, committed)]


def _partition_records(log: PartitionLog, committed: bool) -> Iterator[ConsumerRecord]:
    offset, after = log.log_start_offset, -1
    while offset != after:
        part = log.read(offset, _READ_BYTES, isolation="read_committed" if committed else "read_uncommitted")
        aborted: defaultdict[int, list[AbortedTransaction]] = defaultdict(list)
        for each in part.aborted or ():
            aborted[each.producer_id].append(each)
        for data in part.data:
            for batch in read_batches(data):
                if isinstance(batch, RecordBatch) and not _is_hidden(batch, aborted):
                    records = batch.consumer_records(log.topic, log.partition)
                    yield from (record for record in records if record.offset >= offset)
        offset, after = part.next_offset, offset


def _is_hidden(batch: RecordBatch, aborted: Mapping[int, list[AbortedTransaction]]) -> bool:
    """Return whether a reader skips the records of a batch: control records, and records of aborted transactions."""
    if batch.is_control:
        return True
    ended = aborted.get(batch.producer_id, ()) if batch.is_transactional else ()
    return any(each.first_offset <= batch.base_offset <= each.last_offset for each in ended)


def committed_offsets(broker: EmbeddedBroker, group: str) -> dict[tuple[str, int], int]:
    """Return a group's committed offsets, by topic and partition. A nonexistent group has none."""
    return broker.run(lambda cluster: _committed(cluster, group))


def _committed(cluster: Cluster, group: str) -> dict[tuple[str, int], int]:
    topic = cluster.image.topics.get(CONSUMER_OFFSETS)
    if topic is None:
        return {}
    log = cluster.log_manager.get((topic.id, partition_for_key(group, len(topic.partitions))))
    found = replay(iter_records(log)).groups().get(group) if log is not None else None
    return {} if found is None else {place: value.offset for place, value in found.offsets.items()}


class KafkaTestCase(unittest.TestCase):
    """A ``unittest`` test case with one embedded broker for all tests of the class.

    ``broker`` runs while the tests of the class run. ``settings`` are attributes of ``BrokerConfig``; a class may
    override them. A test fails if an unexpected exception occurs in the broker.
    """

    settings: ClassVar[dict[str, Any]] = {}
    broker: ClassVar[EmbeddedBroker]

    @classmethod
    def setUpClass(cls) -> None:
        """Start the broker."""
        super().setUpClass()
        cls.broker = EmbeddedBroker(**cls.settings)
        cls.broker.start()
        cls.addClassCleanup(cls.broker.close)

    def tearDown(self) -> None:
        """Fail if the broker has problems."""
        super().tearDown()
        for problem in self.broker.problems:
            raise problem
