"""Where the brokers are, in any form that a consumer or a producer takes; and Kafka's names of their settings.

A consumer and a producer each have a table of Kafka's property names. The names of the client itself are in
``properties``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from attrs import evolve

from kafka_msgs.client.config import ClientConfig, ClientOptions
from kafka_msgs.errors import MissingExtraError, OptionError

__all__ = [
    "Names",
    "Servers",
    "milliseconds",
    "read_properties",
    "read_settings",
    "settings_of",
    "truth",
]

Servers: TypeAlias = "str | Sequence[str] | ClientConfig | Mapping[str, object] | Path"
"""Addresses of brokers, the configuration of a client, or Kafka's properties: a mapping of them, or their file."""

Names: TypeAlias = Mapping[str, tuple[str, Callable[[str], Any]]]
"""Kafka's names of settings, our name of each, and what reads its text."""


_CLIENT_OPTIONS: Final = frozenset(ClientOptions.__annotations__)


def settings_of(
    servers: Servers,
    settings: Mapping[str, Any],
    read: Callable[[Mapping[str, str]], dict[str, Any]] = lambda _: {},
) -> tuple[ClientConfig, dict[str, Any]]:
    """Return the configuration of the client, and the other settings. Keywords go before properties.

    ``read`` takes the other settings out of the properties. Raises ``OptionError``.
    """
    options = {name: value for name, value in settings.items() if name in _CLIENT_OPTIONS}
    others = {name: value for name, value in settings.items() if name not in _CLIENT_OPTIONS}
    if isinstance(servers, Path):
        servers = read_properties(servers)
    if isinstance(servers, Mapping):
        properties = {name: str(value) for name, value in servers.items()}
        config, others = ClientConfig.from_properties(properties), read(properties) | others
    else:
        config = servers if isinstance(servers, ClientConfig) else ClientConfig(bootstrap_servers=servers)
    return evolve(config, **options), others


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties in one of Kafka's files. Raises ``OptionError`` if they cannot be read.

    Needs the package javaproperties, which comes with the extra ``cli``; without it raises ``MissingExtraError``.
    """
    try:
        from javaproperties import InvalidUEscapeError, loads
    except ImportError:
        raise MissingExtraError(feature="a properties file", extra="cli", package="javaproperties") from None
    try:
        return loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidUEscapeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(source="client", option="properties", value=str(path), reason=reason) from None


def read_settings(properties: Mapping[str, str], names: Names, *, source: str) -> dict[str, Any]:
    """Return the settings that have names in properties. Raises ``OptionError`` for a value that cannot be read."""
    settings: dict[str, Any] = {}
    for name, (setting, read) in names.items():
        if name in properties:
            try:
                settings[setting] = read(properties[name].strip())
            except (ValueError, KeyError):
                reason = "the value cannot be read"
                raise OptionError(source=source, option=name, value=properties[name], reason=reason) from None
    return settings


def milliseconds(text: str) -> float:
    """Return the seconds of a number of milliseconds."""
    return int(text) / 1000


def truth(text: str) -> bool:
    """Return what ``true`` or ``false`` means."""
    return {"true": True, "false": False}[text.lower()]
