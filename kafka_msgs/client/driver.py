"""What all drivers share: pieces of logic that run side by side, and the functions of the user that logic calls.

``blocking`` and ``aio`` have the two drivers of the library. A driver of another kind has its own clock, its own
connections, and its own way to wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kafka_msgs.client.dns import resolve_host
from kafka_msgs.client.network import Address, Endpoint
from kafka_msgs.client.schedule import Schedule, Task
from kafka_msgs.client.waiting import Pending, Steps

__all__ = ["Driver", "WaitingDriver"]

T = TypeVar("T")


class Driver(ABC):
    """A schedule of logic, and what runs by itself in it."""

    def __init__(self) -> None:
        self._schedule = Schedule(self._on_ready)
        self._background: set[Task[Any]] = set()

    def spawn(self, steps: Steps[T]) -> Task[T]:
        """Run a piece of logic by itself: up to its first wait now, and on whenever the driver lets logic go on."""
        task = self._start(steps)
        if not task.done:
            self._background.add(task)
            task.on_done(lambda: self._background.discard(task))
        return task

    def perform(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function of the user now, and return its result."""
        try:
            value = function(*arguments)
        except Exception as error:
            return Pending.failed(error)
        return self._result(value)

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function that blocks. Drivers with a way to resume from another thread run it in a helper thread."""
        try:
            return Pending.of(function(*arguments))
        except Exception as error:
            return Pending.failed(error)

    def resolve(self, address: Address) -> Pending[Sequence[Endpoint]]:
        """Resolve a host name."""
        return self.offload(resolve_host, address)

    @property
    def running(self) -> int:
        """How many pieces of logic run by themselves."""
        return len(self._background)

    def _start(self, steps: Steps[T]) -> Task[T]:
        return self._schedule.start(steps)

    def _stop_background(self) -> None:
        """End every piece of logic that runs by itself."""
        for task in tuple(self._background):
            task.cancel()

    def _result(self, value: Any) -> Pending[Any]:
        """Return the result of a function of the user."""
        return Pending.of(value)

    @abstractmethod
    def _on_ready(self) -> None:
        """A piece of logic can go on."""


class WaitingDriver(Driver):
    """A driver whose ``run`` returns when a piece of logic has ended. Logic goes on while it runs."""

    def run(self, steps: Steps[T]) -> T:
        """Run a piece of logic to its end and return its value. Raises what it raises."""
        task = self._start(steps)
        try:
            while not task.done:
                self._schedule.advance(self.now())
                self._send()
                if not task.done:
                    self._wait(self._schedule.next_moment)
        finally:
            task.cancel()
        return task.result()

    @abstractmethod
    def now(self) -> float:
        """Return the time in seconds of the driver's clock."""

    @abstractmethod
    def _send(self) -> None:
        """Send what logic wrote, as far as that is possible without waiting. Nobody may wait after this."""

    @abstractmethod
    def _wait(self, moment: float | None) -> None:
        """Wait for what happens on connections, at the longest until this moment."""

    def _on_ready(self) -> None:
        """Nothing to do: every wait is followed by ``advance``."""
