"""The consumer: subscribe or assign, poll, commit, seek, pause; as ``Consumer`` and ``AsyncConsumer``.

``core`` has the logic, ``async_consumer`` and ``consumer`` the two public classes. The rest is in parts that know
nothing of each other's insides: ``classic`` and ``modern`` are the protocols of groups, ``assignors`` and
``sticky_assignor`` divide partitions, ``fetcher`` and ``fetch_session`` ask brokers for records,
``assigned_partitions`` keeps positions and buffers, ``fetch_collector`` and ``tables`` turn bytes into records and
tables, ``offsets`` commits and looks up.
"""

from kafka_msgs.client.consumer.assigned_partitions import OffsetResetStrategy
from kafka_msgs.client.consumer.assignors import ASSIGNORS, Assignor
from kafka_msgs.client.consumer.async_consumer import AsyncConsumer
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.consumer import Consumer
from kafka_msgs.client.consumer.offsets import OffsetAndMetadata

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "AsyncConsumer",
    "Consumer",
    "ConsumerConfig",
    "OffsetAndMetadata",
    "OffsetResetStrategy",
]
