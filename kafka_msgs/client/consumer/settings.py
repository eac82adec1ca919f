"""The first argument of a consumer: where the brokers are, in any of its forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.consumer.config import consumer_settings

__all__ = ["Servers", "settings_of"]

Servers: TypeAlias = "str | Sequence[str] | ClientConfig | Mapping[str, object]"
"""Addresses of brokers, the configuration of a client, or Kafka's properties of a client and a consumer."""


def settings_of(servers: Servers, settings: Mapping[str, Any]) -> tuple[ClientConfig, dict[str, Any]]:
    """Return the configuration of the client, and the settings of the consumer. Keywords go before properties."""
    if isinstance(servers, ClientConfig):
        return servers, dict(settings)
    if isinstance(servers, Mapping):
        properties = {name: str(value) for name, value in servers.items()}
        return ClientConfig.from_properties(properties), consumer_settings(servers) | dict(settings)
    return ClientConfig(bootstrap_servers=servers), dict(settings)
