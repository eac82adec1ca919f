"""A loopback server that breaks protocol rules on purpose: a function handles each connection.

A separate thread accepts connections and serves them one at a time. It ends with the ``with`` block.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import message_class
from kafka_msgs.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kafka_msgs.wire import RequestFrame, decode_request, encode_response, join_frames

Behaviour = Callable[[socket.socket], None]


class FaultyServer:
    """A server that calls ``behave`` with each connection. ``address`` is its listening address."""

    def __init__(self, behave: Behaviour) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.served = 0
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.served += 1
            with connection, suppress(OSError, EOFError):
                connection.settimeout(20)
                self._behave(connection)


def receive(connection: socket.socket) -> RequestFrame:
    """Return the next request of a connection. Raises ``EOFError`` at the end of the connection."""
    size = int.from_bytes(_exactly(connection, 4), "big")
    return decode_request(_exactly(connection, size))


def greet(connection: socket.socket) -> None:
    """Respond to the initial ApiVersions request."""
    connection.sendall(answer_versions(receive(connection)))


def answer_versions(frame: RequestFrame, number: int | None = None) -> bytes:
    """Return the response frame for an ApiVersions request, optionally with a different correlation id."""
    offered = tuple(
        ApiVersion(api_key=key, min_version=versions.lowest, max_version=versions.highest)
        for key in ApiKey
        if not (versions := message_class(key, "request").INFO.versions).empty
    )
    given = frame.header.correlation_id if number is None else number
    response = ApiVersionsResponse(api_keys=offered)
    return join_frames(encode_response(response, frame.header.request_api_version, correlation_id=given))


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
