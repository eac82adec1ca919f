"""Where programs of clients run: the embedded broker, and a real one beside which it is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from kafka_msgs.admin import NewTopic

__all__ = ["EMBEDDED", "SETTINGS", "Place"]

EMBEDDED: Final = "embedded"

SETTINGS: Final = {
    "log.retention.ms": "-1",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "500",
}
"""Records are old and stay, and heartbeats are quick. The first member of a group has time to learn of its topics: as
the leader it assigns the partitions that it knows."""


@frozen(eq=False)
class Place:
    """A cluster of three brokers. ``login`` is a listener with SASL, ``make`` makes topics that all brokers know."""

    servers: str
    login: str
    make: Callable[[Sequence[NewTopic]], object]

    @property
    def first(self) -> str:
        """The address of one broker: some clients take no more."""
        return self.servers.partition(",")[0]

    @property
    def first_login(self) -> str:
        """The address of one broker's listener with SASL."""
        return self.login.partition(",")[0]
