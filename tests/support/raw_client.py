"""A client over one blocking socket, for tests that choose every byte a broker receives."""

from __future__ import annotations

import socket
from typing import Any, Self, TypeVar

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.message import Request, Response
from kafka_msgs.wire import ClientConnection, ResponseReceived

__all__ = ["RawClient"]

R = TypeVar("R", bound=Response)
_TIMEOUT = 60


class RawClient:
    """A connection to one listener of a broker in an embedded cluster."""

    def __init__(self, broker: EmbeddedBroker, broker_id: int = 0, listener: str = "") -> None:
        name = listener or broker.config.listeners[0].name
        address = broker.run(lambda cluster: cluster.brokers[broker_id].addresses[name])
        self.socket = socket.create_connection(address, timeout=_TIMEOUT)
        self._wire = ClientConnection(client_id="test")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def frame(self, request: Request[Any], version: int) -> bytes:
        """Return the bytes of a request, as ``send`` sends them."""
        return self._wire.send(request, version)

    def send(self, *requests: tuple[Request[Any], int]) -> None:
        """Send requests, each at its version."""
        self.socket.sendall(b"".join(self.frame(*each) for each in requests))

    def receive(self) -> Response:
        """Return the next response. Raises ``EOFError`` if the broker closed the connection."""
        while not isinstance(event := self._wire.next_event(), ResponseReceived):
            data = self.socket.recv(2**16)
            if not data:
                raise EOFError
            self._wire.receive_data(data)
        message: Response = event.frame().message
        return message

    def call(self, request: Request[R], version: int) -> R:
        """Send a request and return its response."""
        self.send((request, version))
        response = self.receive()
        assert isinstance(response, request.response_class())
        return response

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection; return False if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
