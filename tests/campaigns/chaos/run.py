"""What all real clients of a run share."""

from __future__ import annotations

from collections.abc import Sized
from threading import Event
from time import monotonic
from typing import Any, Final

from attrs import Factory, define

from tests.campaigns.chaos.history import Ledger

__all__ = ["RDKAFKA", "WAIT", "Run", "Silence"]

WAIT: Final = 10.0
"""How many seconds an operation may take."""
RDKAFKA: Final[dict[str, Any]] = {
    "log_level": 0,
    "error_cb": lambda _: None,
    "socket.timeout.ms": 5000,
    "reconnect.backoff.max.ms": 300,
}
"""Settings of all clients on librdkafka."""


class Silence:
    """How long a consumer was given nothing. Its life ends with that: it may wait for an answer that it lost."""

    def __init__(self) -> None:
        self._since = monotonic()

    def lasts(self, messages: Sized) -> bool:
        """Note what was given. Return whether that was nothing for too long."""
        if messages:
            self._since = monotonic()
        return monotonic() - self._since > 2 * WAIT


@define(eq=False)
class Run:
    """The brokers, what clients were promised, and when writers and readers end. ``lives`` counts the lives of all."""

    servers: str
    ledger: Ledger = Factory(Ledger)
    writers_end: Event = Factory(Event)
    readers_end: Event = Factory(Event)
    lives: list[str] = Factory(list)
