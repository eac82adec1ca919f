"""What all drivers share: pieces of logic that run side by side, and the functions of the user that logic calls.

``blocking``, ``io_thread`` and ``aio`` have the drivers of the library. A driver of another kind has its own clock, its
own connections, and its own way to wait.
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
    """A schedule of logic, and what runs by itself in it. An exception of the class ``failure`` ends one piece only."""

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
        """Return the time in seconds of the driver's clock; for logic that runs, that of the turn."""

    def uptime(self) -> float:
        """Return the time in seconds of a clock that goes on while the machine is suspended."""
        return self.monotonic()

    def spawn(self, flow: Flow[T]) -> Task[T]:
        """Run a piece of logic by itself: up to its first wait now, and on whenever the driver lets logic go on."""
        task = self._start(flow)
        if not task.done:
            self._background.add(task)
            task.add_done_callback(lambda: self._background.discard(task))
        return task

    def run_callback(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of the user now, and return its result."""
        try:
            value = function(*arguments)
        except Exception as error:
            return Future.failed(error)
        return self._result(value)

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function that blocks. Drivers with a way to resume from another thread run it in a helper thread."""
        try:
            return Future.resolved(function(*arguments))
        except Exception as error:
            return Future.failed(error)

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        """Resolve a host name."""
        return self.offload(resolve_host, address)

    def perform_in_poll(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of the user in the thread that polls, and return its result."""
        return self.run_callback(function, *arguments)

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the thread of the logic, soon. Here it is the thread of the caller."""
        function()

    @property
    def task_count(self) -> int:
        """How many pieces of logic run by themselves."""
        return len(self._background)

    def _start(self, flow: Flow[T]) -> Task[T]:
        return self._schedule.spawn(flow)

    def _renew_schedule(self) -> None:
        """Begin with another schedule: an exception may have interrupted this one. All of its pieces have ended."""
        self._schedule = Scheduler(self._on_ready, self._failure)

    def _stop_background(self, error: Exception | None = None) -> None:
        """End every piece of logic that runs by itself."""
        for task in tuple(self._background):
            task.cancel(error)

    def _result(self, value: Any) -> Future[Any]:
        """Return the result of a function of the user."""
        return Future.resolved(value)

    @abstractmethod
    def _on_ready(self) -> None:
        """A piece of logic can go on."""


class BlockingDriver(Driver):
    """A driver that waits for all of its connections at once. Logic goes on while ``run`` runs, in turns.

    The rule of time: no deadline is reached before the driver has looked for input after it, and found no more. So
    nothing is late whose answer has arrived, even if the process was stopped for a while.
    """

    def __init__(self, failure: type[Exception] = Exception) -> None:
        super().__init__(failure)
        self._turn_time: float | None = None
        self._foreground: list[Task[Any]] = []

    def now(self) -> float:
        """Return the time in seconds of the driver's clock; for logic that runs, that of the turn."""
        return self.monotonic() if self._turn_time is None else self._turn_time

    def run(self, flow: Flow[T]) -> T:
        """Run a piece of logic to its end and return its value. Raises what it raises."""
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
        """Let logic go on, and send what it wrote."""
        self._schedule.advance(self.now())
        self._send()

    def _look(self) -> None:
        """Wait for input or the next deadline. What is there by then is read before the deadline counts as reached."""
        deadline = self._schedule.next_deadline
        self._wait(deadline)
        after = self.monotonic()
        if deadline is not None and deadline <= after:
            self._wait(after)
        self._turn_time = after

    @abstractmethod
    def _send(self) -> None:
        """Send what logic wrote, as far as that is possible without waiting. Nobody may wait after this."""

    @abstractmethod
    def _wait(self, moment: float | None) -> None:
        """Wait for what happens on connections, at the longest until this moment."""

    def _on_ready(self) -> None:
        """Nothing to do: every wait is followed by ``advance``."""
