"""Errors of the frames of a connection, and of its protocol."""

from __future__ import annotations

from typing import Final

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["FrameSizeError", "LocalProtocolError", "ProtocolError", "RemoteProtocolError"]

_OTHER_PROTOCOLS: Final = {
    b"\x15\x03": "TLS",
    b"\x16\x03": "TLS",
    b"HTTP": "HTTP",
    b"GET ": "HTTP",
    b"POST": "HTTP",
    b"SSH-": "SSH",
}
"""How messages of other protocols begin. Their first four bytes are too large for the size of a frame."""


@define(kw_only=True, slots=False)
class FrameSizeError(KafkaMsgsError, ValueError):
    """A frame whose size is negative or beyond the limit. Attributes: ``size`` and ``limit`` in bytes.

    If the four bytes of the size are the beginning of a message of TLS, HTTP or SSH, the text names that protocol.
    """

    size: int
    limit: int

    def _text(self) -> str:
        return f"a frame of {self.size} bytes, at most {self.limit} are allowed{self._hint()}"

    def _hint(self) -> str:
        if not 0 <= self.size < 2**32:
            return ""
        start = self.size.to_bytes(4, "big")
        other = _OTHER_PROTOCOLS.get(start) or _OTHER_PROTOCOLS.get(start[:2])
        return f"; these bytes look like {other}" if other else ""


class ProtocolError(KafkaMsgsError):
    """One of the two sides of a connection broke the protocol. Abstract: see the two classes below.

    After such an error the state of the connection is ERROR for ever. Close the socket.
    """

    state: str
    reason: str

    def _text(self) -> str:
        return f"connection {self.state}: {self.reason}"


@define(kw_only=True, slots=False)
class LocalProtocolError(ProtocolError):
    """The program that uses the connection did what its state does not allow.

    Attributes: ``state`` (the state at that time) and ``reason``.
    """

    state: str
    reason: str


@define(kw_only=True, slots=False)
class RemoteProtocolError(ProtocolError):
    """The other side sent what is not the Kafka protocol, or what the state of the connection does not allow.

    Attributes: ``state`` (the state at that time) and ``reason``.
    """

    state: str
    reason: str
