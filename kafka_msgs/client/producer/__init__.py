"""Write records: batches, compression, idempotence, transactions, and the delivery of every record.

``Producer`` is for programs that block, ``AsyncProducer`` for asyncio. Both are thin shells around ``core``, which has
no socket, clock or thread. Nothing is imported before it is asked for.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy import lazy_attributes

if TYPE_CHECKING:
    from kafka_msgs.client.producer.batch import RecordMetadata
    from kafka_msgs.client.producer.config import ProducerConfig
    from kafka_msgs.client.producer.delivery import AsyncDelivery, Delivery
    from kafka_msgs.client.producer.offsets import ConsumedOffset, GroupMember
    from kafka_msgs.client.producer.partitioner import Partitioner, partition_of_key
    from kafka_msgs.client.producer.shells import AsyncProducer, Producer
else:
    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "AsyncDelivery": "delivery",
            "AsyncProducer": "shells",
            "ConsumedOffset": "offsets",
            "Delivery": "delivery",
            "GroupMember": "offsets",
            "Partitioner": "partitioner",
            "Producer": "shells",
            "ProducerConfig": "config",
            "RecordMetadata": "batch",
            "partition_of_key": "partitioner",
        },
    )

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
