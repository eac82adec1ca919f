"""A response that comes later.

A handler returns a ``Future`` if its response waits for other members, as for JoinGroup and SyncGroup. A future has no
thread and no lock. Settling it runs its callbacks immediately, in the order of ``add_done_callback``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kafka_msgs.errors import GroupError

__all__ = ["Future"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value, or a ``GroupError``, that is settled once. ``done`` is set when it is settled.

    A second ``resolve`` or ``fail`` has no effect, as in Java's ``CompletableFuture``.
    """

    __slots__ = ("_callbacks", "done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: T | None = None
        self.error: GroupError | None = None
        self._callbacks: list[Callable[[Future[T]], None]] = []

    def resolve(self, value: T) -> None:
        """Settle the future with its value."""
        if not self.done:
            self.value = value
            self._settle()

    def fail(self, error: GroupError) -> None:
        """Settle the future with an error."""
        if not self.done:
            self.error = error
            self._settle()

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call ``callback`` with this future when it settles, or immediately if it has settled already."""
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def copy_from(self, other: Future[T]) -> None:
        """Settle this future with the result of ``other``, which has settled."""
        if other.error is not None:
            self.fail(other.error)
        else:
            self.resolve(other.value)  # type: ignore[arg-type]

    def _settle(self) -> None:
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
