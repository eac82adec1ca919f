"""Flows and futures: generators that wait for values, without input and output.

A flow is a generator (``Flow``). It yields a ``Wait`` to pause until one of the futures is done or the deadline is
reached, and then checks the futures itself. So blocking and asyncio programs share one implementation. A driver
(``BlockingNetwork.run``, ``AsyncNetwork.run``) does the waiting, and sends the time into the generator when it resumes;
``scheduler`` determines which generators are ready. This module uses no socket, clock or thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from kafka_msgs.errors import DeadlineError

__all__ = ["Flow", "Future", "Wait", "any_done", "sleep_until", "wait_for"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that will be available later. It resolves once, to a value or an error; later results are ignored."""

    __slots__ = ("_error", "_make", "_value", "done", "wakers")

    def __init__(self) -> None:
        self.done = False
        self.wakers: list[Callable[[], object]] | None = None
        self._error: Exception | None = None
        self._make: Callable[[], T] | None = None

    @classmethod
    def resolved(cls, value: T) -> Future[T]:
        """Return a future that is already resolved."""
        pending = cls()
        pending.resolve(value)
        return pending

    @classmethod
    def failed(cls, error: Exception) -> Future[T]:
        """Return a future that has already failed."""
        pending = cls()
        pending.fail(error)
        return pending

    def resolve(self, value: T) -> None:
        """Set the value, and wake the waiters."""
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: Exception) -> None:
        """Set the error, and wake the waiters."""
        if not self.done:
            self._error = error
            self._finish()

    def resolve_lazily(self, make: Callable[[], T]) -> None:
        """Set a function that creates the value, and wake the waiters.

        The first use creates the value, so unused values need little memory.
        """
        if not self.done:
            self._make = make
            self._finish()

    def result(self) -> T:
        """Return the value, or raise the error. Raises ``RuntimeError`` unless the future is ``done``."""
        if self._make is not None:
            make, self._make = self._make, None
            try:
                self._value = make()
            except Exception as error:
                self._error = error
        if self._error is not None:
            raise self._error
        if not self.done:
            raise RuntimeError("the future has no result yet: wait until it is done")
        return self._value

    def add_done_callback(self, wake: Callable[[], object]) -> None:
        """Call a function when the future is done. It must not be done yet."""
        if self.wakers is None:
            self.wakers = [wake]
        else:
            self.wakers.append(wake)

    def remove_done_callback(self, wake: Callable[[], object]) -> None:
        """Remove a callback that ``add_done_callback`` added, unless an interruption prevented it."""
        if self.wakers is not None:
            with suppress(ValueError):
                self.wakers.remove(wake)

    @property
    def error(self) -> Exception | None:
        """The error, or None if there is none yet: creating a lazy value may still fail."""
        return self._error

    def _finish(self) -> None:
        self.done = True
        wakers, self.wakers = self.wakers, None
        for wake in wakers or ():
            wake()


class Wait(NamedTuple):
    """A wait that a flow yields: it ends when any of ``pending`` is done, or when ``deadline`` is reached.

    ``deadline`` is in seconds of the network's clock. None means no limit.
    """

    futures: Sequence[Future[Any]]
    deadline: float | None


Flow: TypeAlias = Generator[Wait, float, T]
"""A generator that returns a value of this type. The driver sends it the time in seconds of the network's clock."""


def any_done(pending: Sequence[Future[Any]]) -> bool:
    """Return whether any of the futures is done."""
    return any([each.done for each in pending])


def wait_for(pending: Future[T], deadline: float | None, waiting_for: str = "an answer") -> Flow[T]:
    """Wait for one future and return its value. Raises its error, or ``DeadlineError`` after the deadline."""
    if not pending.done:
        yield Wait((pending,), deadline)
        if not pending.done:
            raise DeadlineError(waiting_for=waiting_for)
    return pending.result()


def sleep_until(moment: float) -> Flow[None]:
    """Wait until the network's clock shows ``moment`` (seconds)."""
    yield Wait((), moment)
