"""Clusters for client programs: the embedded broker, and a real cluster for comparison."""

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
"""Old records are retained, and heartbeats are frequent. The first member of a group has time to fetch the metadata of
its topics, because the leader assigns only partitions in its metadata."""


@frozen(eq=False)
class Place:
    """A cluster of three brokers. ``login`` is a SASL listener; ``make`` creates topics on all brokers."""

    servers: str
    login: str
    make: Callable[[Sequence[NewTopic]], object]

    @property
    def first(self) -> str:
        """The address of one broker, because some clients accept only one."""
        return self.servers.partition(",")[0]

    @property
    def first_login(self) -> str:
        """The address of one broker's SASL listener."""
        return self.login.partition(",")[0]
