"""The logs of partitions, as a broker keeps them: in memory or in Kafka's own files.

``PartitionLog`` is what a broker uses. It has no clock, thread or socket. ``TopicConfig`` has the configs that it
needs. ``MemoryPartitionStore`` and ``directory`` are the places that keep it.
"""

from kafka_msgs.broker.partitions.config import TopicConfig
from kafka_msgs.broker.partitions.directory import LogDirectoryStore
from kafka_msgs.broker.partitions.log import PartitionLog
from kafka_msgs.broker.partitions.memory import MemoryPartitionStore
from kafka_msgs.broker.partitions.producers import AppendOrigin, ProducerStateEntry
from kafka_msgs.broker.partitions.replicas import ReplicaSet
from kafka_msgs.broker.partitions.results import AppendResult, ReadResult
from kafka_msgs.broker.partitions.segment import TimestampAndOffset
from kafka_msgs.broker.partitions.verification import VerificationGuard

__all__ = [
    "AppendOrigin",
    "AppendResult",
    "LogDirectoryStore",
    "MemoryPartitionStore",
    "PartitionLog",
    "ProducerStateEntry",
    "ReadResult",
    "ReplicaSet",
    "TimestampAndOffset",
    "TopicConfig",
    "VerificationGuard",
]
