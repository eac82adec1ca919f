"""Kafka clients: connections, clients, consumers and producers, with blocking and asyncio APIs.

    >>> from kafka_msgs.client import Client
    >>> client = Client("localhost:9092")            # nothing connects before the first call
    >>> client.close()

``Client`` and ``AsyncClient`` find the right broker for any request, and return the typed response. Both share one
implementation, written as generators (``flow``), which several drivers run: ``io_thread`` and ``blocking`` over
sockets, ``aio`` on asyncio. A blocking client uses one thread for input and output. The protocol of a connection,
without sockets, is in ``kafka_msgs.wire``.
"""

from typing import TYPE_CHECKING

from kafka_msgs.client.async_client import AsyncClient
from kafka_msgs.client.client import Client
from kafka_msgs.client.cluster_metadata import Broker, ClusterMetadata, PartitionInfo, TopicMetadata, TopicPartition
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.network import Address
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.client.auth import Credentials, OAuthBearerCredentials, PlainCredentials, ScramCredentials
    from kafka_msgs.client.consumer import AsyncConsumer, Consumer, ConsumerConfig
    from kafka_msgs.client.producer import AsyncProducer, Producer, ProducerConfig
    from kafka_msgs.client.tls import tls_context
else:
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "AsyncConsumer": "consumer",
            "Credentials": "auth",
            "OAuthBearerCredentials": "auth",
            "PlainCredentials": "auth",
            "ScramCredentials": "auth",
            "AsyncProducer": "producer",
            "Consumer": "consumer",
            "ConsumerConfig": "consumer",
            "Producer": "producer",
            "ProducerConfig": "producer",
            "tls_context": "tls",
        },
    )

__all__ = [
    "Address",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncProducer",
    "Broker",
    "Client",
    "ClientConfig",
    "ClusterMetadata",
    "Consumer",
    "ConsumerConfig",
    "CoordinatorKind",
    "Credentials",
    "OAuthBearerCredentials",
    "PartitionInfo",
    "PlainCredentials",
    "Producer",
    "ProducerConfig",
    "ScramCredentials",
    "TopicMetadata",
    "TopicPartition",
    "tls_context",
]
