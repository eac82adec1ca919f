"""The logs of all partitions of a cluster, made, changed and removed as the image says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_msgs.broker.controller.configs import topic_values
from kafka_msgs.broker.controller.image import NO_LEADER, Delta, PartitionKey, PartitionState
from kafka_msgs.broker.partitions import MemoryPartition, PartitionLog, TopicConfig
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["Logs"]


class Logs(dict[PartitionKey, PartitionLog]):
    """The log of each partition, by the id of its topic and its number.

    ``listeners`` are called with a log after each change of its offsets.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        self.listeners: list[Callable[[PartitionLog], None]] = []
        self._min_in_sync: dict[str, int] = {}

    def follow(self, delta: Delta) -> None:
        """Make the logs of new partitions, remove those of deleted ones, and take over new settings."""
        for topic in delta.deleted.values():
            self._min_in_sync.pop(topic.name, None)
        configs: dict[str, TopicConfig] = {}
        for key, change in delta.partitions.items():
            if change.after is None:
                self.pop(key).close()
            elif key not in self:
                if change.topic not in configs:
                    configs[change.topic] = self._config(change.topic)
                self[key] = self._open(change.topic, change.after, configs[change.topic])
        kinds = {kind for kind, _ in delta.configs}
        if ConfigResourceType.BROKER in kinds:
            self._reconfigure(set(self._cluster.image.topics))
        elif ConfigResourceType.TOPIC in kinds:
            self._reconfigure({name for kind, name in delta.configs if kind == ConfigResourceType.TOPIC})

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition by the name of its topic, or None if there is no such partition."""
        found = self._cluster.image.topics.get(topic)
        return None if found is None else self.get((found.id, partition))

    def state(self, log: PartitionLog) -> PartitionState:
        """Return the leader and the replicas of a partition. Raises ``RefusedError`` if it was deleted."""
        found = self._cluster.image.partition(log.topic_id, log.partition)
        if found is None:
            raise RefusedError(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def check_in_sync(self, log: PartitionLog) -> None:
        """Raise ``RefusedError`` if a partition has no leader, or too few replicas in sync for ``acks=all``."""
        state = self.state(log)
        if state.leader == NO_LEADER:
            raise RefusedError(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if len(state.isr) < self._min_in_sync[log.topic]:
            raise RefusedError(error=ErrorCode.NOT_ENOUGH_REPLICAS)

    def close(self) -> None:
        """Close all logs."""
        for log in self.values():
            log.close()

    def _open(self, topic: str, state: PartitionState, config: TopicConfig) -> PartitionLog:
        settings = self._cluster.settings
        return PartitionLog(
            topic,
            state.topic_id,
            state.partition,
            config,
            MemoryPartition(),
            now=self._cluster.now,
            producer_expiration_ms=settings.number("producer.id.expiration.ms"),
            verify_transactions=settings.flag("transaction.partition.verification.enable"),
            on_change=self._changed,
        )

    def _changed(self, log: PartitionLog) -> None:
        for listener in self.listeners:
            listener(log)

    def _config(self, topic: str) -> TopicConfig:
        values = topic_values(self._cluster, topic)
        self._min_in_sync[topic] = int(values["min.insync.replicas"] or 1)
        return TopicConfig.of({name: value for name, value in values.items() if value is not None})

    def _reconfigure(self, topics: set[str]) -> None:
        for name in topics:
            topic = self._cluster.image.topics.get(name)
            if topic is not None:
                config = self._config(name)
                for state in topic.partitions:
                    self[state.key].reconfigure(config)
