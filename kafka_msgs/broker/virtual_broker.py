"""A virtual broker of a cluster, and the network interface for its clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

from attrs import Factory, define

from kafka_msgs.broker.client_session import ClientSession
from kafka_msgs.broker.quotas import QuotaMeters

__all__ = ["Address", "BrokerListeners", "VirtualBroker"]

Address: TypeAlias = tuple[str, int]
T = TypeVar("T")


class BrokerListeners(Protocol):
    """The network interface of the brokers. Without one, requests only come through ``Cluster.receive``."""

    def open_broker(self, broker_id: int, addresses: Mapping[str, Address]) -> None:
        """Listen at the addresses of a broker."""

    def close_broker(self, broker_id: int, *, reset: bool) -> None:
        """Stop listening, and close all connections, with a TCP reset if ``reset``."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the next iteration of the event loop."""

    def call_later(self, ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` after ``ms`` milliseconds of real time."""


@define(eq=False)
class VirtualBroker:
    """A broker of the cluster.

    ``addresses`` maps listener names to host and port, and ``advertised`` to the host and port for clients.
    ``components`` holds per-broker state such as coordinators and sessions, by class, and ends with the broker.
    ``log_dir`` is the id of the log directory. ``meters`` measure quota usage.
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
        """Return the component of a class, created with ``make`` if missing."""
        found: T | None = self.components.get(kind)
        if found is None:
            found = self.components[kind] = make()
        return found
