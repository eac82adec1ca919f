"""Partition logs of a broker, in memory or in Kafka's own file formats.

Brokers use ``PartitionLog``, which needs no clock, threads or sockets. ``TopicConfig`` contains the topic configs that
it uses. ``memory_store`` and ``file_store`` implement its storage.
"""

from kafka_msgs.broker.storage.log_append import AppendResult, ReadResult
from kafka_msgs.broker.storage.log_directory_store import LogDirectoryStore
from kafka_msgs.broker.storage.log_segment import TimestampAndOffset
from kafka_msgs.broker.storage.memory_store import MemoryPartitionStore
from kafka_msgs.broker.storage.partition_log import PartitionLog
from kafka_msgs.broker.storage.producer_state import AppendOrigin, ProducerStateEntry
from kafka_msgs.broker.storage.replica_set import ReplicaSet
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.broker.storage.verification import VerificationGuard

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
