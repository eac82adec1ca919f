"""Write records: batches, compression, idempotence, transactions, and the delivery of every record.

``Producer`` is the blocking class, ``AsyncProducer`` the asyncio class. Both are thin facades of ``core``, which uses
no socket, clock or thread. Names are imported on first access.
"""

from typing import TYPE_CHECKING

from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.client.producer.async_producer import AsyncProducer
    from kafka_msgs.client.producer.batch_completion import FailedBatch
    from kafka_msgs.client.producer.config import ProducerConfig
    from kafka_msgs.client.producer.delivery import AsyncDelivery, Delivery
    from kafka_msgs.client.producer.partitioner import Partitioner, partition_of_key
    from kafka_msgs.client.producer.producer import Producer
    from kafka_msgs.client.producer.producer_batch import RecordMetadata
else:
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "AsyncDelivery": "delivery",
            "AsyncProducer": "async_producer",
            "Delivery": "delivery",
            "FailedBatch": "batch_completion",
            "Partitioner": "partitioner",
            "Producer": "producer",
            "ProducerConfig": "config",
            "RecordMetadata": "producer_batch",
            "partition_of_key": "partitioner",
        },
    )

__all__ = [
    "AsyncDelivery",
    "AsyncProducer",
    "ConsumerGroupMetadata",
    "Delivery",
    "FailedBatch",
    "OffsetAndMetadata",
    "Partitioner",
    "Producer",
    "ProducerConfig",
    "RecordMetadata",
    "partition_of_key",
]
