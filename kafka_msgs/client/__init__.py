"""Talk to brokers: connections, clients, consumers and producers, for programs that block and for asyncio.

    >>> from kafka_msgs.client import Client
    >>> client = Client("localhost:9092")            # nothing connects before the first call
    >>> client.close()

``Client`` and ``AsyncClient`` find the right broker for any request, and return the typed response. There is one body
of logic, written as generators (``waiting``), and two drivers for it: ``blocking`` on sockets and ``aio`` on asyncio.
No thread is started. What a connection is, without sockets, belongs to ``kafka_msgs.wire``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka_msgs.client.auth import Credentials, OAuthBearer, Plain, Scram
from kafka_msgs.client.client import AsyncClient, Client
from kafka_msgs.client.cluster import Broker, Cluster, PartitionInfo, TopicInfo, TopicPartition
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.network import Address
from kafka_msgs.client.routes import CoordinatorKind

if TYPE_CHECKING:
    from kafka_msgs.client.consumer import AsyncConsumer, Consumer, ConsumerConfig
    from kafka_msgs.client.producer import AsyncProducer, Producer, ProducerConfig
    from kafka_msgs.client.tls import tls_context
else:
    _LAZY = {
        "AsyncConsumer": "consumer",
        "AsyncProducer": "producer",
        "Consumer": "consumer",
        "ConsumerConfig": "consumer",
        "Producer": "producer",
        "ProducerConfig": "producer",
        "tls_context": "tls",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


__all__ = [
    "Address",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncProducer",
    "Broker",
    "Client",
    "ClientConfig",
    "Cluster",
    "Consumer",
    "ConsumerConfig",
    "CoordinatorKind",
    "Credentials",
    "OAuthBearer",
    "PartitionInfo",
    "Plain",
    "Producer",
    "ProducerConfig",
    "Scram",
    "TopicInfo",
    "TopicPartition",
    "tls_context",
]
