"""The parts of a capture that are not exchanges: damage, gaps, and bytes of other protocols, with their sizes.

This module defines the fault kinds and their messages. Exchanges and faults together account for every byte of the
connections that are read.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias

from attrs import frozen

from kafka_msgs.capture.connections import CapturedConnection

__all__ = ["REQUEST", "RESPONSE", "CaptureFault", "Direction", "FaultKind"]

Direction: TypeAlias = Literal["request", "response"]

REQUEST: Final[Direction] = "request"
RESPONSE: Final[Direction] = "response"


class FaultKind(StrEnum):
    """The kind of a fault."""

    FILE = "file"
    """The file is damaged, or not a capture."""
    PACKET = "packet"
    """An unreadable packet."""
    GAP = "gap"
    """Bytes of a connection that are missing in the capture."""
    UNRECOGNISED = "unrecognised"
    """Bytes that are not a Kafka frame, or were not recognized as one."""
    ORPHAN = "orphan"
    """A response whose request is not in the capture."""
    TLS = "tls"
    """Encrypted bytes."""
    SASL = "sasl"
    """Tokens without a header, after a SaslHandshake of version 0."""
    LEFT_OUT = "left-out"
    """Connections on other ports, which were not read."""
    PROXY = "proxy"
    """A connection or an address that the proxy refused because of a limit, or an addon that failed."""

    @property
    def is_damage(self) -> bool:
        """Whether bytes are missing or damaged. False for intact bytes that are not an exchange."""
        return self not in _SOUND


_SOUND: Final = frozenset({FaultKind.TLS, FaultKind.SASL, FaultKind.LEFT_OUT})


@frozen(kw_only=True)
class CaptureFault:
    """A part of a capture that is not an exchange.

    ``size`` is the number of captured bytes of the fault, or of missing bytes for a gap. ``at`` is the time in
    microseconds since the epoch. ``packet`` is the number of the packet in the file, from 1. Both are None if the fault
    does not belong to a packet. ``direction`` shows whether the bytes belong to requests or responses.
    """

    kind: FaultKind
    reason: str
    size: int
    at: int | None = None
    packet: int | None = None
    connection: CapturedConnection | None = None
    direction: Direction | None = None

    def __str__(self) -> str:
        where = "" if self.packet is None else f"packet {self.packet}: "
        who = "" if self.connection is None else f"{self.connection.ends_of(self.direction)}: "
        return f"{where}{who}{self.reason}"
