"""A client's connection to a broker: its user, its authentication, and the callbacks at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from attrs import Factory, define, field, frozen

from kafka_msgs.broker.config import ListenerConfig

__all__ = ["ANONYMOUS", "ClientSession", "Principal", "SaslServer"]


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

    user: str | None
    expires_at: int | None

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
