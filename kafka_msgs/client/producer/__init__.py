"""Write records: batches, compression, idempotence, transactions, and the delivery of every record.

``Producer`` is for programs that block, ``AsyncProducer`` for asyncio. Both are thin shells around ``core``, which has
no socket, clock or thread. Nothing is imported before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_msgs.client.producer.aio import AsyncDelivery, AsyncProducer
    from kafka_msgs.client.producer.batch import RecordMetadata
    from kafka_msgs.client.producer.blocking import Delivery, Producer
    from kafka_msgs.client.producer.config import ProducerConfig
    from kafka_msgs.client.producer.offsets import ConsumedOffset, GroupMember
    from kafka_msgs.client.producer.partitioner import Partitioner, partition_of_key
else:
    _LAZY = {
        "AsyncDelivery": "aio",
        "AsyncProducer": "aio",
        "ConsumedOffset": "offsets",
        "Delivery": "blocking",
        "GroupMember": "offsets",
        "Partitioner": "partitioner",
        "Producer": "blocking",
        "ProducerConfig": "config",
        "RecordMetadata": "batch",
        "partition_of_key": "partitioner",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


__all__ = [
    "AsyncDelivery",
    "AsyncProducer",
    "ConsumedOffset",
    "Delivery",
    "GroupMember",
    "Partitioner",
    "Producer",
    "ProducerConfig",
    "RecordMetadata",
    "partition_of_key",
]
