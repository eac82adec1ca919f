"""Shared state of all real clients of a run."""

from __future__ import annotations

from collections.abc import Sized
from threading import Event
from time import monotonic
from typing import Any, Final

from attrs import Factory, define

from tests.campaigns.chaos.history import Ledger

__all__ = ["RDKAFKA", "WAIT", "Run", "Silence"]

WAIT: Final = 10.0
"""The maximum number of seconds of an operation."""
RDKAFKA: Final[dict[str, Any]] = {
    "log_level": 0,
    "error_cb": lambda _: None,
    "socket.timeout.ms": 5000,
    "reconnect.backoff.max.ms": 300,
}
"""Options of all librdkafka clients."""


class Silence:
    """Tracks how long a consumer has received nothing.

    A long silence ends its life, because it may wait for a lost response.
    """

    def __init__(self) -> None:
        self._since = monotonic()

    def lasts(self, messages: Sized) -> bool:
        """Record received messages. Return whether the silence has lasted too long."""
        if messages:
            self._since = monotonic()
        return monotonic() - self._since > 2 * WAIT


@define(eq=False)
class Run:
    """The brokers, the promises to clients, and the events that end writers and readers. ``lives`` lists all lives."""

    servers: str
    ledger: Ledger = Factory(Ledger)
    writers_end: Event = Factory(Event)
    readers_end: Event = Factory(Event)
    lives: list[str] = Factory(list)
