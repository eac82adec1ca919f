"""Hooks: user callbacks for events on the connections of a client.

A hooks object implements any of the methods of ``ClientHooks``; a missing method costs nothing. The client calls them
in its I/O thread or event loop, so they must return soon. Their exceptions are logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

__all__ = ["NO_HOOKS", "ClientHooks", "HookCaller"]

log: Final = logging.getLogger("kafka_msgs.client")


class ClientHooks(Protocol):
    """The events of a client. ``address`` is ``host:port``; ``broker_id`` is None until the client has learnt it.

    Times are in seconds, sizes in bytes including the 4-byte length. Every method is optional.
    """

    def connected(self, address: str, broker_id: int | None, seconds: float) -> None:
        """Called when a connection is ready for requests: versions are negotiated, and the client is authenticated."""

    def disconnected(self, address: str, broker_id: int | None, error: Exception | None) -> None:
        """Called when a connection ends or fails to open. ``error`` is None if either side closed it."""

    def request_sent(self, address: str, broker_id: int | None, api: str, version: int, size: int) -> None:
        """Called when a request is passed to the connection."""

    def response_received(
        self, address: str, broker_id: int | None, api: str, version: int, size: int, queued: float, waited: float
    ) -> None:
        """Called when a response arrives: after ``queued`` seconds until sending and ``waited`` seconds in flight."""

    def throttled(self, address: str, broker_id: int | None, seconds: float) -> None:
        """Called when a broker throttles the client (KIP-219)."""


class HookCaller:
    """The hooks of one client. The attribute of an unused hook is None, so that callers can skip the arguments."""

    def __init__(self, hooks: Iterable[Any] = ()) -> None:
        self._functions: dict[str, list[Callable[..., object]]] = {}
        for each in hooks:
            self.add(each)

    def add(self, hooks: Any) -> None:
        """Add a hooks object."""
        for name in dir(hooks):
            function = None if name.startswith("_") else getattr(hooks, name)
            if callable(function):
                self._functions.setdefault(name, []).append(function)

    def has(self, name: str) -> bool:
        """Return whether a hook with this name exists."""
        return name in self._functions

    def call(self, name: str, *arguments: Any) -> None:
        """Call all hooks with this name. Their exceptions are logged."""
        for function in self._functions.get(name, ()):
            try:
                function(*arguments)
            except Exception:
                log.exception("the hook %s raised", name)


NO_HOOKS: Final = HookCaller()
