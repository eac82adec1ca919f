"""A response that comes later.

A handler returns a ``Future`` if its response waits for other members, as for JoinGroup and SyncGroup. A future has no
thread and no lock. Settling it runs its callbacks immediately, in the order of ``add_done_callback``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError

__all__ = ["Future"]

T = TypeVar("T")
U = TypeVar("U")


class Future(Generic[T]):
    """A value, or a ``ApiError``, that is settled once. ``done`` is set when it is settled.

    A second ``resolve`` or ``fail`` has no effect, as in Java's ``CompletableFuture``.
    """

    __slots__ = ("_callbacks", "done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: T | None = None
        self.error: ApiError | None = None
        self._callbacks: list[Callable[[Future[T]], None]] = []

    @classmethod
    def from_value(cls, value: T) -> Future[T]:
        """Return a future that has settled with a value."""
        future = cls()
        future.resolve(value)
        return future

    @classmethod
    def gather(cls, futures: Iterable[Future[Any]]) -> Future[None]:
        """Return a future that resolves when all these futures have settled."""
        gathered: Future[None] = Future()
        waiting = {id(each): each for each in futures if not each.done}

        def settled(future: Future[Any]) -> None:
            del waiting[id(future)]
            if not waiting:
                gathered.resolve(None)

        for each in tuple(waiting.values()):
            each.add_done_callback(settled)
        if not waiting:
            gathered.resolve(None)
        return gathered

    @classmethod
    def from_error(cls, error: ApiError) -> Future[T]:
        """Return a future that has settled with an error."""
        future = cls()
        future.fail(error)
        return future

    def result(self) -> T:
        """Return the value, or raise the error.

        Raises ``GroupError`` with COORDINATOR_NOT_AVAILABLE if the records of the operation are not committed yet.
        """
        if not self.done:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]

    def resolve(self, value: T) -> None:
        """Settle the future with its value."""
        if not self.done:
            self.value = value
            self._settle()

    def fail(self, error: ApiError) -> None:
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

    def then(self, follow: Callable[[T], U | Future[U]]) -> Future[U]:
        """Return a future of the result of ``follow`` for the value of this future, or of the error of this future."""
        result: Future[U] = Future()

        def settled(done: Future[T]) -> None:
            if done.error is not None:
                result.fail(done.error)
                return
            value = follow(done.result())
            if isinstance(value, Future):
                value.add_done_callback(result.copy_from)
            else:
                result.resolve(value)

        self.add_done_callback(settled)
        return result

    def _settle(self) -> None:
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
