"""Cluster metadata: the brokers, the controller, and the partition leaders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from attrs import frozen

from kafka_msgs.client.network import Address
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import TooManyBrokersError

if TYPE_CHECKING:
    from kafka_msgs.messages.metadata_response import MetadataResponse, MetadataResponseTopic

__all__ = ["Broker", "ClusterMetadata", "PartitionInfo", "TopicMetadata", "TopicPartition"]

_NO_ID: Final = UUID(int=0)


class TopicPartition(NamedTuple):
    """A topic name and a partition number. Its text form is ``orders-0``, as in Kafka."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@frozen
class Broker:
    """A broker: its id, the address it advertises, and its rack."""

    id: int
    address: Address
    rack: str | None


@frozen
class PartitionInfo:
    """A partition: its leader (None if it has none), the epoch of the leader, and the ids of its replicas."""

    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@frozen
class TopicMetadata:
    """A topic: its id (None if the broker has no topic ids), its partitions by number, and its error code.

    A partition is replaced when a response contains a newer leader.
    """

    name: str
    topic_id: UUID | None
    internal: bool
    partitions: dict[int, PartitionInfo]
    error: ErrorCode


class ClusterMetadata:
    """The newest metadata of a client. It starts empty, and each response updates it.

    ``max_brokers`` limits the number of brokers.
    """

    def __init__(self, max_brokers: int) -> None:
        self._max_brokers = max_brokers
        self.cluster_id: str | None = None
        self.controller: int | None = None
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self._names: dict[UUID, str] = {}

    def leader(self, topic: str | UUID, partition: int) -> int | None:
        """Return the broker id of the leader, or None if it is unknown or missing."""
        info = self.partitions(topic).get(partition)
        return None if info is None else info.leader

    def partitions(self, topic: str | UUID) -> Mapping[int, PartitionInfo]:
        """Return the partitions of a topic by number, or an empty mapping for an unknown topic."""
        name = self._names.get(topic) if isinstance(topic, UUID) else topic
        info = self.topics.get(name) if name is not None else None
        return {} if info is None else info.partitions

    def topic(self, name: str) -> TopicMetadata | None:
        """Return the newest metadata of a topic, or None if it is unknown."""
        return self.topics.get(name)

    def topic_id(self, name: str) -> UUID | None:
        """Return the id of a topic, or None if it is unknown or the broker has no topic ids."""
        info = self.topics.get(name)
        return None if info is None else info.topic_id

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with an id, or None if it is unknown."""
        return self._names.get(topic_id)

    def update(self, response: MetadataResponse) -> None:
        """Update from a response: all brokers, and the topics that the response contains.

        Raises ``TooManyBrokersError`` for too many brokers, before any update.
        """
        if len(response.brokers) > self._max_brokers:
            raise TooManyBrokersError(brokers=len(response.brokers), limit=self._max_brokers)
        self.cluster_id = response.cluster_id or self.cluster_id
        self.controller = response.controller_id if response.controller_id >= 0 else None
        self.brokers = {
            each.node_id: Broker(each.node_id, Address(each.host, each.port), each.rack) for each in response.brokers
        }
        for topic in response.topics:
            if topic.name is not None:
                self._learn_topic(topic, topic.name)

    def forget_topic(self, name: str) -> None:
        """Forget a topic, for example because it was deleted."""
        info = self.topics.pop(name, None)
        if info is not None and info.topic_id is not None:
            self._names.pop(info.topic_id, None)

    def set_leader(self, topic: str, partition: int, leader: int, epoch: int) -> None:
        """Store a newer leader from a Produce or Fetch response (KIP-951)."""
        info = self.topics.get(topic)
        known = None if info is None else info.partitions.get(partition)
        if info is None or known is None or known.leader_epoch >= epoch:
            return
        info.partitions[partition] = PartitionInfo(leader, epoch, known.replicas, known.in_sync, known.offline)

    def _learn_topic(self, topic: MetadataResponseTopic, name: str) -> None:
        self.forget_topic(name)
        topic_id = None if topic.topic_id == _NO_ID else topic.topic_id
        partitions = {
            each.partition_index: PartitionInfo(
                leader=each.leader_id if each.leader_id >= 0 else None,
                leader_epoch=each.leader_epoch,
                replicas=each.replica_nodes,
                in_sync=each.isr_nodes,
                offline=each.offline_replicas,
            )
            for each in topic.partitions
        }
        self.topics[name] = TopicMetadata(name, topic_id, topic.is_internal, partitions, ErrorCode(topic.error_code))
        if topic_id is not None:
            self._names[topic_id] = name
