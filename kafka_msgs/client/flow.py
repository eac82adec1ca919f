"""Logic that waits, without input and output: values that are not there yet, and generators that wait for them.

A piece of logic is a generator (``Flow``). It yields a ``Wait`` where it cannot go on: it goes on when one of the
pending values is there, or when the time is reached. It then looks itself at what is there. So one body of logic serves
programs that block and programs on asyncio. A driver (``BlockingNetwork.run``, ``AsyncNetwork.run``) does the waiting,
and sends the time into the generator when it goes on; ``scheduler`` says which generators can go on. This module has no
socket, no clock and no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from kafka_msgs.errors import DeadlineError

__all__ = ["Flow", "Future", "Wait", "any_done", "sleep_until", "wait_for"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that is not there yet. It becomes a value once, or an error once; what comes later is ignored."""

    __slots__ = ("_error", "_make", "_value", "done", "wakers")

    def __init__(self) -> None:
        self.done = False
        self.wakers: list[Callable[[], object]] | None = None
        self._error: Exception | None = None
        self._make: Callable[[], T] | None = None

    @classmethod
    def resolved(cls, value: T) -> Future[T]:
        """Return a pending value that is there already."""
        pending = cls()
        pending.resolve(value)
        return pending

    @classmethod
    def failed(cls, error: Exception) -> Future[T]:
        """Return a pending value that has failed already."""
        pending = cls()
        pending.fail(error)
        return pending

    def resolve(self, value: T) -> None:
        """Give the value, and wake up those that wait for it."""
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: Exception) -> None:
        """Give the error that replaces the value, and wake up those that wait for it."""
        if not self.done:
            self._error = error
            self._finish()

    def resolve_lazily(self, make: Callable[[], T]) -> None:
        """Give what makes the value, and wake up those that wait for it.

        The value is made when somebody takes it. So values that wait to be taken are small, and those that nobody takes
        are not made at all.
        """
        if not self.done:
            self._make = make
            self._finish()

    def result(self) -> T:
        """Return the value, or raise the error. Only a pending value that is ``done`` has one of them."""
        if self._make is not None:
            make, self._make = self._make, None
            try:
                self._value = make()
            except Exception as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._value

    def add_done_callback(self, wake: Callable[[], object]) -> None:
        """Call a function when the value is there. It must not be there yet."""
        if self.wakers is None:
            self.wakers = [wake]
        else:
            self.wakers.append(wake)

    def remove_done_callback(self, wake: Callable[[], object]) -> None:
        """Do not call a function that was given to ``add_done_callback``."""
        if self.wakers is not None:
            self.wakers.remove(wake)

    @property
    def error(self) -> Exception | None:
        """The error, or None if there is none yet: a value that is made when it is taken may still become one."""
        return self._error

    def _finish(self) -> None:
        self.done = True
        wakers, self.wakers = self.wakers, None
        for wake in wakers or ():
            wake()


class Wait(NamedTuple):
    """What logic yields: go on when any of ``pending`` is done, or when ``deadline`` is reached.

    ``deadline`` is in seconds of the network's clock. None means no limit.
    """

    futures: Sequence[Future[Any]]
    deadline: float | None


Flow: TypeAlias = Generator[Wait, float, T]
"""A piece of logic that ends with a value of this type. What is sent into it is the time: seconds of the network's
clock.
"""


def any_done(pending: Sequence[Future[Any]]) -> bool:
    """Whether one of the pending values is there."""
    return any([each.done for each in pending])


def wait_for(pending: Future[T], deadline: float | None, waiting_for: str = "an answer") -> Flow[T]:
    """Wait for one value and return it. Raises its error, or ``DeadlineError`` if the deadline comes first."""
    if not pending.done:
        yield Wait((pending,), deadline)
        if not pending.done:
            raise DeadlineError(waiting_for=waiting_for)
    return pending.result()


def sleep_until(moment: float) -> Flow[None]:
    """Wait until the network's clock shows ``moment`` (seconds)."""
    yield Wait((), moment)
