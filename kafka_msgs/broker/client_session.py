"""A virtual broker, and a client's connection to it: its user, its authentication, and the callbacks at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from attrs import Factory, define, field, frozen

from kafka_msgs.broker.config import ListenerConfig
from kafka_msgs.broker.quotas import QuotaMeters

__all__ = ["ANONYMOUS", "Address", "BrokerListeners", "ClientSession", "Principal", "SaslServer", "VirtualBroker"]


@frozen
class Principal:
    """The principal of a connection. ``str`` returns Kafka's format, for example ``User:alice``."""

    type: str = "User"
    name: str = "ANONYMOUS"

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal()
"""The principal of a connection without authentication."""


class SaslServer(Protocol):
    """An authentication in progress. ``user`` is None until it succeeds.

    ``expires_at`` is the expiry of the client's credentials in milliseconds since the epoch, or None.
    """

    user: str | None = None
    expires_at: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return the response to a token. Raises ``RequestRefusedError`` with SASL_AUTHENTICATION_FAILED."""


@define(eq=False, kw_only=True)
class ClientSession:
    """One connection to one virtual broker. ``client_host`` has the format of Kafka's records: ``/127.0.0.1``.

    On a SASL listener, a client must authenticate. ``sasl_server`` is the current authentication with ``mechanism``,
    ``session_expires_at`` the time in ms at which the client must re-authenticate, and ``login_again_at`` the time at
    which it last started to do so. ``end`` closes the connection: from then on responses are dropped, and the
    ``on_close`` callbacks run once.
    """

    id: int
    broker_id: int
    listener: ListenerConfig
    client_host: str = "/127.0.0.1"
    client_port: int = 0
    principal: Principal = ANONYMOUS
    software_name: str = ""
    software_version: str = ""
    sasl_server: SaslServer | None = None
    authenticated: bool = field(init=False)
    session_expires_at: int | None = None
    login_again_at: int = 0
    mechanism: str | None = None
    closed: bool = False
    _on_close: dict[int, Callable[[], None]] = Factory(dict)
    _callbacks: int = 0

    @authenticated.default
    def _needs_no_login(self) -> bool:
        return not self.listener.sasl

    def is_authenticated(self, now: int) -> bool:
        """Return whether the client is authenticated and its session is valid at ``now``."""
        return (
            self.authenticated
            and self.sasl_server is None
            and (self.session_expires_at is None or now < self.session_expires_at)
        )

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when the connection is closed. Return a function that cancels this."""
        self._callbacks = number = self._callbacks + 1
        self._on_close[number] = callback
        return lambda: self._on_close.pop(number, None) and None

    def end(self) -> None:
        """Mark the connection as closed."""
        self.closed = True
        callbacks, self._on_close = self._on_close, {}
        for callback in callbacks.values():
            callback()


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
