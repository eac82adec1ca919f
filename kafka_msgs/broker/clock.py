"""Clocks of an embedded broker: the time of the system, and a time that a test holds and moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from kafka_msgs.validators import check_int

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """What gives the time.

    ``real`` tells whether the time passes by itself. A clock whose time a program moves calls its listeners afterwards.
    """

    real: bool

    def now(self) -> int:
        """Return the milliseconds since the epoch."""

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each move of the time. Return what ends this."""


class SystemClock:
    """The time of the system when it was made, and what passed since then. It never goes back."""

    real = True

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Return the milliseconds since the epoch."""
        return (self._offset + time.monotonic_ns()) // 1_000_000

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Return a function that does nothing: nobody moves this clock."""
        return lambda: None


class ManualClock:
    """A time that stands still until a program moves it. ``now`` is the start, in milliseconds since the epoch: by
    default that of the system, so that records with the times of real clients are not refused.

    ``advance`` and ``set`` return when all that is due at the new time has run. They may be called from any thread.
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
        """Jump to a time in milliseconds since the epoch, back too: a test may want a clock that jumps."""
        check_int("ManualClock", "now", now)
        self._now = now
        for listener in tuple(self._listeners):
            listener()

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each move of the time. Return what ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
