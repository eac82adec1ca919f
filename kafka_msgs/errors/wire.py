"""Errors of frames and of the connection protocol."""

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
"""The first bytes of messages in other protocols. The first four bytes are too large to be a frame size."""


@define(kw_only=True, slots=False)
class FrameSizeError(KafkaMsgsError, ValueError):
    """A frame whose size is negative or exceeds the limit. Attributes: ``size`` and ``limit`` in bytes.

    If the four size bytes are the start of a TLS, HTTP or SSH message, the text names that protocol.
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
    """One side of a connection violated the protocol. Abstract: see the two classes below.

    After this error the connection stays in the state ERROR. Close the socket.
    """

    state: str
    reason: str

    def _text(self) -> str:
        return f"connection {self.state}: {self.reason}"


@define(kw_only=True, slots=False)
class LocalProtocolError(ProtocolError):
    """The calling program used the connection in a way that its state does not allow.

    Attributes: ``state`` (the state at that time) and ``reason``.
    """

    state: str
    reason: str


@define(kw_only=True, slots=False)
class RemoteProtocolError(ProtocolError):
    """The peer sent bytes that are not Kafka protocol, or a message that the connection state does not allow.

    Attributes: ``state`` (the state at that time) and ``reason``.
    """

    state: str
    reason: str
