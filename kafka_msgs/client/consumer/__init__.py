"""The consumer: subscribe or assign, poll, commit, seek, pause; as ``Consumer`` and ``AsyncConsumer``.

``core`` contains the logic; ``async_consumer`` and ``consumer`` contain the two public classes. The other modules are
independent of each other's internals: ``classic`` and ``modern`` implement the group protocols, ``assignors`` and
``sticky_assignor`` divide partitions, ``fetcher`` and ``fetch_session`` request records from brokers,
``assigned_partitions`` stores positions and buffers, ``record_collector`` takes records from them, ``fetch_collector``
and ``tables`` turn bytes into records and tables, and ``offsets`` commits and looks up offsets.
"""

from kafka_msgs.client.consumer.assigned_partitions import OffsetResetStrategy
from kafka_msgs.client.consumer.assignors import ASSIGNORS, Assignor
from kafka_msgs.client.consumer.async_consumer import AsyncConsumer
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.consumer import Consumer
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "AsyncConsumer",
    "Consumer",
    "ConsumerConfig",
    "ConsumerGroupMetadata",
    "OffsetAndMetadata",
    "OffsetResetStrategy",
]
