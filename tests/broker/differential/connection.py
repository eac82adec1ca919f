"""One connection to a broker of either side: frames sent, frames received, and how the connection ended."""

from __future__ import annotations

import socket
import struct
from typing import Final

from kafka_msgs import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka_msgs.wire import encode_request

__all__ = ["ClosedError", "Connection", "SilenceError"]

PATIENCE_SECONDS: Final = 20
_SIZE: Final = struct.Struct(">i")


class ClosedError(Exception):
    """The broker closed the connection."""


class SilenceError(Exception):
    """The broker neither responded nor closed the connection."""


class Connection:
    """A connection to one broker. ``user`` is a name and a password if the listener requires a login."""

    def __init__(self, address: tuple[str, int], user: tuple[str, str] | None = None) -> None:
        self._socket = socket.create_connection(address, timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if user is not None:
            self._log_in(*user)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def send(self, payload: bytes, *, size: int | None = None) -> None:
        """Send a frame; ``size`` overrides its length field. Raises ``ClosedError``."""
        try:
            self._socket.sendall(_SIZE.pack(len(payload) if size is None else size) + payload)
        except OSError:
            raise ClosedError from None

    def receive(self, *, seconds: float = PATIENCE_SECONDS) -> bytes:
        """Return the payload of the next frame. Raises ``ClosedError`` and ``SilenceError``."""
        self._socket.settimeout(seconds)
        return self._exactly(_SIZE.unpack(self._exactly(_SIZE.size))[0])

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self._socket.recv(count - len(data))
            except TimeoutError:
                raise SilenceError from None
            except OSError:
                raise ClosedError from None
            if not piece:
                raise ClosedError
            data += piece
        return bytes(data)

    def _log_in(self, name: str, password: str) -> None:
        token = f"\0{name}\0{password}".encode()
        for request in (SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=token)):
            self.send(encode_request(request, 1, correlation_id=0, client_id="differential"))
            self.receive()
