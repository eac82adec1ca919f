"""The two ends of a TCP connection, and its client."""

from __future__ import annotations

from typing import NamedTuple

from attrs import frozen

__all__ = ["CapturedConnection", "Endpoint"]


class Endpoint(NamedTuple):
    """An address and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen
class CapturedConnection:
    """A captured connection; ``number`` counts connections from 1, in the order of their first packets."""

    number: int
    client: Endpoint
    server: Endpoint

    def ends_of(self, direction: str | None) -> str:
        """Return the ends as text, starting with the sender of ``direction`` (``request`` or ``response``)."""
        first, second = (self.server, self.client) if direction == "response" else (self.client, self.server)
        return f"{first} > {second}"
