"""The base class of drivers: runs concurrent flows, and the user callbacks that flows call.

``blocking``, ``io_thread`` and ``aio`` contain the drivers of the library. A custom driver provides a clock,
connections, and a way to wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kafka_msgs.client.dns import resolve_host
from kafka_msgs.client.flow import Flow, Future
from kafka_msgs.client.network import Address, Endpoint, NetworkEvents
from kafka_msgs.client.scheduler import Scheduler, Task

__all__ = ["BlockingDriver", "Driver"]

T = TypeVar("T")


class Driver(ABC):
    """A scheduler and its background tasks. An exception of the class ``failure`` ends only its own flow."""

    def __init__(self, failure: type[Exception] = Exception) -> None:
        self._failure = failure
        self._schedule = Scheduler(self._on_ready, failure)
        self._background: set[Task[Any]] = set()
        self.events = NetworkEvents()

    @abstractmethod
    def monotonic(self) -> float:
        """Return the time in seconds of the driver's clock."""

    @abstractmethod
    def now(self) -> float:
        """Return the time of the driver's clock in seconds; inside a flow, the time of the current turn."""

    def uptime(self) -> float:
        """Return the time in seconds of a clock that continues while the machine is suspended."""
        return self.monotonic()

    def spawn(self, flow: Flow[T]) -> Task[T]:
        """Run a flow as a task: to its first wait now, and further whenever the driver advances its flows."""
        task = self._start(flow)
        if not task.done:
            self._background.add(task)
            task.add_done_callback(lambda: self._background.discard(task))
        return task

    def run_callback(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a user callback now, and return its result."""
        try:
            value = function(*arguments)
        except Exception as error:
            return Future.failed(error)
        return self._result(value)

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a blocking function. Drivers that other threads can wake run it in a helper thread."""
        try:
            return Future.resolved(function(*arguments))
        except Exception as error:
            return Future.failed(error)

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        """Resolve a host name."""
        return self.offload(resolve_host, address)

    def perform_in_poll(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a user callback in the polling thread, and return its result."""
        return self.run_callback(function, *arguments)

    def post(self, function: Callable[[], object]) -> None:
        """Call a function soon in the thread of the flows. Here that is the caller's thread."""
        function()

    @property
    def task_count(self) -> int:
        """The number of background tasks."""
        return len(self._background)

    def _start(self, flow: Flow[T]) -> Task[T]:
        return self._schedule.spawn(flow)

    def _renew_schedule(self) -> None:
        """Replace the scheduler after an exception may have interrupted it. All of its flows have ended."""
        self._schedule = Scheduler(self._on_ready, self._failure)

    def _stop_background(self, error: Exception | None = None) -> None:
        """Cancel all background tasks."""
        for task in tuple(self._background):
            task.cancel(error)

    def _result(self, value: Any) -> Future[Any]:
        """Return the result of a user callback."""
        return Future.resolved(value)

    @abstractmethod
    def _on_ready(self) -> None:
        """Handle a flow that became ready."""


class BlockingDriver(Driver):
    """A driver that waits for all of its connections at once. ``run`` advances the flows in turns.

    A deadline counts as reached only after the driver has looked for input past it and found none. So a response that
    has arrived is never late, even if the process was stopped for a while.
    """

    def __init__(self, failure: type[Exception] = Exception) -> None:
        super().__init__(failure)
        self._turn_time: float | None = None
        self._foreground: list[Task[Any]] = []

    def now(self) -> float:
        """Return the time of the driver's clock in seconds; inside a flow, the time of the current turn."""
        return self.monotonic() if self._turn_time is None else self._turn_time

    def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end and return its value. Raises the exceptions of the flow."""
        outer, self._turn_time = self._turn_time, self.monotonic()
        task = None
        try:
            task = self._start(flow)
            self._foreground.append(task)
            while not task.done:
                self._advance()
                if not task.done:
                    self._look()
        finally:
            self._turn_time = outer
            if task is not None:
                task.cancel()
                self._foreground = [each for each in self._foreground if each is not task]
        return task.result()

    def _advance(self) -> None:
        """Advance the flows, and send the data that they wrote."""
        self._schedule.advance(self.now())
        self._send()

    def _look(self) -> None:
        """Wait for input or the next deadline. Available input is read before the deadline counts as reached."""
        deadline = self._schedule.next_deadline
        self._wait(deadline)
        after = self.monotonic()
        if deadline is not None and deadline <= after:
            self._wait(after)
        self._turn_time = after

    @abstractmethod
    def _send(self) -> None:
        """Send the data that flows wrote, without blocking. The driver may return without another wait."""

    @abstractmethod
    def _wait(self, moment: float | None) -> None:
        """Wait for connection events, at the longest until this time."""

    def _on_ready(self) -> None:
        """Do nothing: ``advance`` follows every wait."""
