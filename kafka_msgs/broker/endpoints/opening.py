"""Starts the HTTP endpoints of a broker that its configuration names."""

from __future__ import annotations

from typing import Final

from kafka_msgs.broker.endpoints.http_server import HttpServer
from kafka_msgs.broker.endpoints.registry_paths import CONTENT_TYPE, registry_routes
from kafka_msgs.broker.endpoints.remote_control import RemoteControl
from kafka_msgs.broker.endpoints.routes import Router
from kafka_msgs.broker.endpoints.schema_registry import SchemaRegistry
from kafka_msgs.broker.server import BrokerServer

__all__ = ["open_endpoints"]

_LOOPBACK: Final = "127.0.0.1"


def open_endpoints(server: BrokerServer) -> dict[str, HttpServer]:
    """Return the started endpoints by the names of their ports in ``BrokerConfig``.

    Raises ``BrokerStartError`` and ``MissingExtraError``.
    """
    cluster, config = server.cluster, server.cluster.config
    opened: dict[str, HttpServer] = {}
    try:
        if config.control_port is not None:
            router = Router(RemoteControl(server).routes(), cluster.record_error)
            opened["control_port"] = HttpServer(_LOOPBACK, config.control_port, router.respond)
        if config.registry_port is not None:
            router = Router(registry_routes(SchemaRegistry()), cluster.record_error, CONTENT_TYPE)
            opened["registry_port"] = HttpServer(config.registry_host, config.registry_port, router.respond)
    except BaseException:
        for endpoint in opened.values():
            endpoint.stop()
        raise
    return opened
