"""Long work of the brokers, such as the replay of a coordinator's log, in slices between the requests of clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol

__all__ = ["SlicedWork"]

_SLICE: Final = 128
"""How many steps of work there are in one turn of the event loop."""


class _Scheduler(Protocol):
    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the next turn of the event loop."""


class SlicedWork:
    """Work in the order in which it was begun, ``_SLICE`` steps in each turn of the event loop.

    ``run`` calls a function and keeps its exception. Without a scheduler, all work is done at once. Work that
    fits into the present turn is done at once, too, so short work has no delay.
    """

    def __init__(self, run: Callable[[Callable[[], None]], None]) -> None:
        self._run = run
        self._waiting: deque[Iterator[object]] = deque()
        self._left = _SLICE
        self._scheduled = self._advancing = False
        self.scheduler: _Scheduler | None = None

    def begin(self, work: Iterator[object]) -> None:
        """Do some work: each item of the iterator is one step."""
        self._waiting.append(work)
        self._advance()

    def clear(self) -> None:
        """Forget all work that is not done."""
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
        """Do steps of the first work. Work that fails is forgotten."""
        work = self._waiting.popleft()
        for _ in work:
            self._left -= 1
            if not self._left:
                self._waiting.appendleft(work)
                return
