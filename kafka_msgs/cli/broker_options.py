"""Broker options of commands: ``--bootstrap-server``, Kafka's client properties file, and the timeout.

This module defines these options and builds the client config. ``kafka_msgs.client`` connects to the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from kafka_msgs.client.config import ClientConfig

__all__ = ["DEFAULT_TIMEOUT_MS", "broker_options", "client_config", "command_config_option"]

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_TIMEOUT_MS: Final = 5000
"""How long a command waits for a response, in milliseconds (KIP-1071)."""


def broker_options(*, required: bool = True) -> Callable[[F], F]:
    """Return a decorator that adds the broker options to a command.

    The options are ``bootstrap_server``, ``command_config``, and ``timeout`` in milliseconds.
    """

    def add(command: F) -> F:
        for option in (_timeout, _config, _servers(required)):
            command = option(command)
        return command

    return add


def _servers(required: bool) -> Callable[[F], F]:
    return click.option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        required=required,
        help="A broker to ask first, or several with commas between them.",
    )


def command_config_option(help_text: str) -> Callable[[F], F]:
    """Return the option for Kafka's client properties file: ``command_config``."""
    return click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=help_text,
    )


_config: Final = command_config_option("Properties of Kafka's clients, such as security.protocol and sasl.jaas.config.")
_timeout: Final = click.option(
    "--timeout",
    metavar="MS",
    type=click.IntRange(min=1),
    default=DEFAULT_TIMEOUT_MS,
    show_default=True,
    help="How many milliseconds the command may wait for brokers.",
)


def client_config(bootstrap_server: str, command_config: Path | None, timeout: int) -> ClientConfig:
    """Return the client config; ``timeout`` is in milliseconds. Raises ``OptionError`` for invalid properties."""
    from kafka_msgs.client.config import ClientConfig
    from kafka_msgs.client.config_loading import load_properties

    if command_config is None:
        return ClientConfig(bootstrap_servers=bootstrap_server, timeout=timeout / 1000)
    properties = {**load_properties(command_config), "bootstrap.servers": bootstrap_server}
    return ClientConfig.from_properties(properties, timeout=timeout / 1000)
