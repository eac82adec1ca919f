"""A scheduler for concurrent flows, which tracks their waits and resumes them. It has no clock and never blocks.

All drivers use a ``Scheduler``, and so does ``gather``. The cost of an event depends on the flows that wait for it, not
on the number of all flows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, TypeVar

from kafka_msgs.client.flow import Flow, Future, Wait, any_done
from kafka_msgs.errors import DeadlineError

__all__ = ["Scheduler", "Task", "gather"]

T = TypeVar("T")

_NOTHING: Final = Wait((), None)
_FEW_ALARMS: Final = 64


class Task(Future[T]):
    """A flow in the background, and the future of its value. ``Scheduler.spawn`` creates it."""

    __slots__ = ("_schedule", "cancelled", "flow", "is_ready", "timer_id", "wait")

    def __init__(self, flow: Flow[T], schedule: Scheduler) -> None:
        super().__init__()
        self.flow = flow
        self.wait = _NOTHING
        self.timer_id = 0
        """The number of its active timer, or 0."""
        self.is_ready = False
        self.cancelled = False
        self._schedule = schedule

    def wake(self) -> None:
        """Mark the task as ready after its wait has ended."""
        self._schedule.make_ready(self)

    def cancel(self, error: Exception | None = None) -> None:
        """Close the flow. Waiters get ``error``, by default ``DeadlineError``."""
        if not self.done:
            self.cancelled = True
            self._schedule.drop(self)
            self.fail(error or DeadlineError(waiting_for="work that was cancelled"))


class Scheduler:
    """Runs flows. It calls ``on_ready`` when a flow becomes ready; ``advance`` then resumes the flow.

    An exception of the class ``failure`` becomes the result of its flow. Any other exception closes the flow, and
    propagates from ``spawn`` and ``advance``.
    """

    def __init__(self, on_ready: Callable[[], object], failure: type[Exception] = Exception) -> None:
        self._on_ready = on_ready
        self._failure = failure
        self._ready: deque[Task[Any]] = deque()
        self._alarms: list[tuple[float, int]] = []
        self._set: dict[int, Task[Any]] = {}
        """The tasks by timer number. A timer that is missing here is inactive."""
        self._numbers = count(1)

    def spawn(self, flow: Flow[T]) -> Task[T]:
        """Start a flow, and run it to its first wait."""
        task = Task(flow, self)
        self._go_on(task, None)
        return task

    def advance(self, now: float) -> None:
        """Resume each flow whose deadline has passed or whose future is done, until none is ready.

        Deadlines are checked once: a flow that waits for a past time runs after the other ready flows. A user callback
        may run flows, so it may call this method recursively.
        """
        alarms = self._alarms
        while alarms and alarms[0][0] <= now:
            task = self._set.get(heappop(alarms)[1])
            if task is not None:
                self.make_ready(task)
        while self._ready:
            task = self._ready.popleft()
            if not task.done:
                self._stop_waiting(task)
                self._go_on(task, now)

    @property
    def next_deadline(self) -> float | None:
        """The earliest deadline of a flow, or None."""
        alarms = self._alarms
        while alarms and alarms[0][1] not in self._set:
            heappop(alarms)
        return alarms[0][0] if alarms else None

    def make_ready(self, task: Task[Any]) -> None:
        """Resume a task at the next ``advance``. For tasks."""
        if not task.is_ready:
            task.is_ready = True
            self._ready.append(task)
            self._on_ready()

    def drop(self, task: Task[Any]) -> None:
        """Close the flow of a task. A running flow is closed at its next wait. For tasks."""
        self._stop_waiting(task)
        if not task.flow.gi_running:  # type: ignore[attr-defined]
            task.flow.close()

    def _go_on(self, task: Task[T], now: float | None) -> None:
        try:
            wait = next(task.flow) if now is None else task.flow.send(now)
        except StopIteration as stop:
            task.resolve(stop.value)
        except self._failure as error:
            task.fail(error)
        except BaseException:
            task.cancel()
            raise
        else:
            if task.done:
                task.flow.close()
            else:
                self._wait(task, wait)

    def _wait(self, task: Task[Any], wait: Wait) -> None:
        pending, deadline = wait
        if any_done(pending):
            self.make_ready(task)
            return
        task.wait = wait
        for each in pending:
            each.add_done_callback(task.wake)
        if deadline is not None:
            task.timer_id = next(self._numbers)
            self._set[task.timer_id] = task
            heappush(self._alarms, (deadline, task.timer_id))
            if len(self._alarms) > _FEW_ALARMS + 2 * len(self._set):
                self._alarms = [each for each in self._alarms if each[1] in self._set]
                heapify(self._alarms)

    def _stop_waiting(self, task: Task[Any]) -> None:
        """End the wait of a task. A signal handler may have interrupted its start or an earlier end."""
        task.is_ready = False
        if task.timer_id:
            self._set.pop(task.timer_id, None)
            task.timer_id = 0
        wait, task.wait = task.wait, _NOTHING
        for each in wait.futures:
            each.remove_done_callback(task.wake)


def gather(flow: Sequence[Flow[T]]) -> Flow[list[T | Exception]]:
    """Run flows concurrently, and return their values in order.

    The value of a flow that raises is its exception. If the caller is cancelled, all flows are closed.
    """
    woken: Future[None] = Future()
    schedule = Scheduler(lambda: woken.resolve(None))
    tasks: list[Task[T]] = []
    try:
        tasks += map(schedule.spawn, flow)
        for task in tasks:
            while not task.done:
                now = yield Wait((woken,), schedule.next_deadline)
                schedule.advance(now)
                woken = Future()
    finally:
        for task in tasks:
            task.cancel()
    return [task.result() if task.error is None else task.error for task in tasks]
