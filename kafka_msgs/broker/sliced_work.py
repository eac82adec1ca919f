"""Long tasks of the brokers, such as loading a coordinator's log, in slices between client requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol

__all__ = ["SlicedWork"]

_SLICE: Final = 128
"""The number of steps per iteration of the event loop."""


class _Scheduler(Protocol):
    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the next iteration of the event loop."""


class SlicedWork:
    """Tasks in the order in which they were started, ``_SLICE`` steps in each iteration of the event loop.

    ``run`` calls a function and collects its exception. Without a scheduler, all tasks run immediately. Short tasks
    that fit into the current iteration also run immediately.
    """

    def __init__(self, run: Callable[[Callable[[], None]], None]) -> None:
        self._run = run
        self._waiting: deque[Iterator[object]] = deque()
        self._left = _SLICE
        self._scheduled = self._advancing = False
        self.scheduler: _Scheduler | None = None

    def begin(self, work: Iterator[object]) -> None:
        """Start a task: each item of the iterator is one step."""
        self._waiting.append(work)
        self._advance()

    def clear(self) -> None:
        """Discard all unfinished tasks."""
        self._waiting.clear()

    def _advance(self) -> None:
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._waiting and self._left:
                self._run(self._advance_first)
        finally:
            self._advancing = False
        if self.scheduler is None:
            self._left = _SLICE
            if self._waiting:
                self._advance()
        elif not self._scheduled and self._left < _SLICE:
            self._scheduled = True
            self.scheduler.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._scheduled, self._left = False, _SLICE
        self._advance()

    def _advance_first(self) -> None:
        """Run steps of the first task. A failed task is discarded."""
        work = self._waiting.popleft()
        for _ in work:
            self._left -= 1
            if not self._left:
                self._waiting.appendleft(work)
                return
