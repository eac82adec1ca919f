"""``--port`` and ``--any-port``: the Kafka connections in packet captures, and a reader of captures and recordings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO, TypeVar

import click

from kafka_msgs.capture import DEFAULT_PORTS, read_exchanges
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.recording import is_recording, read_recording

__all__ = ["ports_options", "read_items"]

F = TypeVar("F", bound=Callable[..., Any])

_PORT = click.option(
    "--port",
    "ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    default=DEFAULT_PORTS,
    show_default=True,
    help="A broker port in packet captures; may be repeated.",
)
_ANY_PORT = click.option("--any-port", is_flag=True, help="Recognize Kafka connections on any port by their contents.")


def ports_options(command: F) -> F:
    """Add both options to a command."""
    return _PORT(_ANY_PORT(command))


def read_items(file: BinaryIO, ports: Collection[int] | None) -> Iterator[Item]:
    """Yield the exchanges and faults in a recording, or in a packet capture with these broker ports (None: all)."""
    return read_recording(file) if is_recording(file) else read_exchanges(file, ports=ports)
