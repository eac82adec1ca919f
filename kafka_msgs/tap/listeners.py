"""The listening sockets of a proxy, one for each broker.

This module chooses the ports. It opens sockets, but does not use them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.errors import TapError

__all__ = ["Listeners"]

_BACKLOG: Final = 128
_MOST: Final = 1000
_LAST_PORT: Final = 65535


class Listeners:
    """The listening sockets of a proxy: one for the bootstrap servers, and one for each broker in a response.

    ``first`` is the address for the bootstrap servers. Brokers are assigned the following ports, in order of
    appearance; ports in use are skipped. With port 0 the system chooses all ports. ``advertised`` is the host for
    clients, by default the listening host. ``opened`` is called with each new socket and its broker. A socket accepts
    connections as soon as it is open. At most 1,000 brokers get a socket: clients receive the original addresses of
    further brokers.
    """

    def __init__(
        self, first: Endpoint, *, advertised: str | None, opened: Callable[[socket.socket, Endpoint | None], None]
    ) -> None:
        self._host = first.host
        self._advertised = advertised or first.host
        self._opened = opened
        self._brokers: dict[Endpoint, Endpoint] = {}
        self._next = first.port
        self.bootstrap = self._open(None)

    def translate(self, host: str, port: int) -> tuple[str, int]:
        """Return the proxy's address for a broker's address. The listener is open when this returns."""
        broker = Endpoint(host, port)
        if broker not in self._brokers:
            if len(self._brokers) >= _MOST:
                return broker
            self._brokers[broker] = self._open(broker)
        return self._brokers[broker]

    def _open(self, broker: Endpoint | None) -> Endpoint:
        listening = self._bound(wanted=broker is None)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        self._opened(listening, broker)
        return Endpoint(self._advertised, listening.getsockname()[1])

    def _bound(self, *, wanted: bool) -> socket.socket:
        """Return a socket at the next free port. ``wanted`` requires exactly the next port."""
        while True:
            port = self._next
            try:
                listening = _bind(self._host, port)
            except OSError as error:
                if wanted or port >= _LAST_PORT:
                    raise TapError(address=str(Endpoint(self._host, port)), reason=_reason(error)) from None
                self._next += 1
                continue
            self._next += 1 if port else 0
            return listening


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except BaseException:
        listening.close()
        raise
    return listening


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
