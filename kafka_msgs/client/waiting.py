"""Logic that waits, without input and output: values that are not there yet, and generators that wait for them.

A piece of logic is a generator (``Steps``). It yields a ``Wait`` where it cannot go on: it goes on when one of the
pending values is there, or when the time is reached. It then looks itself at what is there. So one body of logic serves
programs that block and programs on asyncio. A driver (``BlockingNetwork.run``, ``AsyncNetwork.run``) does the waiting,
and sends the time into the generator when it goes on. This module has no socket, no clock and no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from heapq import heappop, heappush
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

    def on_done(self, wake: Callable[[], object]) -> None:
        """Call a function when the value is there. It must not be there yet."""
        if self.wakers is None:
            self.wakers = [wake]
        else:
            self.wakers.append(wake)

    def forget(self, wake: Callable[[], object]) -> None:
        """Do not call a function that was given to ``on_done``."""
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

    A piece that raises gives its exception as its value. If the caller goes away, all pieces are closed. What happens
    costs the pieces that wait for it, and not all of them.
    """
    gathering = _Gathering(steps)
    try:
        while gathering.waits:
            now = yield gathering.wait()
            for place in gathering.due(now):
                gathering.advance(place, now)
    finally:
        gathering.close()
    return [gathering.results[place] for place in range(len(steps))]


class _Gathering(Generic[T]):
    """Pieces of logic, what each of them waits for, and which of them can go on."""

    def __init__(self, steps: Sequence[Steps[T]]) -> None:
        self.results: dict[int, T | Exception] = {}
        self.waits: dict[int, Wait] = {}
        self._steps = steps
        self._woken: Pending[None] = Pending()
        self._ready: dict[int, None] = {}
        self._wakers: dict[int, Callable[[], None]] = {}
        self._alarms: list[tuple[float, int]] = []
        for place in range(len(steps)):
            self.advance(place, None)

    def wait(self) -> Wait:
        """Return what the pieces wait for, as one. An alarm of a piece that went on meanwhile is left out."""
        while self._alarms and not self._is_set(*self._alarms[0]):
            heappop(self._alarms)
        return Wait((self._woken,), self._alarms[0][0] if self._alarms else None)

    def due(self, now: float) -> list[int]:
        """Return the pieces that can go on."""
        while self._alarms and self._alarms[0][0] <= now:
            deadline, place = heappop(self._alarms)
            if self._is_set(deadline, place):
                self._ready[place] = None
        ready, self._ready, self._woken = list(self._ready), {}, Pending()
        return ready

    def advance(self, place: int, now: float | None) -> None:
        """Let one piece go on. Note what it waits for, or how it ended."""
        self._stop_listening(place)
        self._ready.pop(place, None)
        piece = self._steps[place]
        try:
            wait = self.waits[place] = next(piece) if now is None else piece.send(now)
        except StopIteration as stop:
            self.results[place] = stop.value
            self.waits.pop(place, None)
        except Exception as error:
            self.results[place] = error
            self.waits.pop(place, None)
        else:
            self._listen(place, wait)

    def close(self) -> None:
        """Stop listening, and close all pieces."""
        for place in tuple(self._wakers):
            self._stop_listening(place)
        for piece in self._steps:
            piece.close()

    def _is_set(self, deadline: float, place: int) -> bool:
        return place in self.waits and self.waits[place].deadline == deadline

    def _listen(self, place: int, wait: Wait) -> None:
        if wait.deadline is not None:
            heappush(self._alarms, (wait.deadline, place))
        if any_done(wait.pending):
            self._wake(place)
            return
        waker = self._wakers[place] = partial(self._wake, place)
        for pending in wait.pending:
            pending.on_done(waker)

    def _stop_listening(self, place: int) -> None:
        waker = self._wakers.pop(place, None)
        if waker is not None:
            for pending in self.waits[place].pending:
                pending.forget(waker)

    def _wake(self, place: int) -> None:
        self._ready[place] = None
        self._woken.resolve(None)
