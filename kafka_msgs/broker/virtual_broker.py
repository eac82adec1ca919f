"""A virtual broker of a cluster, and what brings it to its clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

from attrs import Factory, define

from kafka_msgs.broker.quotas import QuotaMeters
from kafka_msgs.broker.server_call import ClientSession

__all__ = ["Address", "BrokerListeners", "VirtualBroker"]

Address: TypeAlias = tuple[str, int]
T = TypeVar("T")


class BrokerListeners(Protocol):
    """What brings the brokers to their clients. Without one, requests come from ``Cluster.receive`` alone."""

    def open_broker(self, broker_id: int, addresses: Mapping[str, Address]) -> None:
        """Listen at the addresses of a broker."""

    def close_broker(self, broker_id: int, *, reset: bool) -> None:
        """Stop listening, and close all connections; ``reset`` breaks them off."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the next turn of the event loop."""

    def call_later(self, ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` after so many milliseconds of real time."""


@define(eq=False)
class VirtualBroker:
    """One of the brokers. ``addresses`` has host and port of each listener, by name, and ``advertised`` those that
    clients learn. ``components`` is for what hosts state here, such as coordinators and sessions, by their class. They
    end with the broker. ``log_dir`` is the id of its log directory. ``meters`` measure for quotas.
    """

    id: int
    addresses: Mapping[str, Address]
    advertised: Mapping[str, Address]
    log_dir: UUID
    meters: QuotaMeters
    sessions: dict[int, ClientSession] = Factory(dict)
    components: dict[type, Any] = Factory(dict)
    running: bool = False

    def component(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the part of a class. ``make`` makes it if there is none yet."""
        found: T | None = self.components.get(kind)
        if found is None:
            found = self.components[kind] = make()
        return found
