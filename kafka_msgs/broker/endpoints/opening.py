"""Starts the HTTP endpoints of a broker that its configuration names."""

from __future__ import annotations

from kafka_msgs.broker.endpoints.http_server import HttpServer
from kafka_msgs.broker.endpoints.remote_control import RemoteControl
from kafka_msgs.broker.endpoints.routes import Router
from kafka_msgs.broker.server import BrokerServer

__all__ = ["CONTROL", "open_endpoints"]

CONTROL = "control"
_LOOPBACK = "127.0.0.1"


def open_endpoints(server: BrokerServer) -> dict[str, HttpServer]:
    """Return the started endpoints by name. Raises ``BrokerStartError`` and ``MissingExtraError``."""
    cluster = server.cluster
    opened: dict[str, HttpServer] = {}
    if cluster.config.control_port is not None:
        router = Router(RemoteControl(server).routes(), cluster.record_error)
        opened[CONTROL] = HttpServer(_LOOPBACK, cluster.config.control_port, router.respond, local=True)
    return opened
