"""All protocols that a group coordinator speaks. Each package adds its ``PROTOCOL`` here."""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.api import Protocol

__all__ = ["PROTOCOLS"]

PROTOCOLS: Final[tuple[Protocol, ...]] = ()
"""The protocols in the order in which their hooks run."""
