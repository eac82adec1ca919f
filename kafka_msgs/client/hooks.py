"""Hooks: functions of the user that are called when something happens on the connections of a client.

A hooks object has any of the methods of ``ClientHooks``; a missing one costs nothing. They are called where the logic
runs (in the I/O thread, or in the event loop), so they must return soon. Their exceptions are logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

__all__ = ["NO_HOOKS", "ClientHooks", "HookCaller"]

log: Final = logging.getLogger("kafka_msgs.client")


class ClientHooks(Protocol):
    """The events of a client. ``address`` is ``host:port``; ``broker_id`` is None until the client has learnt it.

    Times are in seconds, sizes in bytes with the four of the length. Every method is optional.
    """

    def connected(self, address: str, broker_id: int | None, seconds: float) -> None:
        """A connection is ready for requests: versions are agreed on, and the client is authenticated."""

    def disconnected(self, address: str, broker_id: int | None, error: Exception | None) -> None:
        """A connection ended, or could not be made. ``error`` is None if either side closed it."""

    def request_sent(self, address: str, broker_id: int | None, api: str, version: int, size: int) -> None:
        """A request was handed to the connection."""

    def response_received(
        self, address: str, broker_id: int | None, api: str, version: int, size: int, queued: float, waited: float
    ) -> None:
        """A response arrived: ``queued`` before the request left, ``waited`` from then on."""

    def throttled(self, address: str, broker_id: int | None, seconds: float) -> None:
        """A broker asked for a pause (KIP-219)."""


class HookCaller:
    """The hooks of one client. A name without hooks is None, so that a caller skips even the arguments."""

    def __init__(self, hooks: Iterable[Any] = ()) -> None:
        self._functions: dict[str, list[Callable[..., object]]] = {}
        for each in hooks:
            self.add(each)

    def add(self, hooks: Any) -> None:
        """Add an object with hooks."""
        for name in dir(hooks):
            function = None if name.startswith("_") else getattr(hooks, name)
            if callable(function):
                self._functions.setdefault(name, []).append(function)

    def has(self, name: str) -> bool:
        """Return whether there is a hook of this name."""
        return name in self._functions

    def call(self, name: str, *arguments: Any) -> None:
        """Call all hooks of a name. Their exceptions are logged."""
        for function in self._functions.get(name, ()):
            try:
                function(*arguments)
            except Exception:
                log.exception("the hook %s raised", name)


NO_HOOKS: Final = HookCaller()
