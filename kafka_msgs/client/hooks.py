"""Hooks: user callbacks for events of a client: connections, requests, batches, fetches, groups and commits.

A hooks object implements any of the methods of ``ClientHooks``; a missing method costs nothing. The client calls them
in its I/O thread or event loop, so they must return soon. Their exceptions are logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
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

    def batch_written(
        self, topic: str, partition: int, records: int, size: int, offset: int, attempts: int, seconds: float
    ) -> None:
        """Called when a batch was delivered: ``seconds`` after its first record, and after ``attempts`` retries.

        ``offset`` is the offset of its first record, or -1 with ``acks=0``.
        """

    def batch_failed(self, topic: str, partition: int, records: int, error: Exception) -> None:
        """Called when a producer abandons a batch."""

    def fetched(self, topic: str, partition: int, records: int, size: int, lag: int) -> None:
        """Called when records arrive. ``lag`` is the number of offsets between them and the end of the partition."""

    def group_changed(
        self, group_id: str, member_id: str, generation: int, assigned: Collection[tuple[str, int]]
    ) -> None:
        """Called when partitions were added, revoked or lost, with all partitions that the member now has."""

    def offsets_committed(
        self, group_id: str, offsets: Mapping[tuple[str, int], int], seconds: float, error: Exception | None
    ) -> None:
        """Called after a commit, which took ``seconds``. ``error`` is None if the broker accepted all offsets."""


class HookCaller:
    """The hooks of one client. The attribute of an unused hook is None, so that callers can skip the arguments."""

    def __init__(self, hooks: Iterable[object] = ()) -> None:
        self._functions: dict[str, list[Callable[..., object]]] = {}
        for each in hooks:
            self.add(each)

    def add(self, hooks: object) -> None:
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
