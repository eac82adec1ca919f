"""Consecutive free ports, for servers whose ports follow each other."""

from __future__ import annotations

import socket
from random import Random

__all__ = ["consecutive_free_ports"]


def consecutive_free_ports(count: int) -> int:
    """Return the first of some consecutive free ports outside the system's ephemeral range."""
    for first in Random().sample(range(20_000, 30_000), 1000):
        try:
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first
    raise AssertionError("no port is free")
