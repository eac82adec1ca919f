"""The logs of partitions, as a broker keeps them: in memory or in Kafka's own files.

``PartitionLog`` is what a broker uses. It has no clock, thread or socket. ``TopicConfig`` has the configs that it
needs. ``MemoryPartition`` and ``directory`` are the places that keep it.
"""

from kafka_msgs.broker.partitions.config import TopicConfig
from kafka_msgs.broker.partitions.directory import LogDirectoryStore
from kafka_msgs.broker.partitions.log import PartitionLog
from kafka_msgs.broker.partitions.memory import MemoryPartition
from kafka_msgs.broker.partitions.producers import Origin, ProducerState
from kafka_msgs.broker.partitions.replicas import Replicas
from kafka_msgs.broker.partitions.results import Appended, ReadResult
from kafka_msgs.broker.partitions.segment import Found
from kafka_msgs.broker.partitions.verification import Guard

__all__ = [
    "Appended",
    "Found",
    "Guard",
    "LogDirectoryStore",
    "MemoryPartition",
    "Origin",
    "PartitionLog",
    "ProducerState",
    "ReadResult",
    "Replicas",
    "TopicConfig",
]
