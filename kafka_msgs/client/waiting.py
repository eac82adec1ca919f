"""Logic that waits, without input and output: values that are not there yet, and generators that wait for them.

A piece of logic is a generator (``Steps``). It yields a ``Wait`` where it cannot go on: it goes on when one of the
pending values is there, or when the time is reached. It then looks itself at what is there. So one body of logic serves
programs that block and programs on asyncio. A driver (``BlockingNetwork.run``, ``AsyncNetwork.run``) does the waiting,
and sends the time into the generator when it goes on. This module has no socket, no clock and no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from kafka_msgs.errors import DeadlineError

__all__ = ["Pending", "Steps", "Task", "Wait", "any_done", "gather", "sleep_until", "wait_for"]

T = TypeVar("T")


class Pending(Generic[T]):
    """A value that is not there yet. It becomes a value once, or an error once; what comes later is ignored."""

    __slots__ = ("_error", "_make", "_value", "done", "wakers")

    def __init__(self) -> None:
        self.done = False
        self.wakers: list[Callable[[], object]] | None = None
        self._error: Exception | None = None
        self._make: Callable[[], T] | None = None

    @classmethod
    def of(cls, value: T) -> Pending[T]:
        """Return a pending value that is there already."""
        pending = cls()
        pending.resolve(value)
        return pending

    @classmethod
    def failed(cls, error: Exception) -> Pending[T]:
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

    def resolve_with(self, make: Callable[[], T]) -> None:
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

    pending: Sequence[Pending[Any]]
    deadline: float | None


class Task(Pending[T]):
    """A piece of logic that runs by itself, and its value, which comes when it ends."""

    __slots__ = ("stop",)

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__()
        self.stop = stop

    def cancel(self) -> None:
        """Close the piece of logic. Whoever waits gets ``DeadlineError``: its value will never come."""
        if not self.done:
            self.stop()
            self.fail(DeadlineError(waiting_for="work that was cancelled"))


Steps: TypeAlias = Generator[Wait, float, T]
"""A piece of logic that ends with a value of this type. What is sent into it is the time: seconds of the network's
clock.
"""


def any_done(pending: Sequence[Pending[Any]]) -> bool:
    """Whether one of the pending values is there."""
    return any([each.done for each in pending])


def wait_for(pending: Pending[T], deadline: float | None, waiting_for: str = "an answer") -> Steps[T]:
    """Wait for one value and return it. Raises its error, or ``DeadlineError`` if the deadline comes first."""
    if not pending.done:
        yield Wait((pending,), deadline)
        if not pending.done:
            raise DeadlineError(waiting_for=waiting_for)
    return pending.result()


def sleep_until(moment: float) -> Steps[None]:
    """Wait until the network's clock shows ``moment`` (seconds)."""
    yield Wait((), moment)


def gather(steps: Sequence[Steps[T]]) -> Steps[list[T | Exception]]:
    """Run pieces of logic at the same time; return their values in order.

    A piece that raises gives its exception as its value. If the caller goes away, all pieces are closed.
    """
    results: dict[int, T | Exception] = {}
    waits: dict[int, Wait] = {}
    try:
        for place, piece in enumerate(steps):
            _advance(piece, place, None, waits, results)
        while waits:
            now = yield _first_of(waits.values())
            for place, wait in tuple(waits.items()):
                if any_done(wait.pending) or (wait.deadline is not None and wait.deadline <= now):
                    _advance(steps[place], place, now, waits, results)
    finally:
        for piece in steps:
            piece.close()
    return [results[place] for place in range(len(steps))]


def _advance(
    piece: Steps[T], place: int, now: float | None, waits: dict[int, Wait], results: dict[int, T | Exception]
) -> None:
    """Let one piece go on. Note what it waits for, or how it ended."""
    try:
        waits[place] = next(piece) if now is None else piece.send(now)
    except StopIteration as stop:
        results[place] = stop.value
        waits.pop(place, None)
    except Exception as error:
        results[place] = error
        waits.pop(place, None)


def _first_of(waits: Iterable[Wait]) -> Wait:
    """Return what several pieces wait for, as one."""
    waits = tuple(waits)
    deadlines = [wait.deadline for wait in waits if wait.deadline is not None]
    return Wait([each for wait in waits for each in wait.pending], min(deadlines, default=None))
