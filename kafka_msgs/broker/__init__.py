"""An embedded broker: a small Kafka cluster inside the test process that any client can connect to.

    >>> from kafka_msgs.broker import EmbeddedBroker
    >>> with EmbeddedBroker() as broker:
    ...     broker.bootstrap_servers.startswith("127.0.0.1:")
    True

``EmbeddedBroker`` is blocking and ``AsyncEmbeddedBroker`` uses asyncio. Both run a ``Cluster`` of virtual brokers,
whose logic needs no sockets, threads or clock: ``server`` adds the sockets, ``embedded`` the thread and the clock.
Names are imported on first use.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.broker.client_metrics import PushedMetrics
    from kafka_msgs.broker.clock import Clock, ManualClock, SystemClock
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.broker.config import BrokerConfig, ListenerConfig
    from kafka_msgs.broker.embedded import AsyncEmbeddedBroker, EmbeddedBroker
    from kafka_msgs.broker.initial_data import InitialAcl, InitialData, InitialOffset, InitialRecord, InitialTopic
    from kafka_msgs.broker.otlp_metrics import ClientMetric
    from kafka_msgs.broker.request_log import LoggedRequest, RequestLog
else:
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "AsyncEmbeddedBroker": "embedded",
            "BrokerConfig": "config",
            "ClientMetric": "otlp_metrics",
            "Clock": "clock",
            "Cluster": "cluster",
            "EmbeddedBroker": "embedded",
            "InitialAcl": "initial_data",
            "InitialData": "initial_data",
            "InitialOffset": "initial_data",
            "InitialRecord": "initial_data",
            "InitialTopic": "initial_data",
            "ListenerConfig": "config",
            "LoggedRequest": "request_log",
            "ManualClock": "clock",
            "PushedMetrics": "client_metrics",
            "RequestLog": "request_log",
            "SystemClock": "clock",
        },
    )

__all__ = [
    "AsyncEmbeddedBroker",
    "BrokerConfig",
    "ClientMetric",
    "Clock",
    "Cluster",
    "EmbeddedBroker",
    "InitialAcl",
    "InitialData",
    "InitialOffset",
    "InitialRecord",
    "InitialTopic",
    "ListenerConfig",
    "LoggedRequest",
    "ManualClock",
    "PushedMetrics",
    "RequestLog",
    "SystemClock",
]
