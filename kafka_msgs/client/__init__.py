"""Talk to brokers: connections, clients, consumers and producers, for programs that block and for asyncio.

    >>> from kafka_msgs.client import Client
    >>> client = Client("localhost:9092")            # nothing connects before the first call
    >>> client.close()

``Client`` and ``AsyncClient`` find the right broker for any request, and return the typed response. There is one body
of logic, written as generators (``flow``), and drivers for it: ``io_thread`` and ``blocking`` on sockets, ``aio`` on
asyncio. A client that blocks has one thread for its input and output. What a connection is, without sockets, belongs to
``kafka_msgs.wire``.
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
