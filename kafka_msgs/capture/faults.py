"""What a capture holds beside exchanges: damage, gaps, and bytes of other protocols, each with its number of bytes.

Owns the kinds of faults and their words. Together with the exchanges, faults account for every byte of the connections
looked at.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias

from attrs import frozen

from kafka_msgs.capture.connections import Connection

__all__ = ["REQUEST", "RESPONSE", "CaptureFault", "Direction", "FaultKind"]

Direction: TypeAlias = Literal["request", "response"]

REQUEST: Final[Direction] = "request"
RESPONSE: Final[Direction] = "response"


class FaultKind(StrEnum):
    """What a fault is about."""

    FILE = "file"
    """The file is damaged, or is not a capture."""
    PACKET = "packet"
    """A packet that could not be read."""
    GAP = "gap"
    """Bytes of a connection that the capture lacks."""
    UNRECOGNISED = "unrecognised"
    """Bytes that are not a frame of Kafka, or could not be recognised as one."""
    ORPHAN = "orphan"
    """A response whose request is not in the capture."""
    TLS = "tls"
    """Encrypted bytes."""
    SASL = "sasl"
    """Tokens that travel without a header, after a handshake of version 0."""
    LEFT_OUT = "left-out"
    """Connections that were not asked for."""

    @property
    def is_damage(self) -> bool:
        """Whether something is missing or wrong, rather than only not an exchange."""
        return self not in _SOUND


_SOUND: Final = frozenset({FaultKind.TLS, FaultKind.SASL, FaultKind.LEFT_OUT})


@frozen(kw_only=True)
class CaptureFault:
    """Something in a capture that is not an exchange.

    ``size`` counts the bytes concerned: captured ones, or those that are missing where ``kind`` is a gap. ``at`` is the
    time in microseconds since the epoch, ``packet`` the number of the packet in the file, from 1; both are None where
    there is none. ``direction`` says whose bytes they are, those of the requests or those of the responses.
    """

    kind: FaultKind
    reason: str
    size: int
    at: int | None = None
    packet: int | None = None
    connection: Connection | None = None
    direction: Direction | None = None

    def __str__(self) -> str:
        where = "" if self.packet is None else f"packet {self.packet}: "
        who = "" if self.connection is None else f"{self.connection.way(self.direction)}: "
        return f"{where}{who}{self.reason}"
