"""What all real clients of a run share."""

from __future__ import annotations

from threading import Event
from typing import Any, Final

from attrs import Factory, define

from tests.campaigns.chaos.ledger import Ledger

__all__ = ["RDKAFKA", "WAIT", "Run"]

WAIT: Final = 10.0
"""How many seconds an operation may take."""
RDKAFKA: Final[dict[str, Any]] = {
    "log_level": 0,
    "error_cb": lambda _: None,
    "socket.timeout.ms": 5000,
    "reconnect.backoff.max.ms": 300,
}
"""Settings of all clients on librdkafka."""


@define(eq=False)
class Run:
    """The brokers, what clients were promised, and when writers and readers end. ``lives`` counts the lives of all."""

    servers: str
    ledger: Ledger = Factory(Ledger)
    writers_end: Event = Factory(Event)
    readers_end: Event = Factory(Event)
    lives: list[str] = Factory(list)
