"""Clocks of an embedded broker: the system clock, and a manual clock for tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from kafka_msgs.validators import check_int

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """A source of time.

    ``real`` is True if time passes on its own. A manually advanced clock calls its listeners after each change.
    """

    real: bool

    def now(self) -> int:
        """Return the milliseconds since the epoch."""

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each change of the time. Return a function that removes the listener."""


class SystemClock:
    """The system time at creation plus the time elapsed since then. It never goes back."""

    real = True

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Return the milliseconds since the epoch."""
        return (self._offset + time.monotonic_ns()) // 1_000_000

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Return a function that does nothing: the system clock is never moved manually."""
        return lambda: None


class ManualClock:
    """A clock that stands still until the test moves it.

    ``now`` is the start time in milliseconds since the epoch. It defaults to the system time, so that the broker
    accepts the timestamps of real clients. ``advance`` and ``set`` return after everything due at the new time has run.
    They may be called from any thread.
    """

    real = False

    def __init__(self, now: int | None = None) -> None:
        if now is not None:
            check_int("ManualClock", "now", now)
        self._now = SystemClock().now() if now is None else now
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> int:
        """Return the milliseconds since the epoch."""
        return self._now

    def advance(self, ms: int) -> None:
        """Move the time forward by ``ms`` milliseconds. Raises ``OptionError`` for a negative number."""
        check_int("ManualClock", "ms", ms)
        self.set(self._now + ms)

    def set(self, now: int) -> None:
        """Jump to a time in milliseconds since the epoch, forward or back."""
        check_int("ManualClock", "now", now)
        self._now = now
        for listener in tuple(self._listeners):
            listener()

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each change of the time. Return a function that removes the listener."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
