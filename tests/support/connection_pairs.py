"""A client and a server connected in memory, and the bytes between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka_msgs.wire import (
    NEED_DATA,
    PAUSED,
    ClientConnection,
    ClientEvent,
    ConnectionClosed,
    NeedData,
    ServerConnection,
    ServerEvent,
    TokensPending,
)

__all__ = ["ConnectionPair", "in_single_bytes", "pulled"]


def pulled(connection: ClientConnection | ServerConnection) -> list[ClientEvent | ServerEvent]:
    """Return all events that are available now."""
    events: list[ClientEvent | ServerEvent] = []
    while True:
        event: ClientEvent | ServerEvent | NeedData | TokensPending = connection.next_event()
        if event is NEED_DATA or event is PAUSED:
            return events
        assert not isinstance(event, NeedData | TokensPending)
        events.append(event)
        if isinstance(event, ConnectionClosed):
            return events


def in_single_bytes(data: bytes) -> Iterable[bytes]:
    """Split bytes into single bytes."""
    return (data[place : place + 1] for place in range(len(data)))


class ConnectionPair:
    """Two connections. Each receives the other's output immediately, in one chunk by default."""

    def __init__(self, *, single_bytes: bool = False, **options: Any) -> None:
        self.client = ClientConnection(**options)
        self.server = ServerConnection()
        self._single_bytes = single_bytes

    def to_server(self, data: bytes) -> list[ClientEvent | ServerEvent]:
        """Feed client bytes to the server and return its events."""
        return self._move(data, self.server)

    def to_client(self, data: bytes) -> list[ClientEvent | ServerEvent]:
        """Feed server bytes to the client and return its events."""
        return self._move(data, self.client)

    def _move(self, data: bytes, target: ClientConnection | ServerConnection) -> list[ClientEvent | ServerEvent]:
        events = []
        for piece in in_single_bytes(data) if self._single_bytes else (data,):
            target.receive_data(piece)
            if self._single_bytes:
                events += pulled(target)
        return events + pulled(target)
