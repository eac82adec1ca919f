"""The consumer: subscribe or assign, poll, commit, seek, pause; as ``Consumer`` and ``AsyncConsumer``.

``core`` has the logic, ``shells`` the two public forms. The rest is in parts that know nothing of each other's
insides: ``classic`` and ``modern`` are the protocols of groups, ``assignors`` and ``sticky`` divide partitions,
``fetcher`` and ``sessions`` ask brokers for records, ``partitions`` keeps positions and buffers, ``reading`` and
``tables`` turn bytes into records and tables, ``offsets`` commits and looks up.
"""

from kafka_msgs.client.consumer.assignors import ASSIGNORS, Assignor
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.offsets import CommittedOffset
from kafka_msgs.client.consumer.partitions import ResetTo
from kafka_msgs.client.consumer.shells import AsyncConsumer, Consumer

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "AsyncConsumer",
    "CommittedOffset",
    "Consumer",
    "ConsumerConfig",
    "ResetTo",
]
