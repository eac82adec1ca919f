"""Pieces of logic that run side by side: what each of them waits for, and which can go on. No clock, and no waiting.

All drivers have a ``Scheduler``, and ``gather`` has one. What happens costs the pieces that wait for it, not all
pieces.
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
    """A piece of logic that runs by itself, and its value, which comes when it ends. ``Scheduler.spawn`` makes it."""

    __slots__ = ("_schedule", "cancelled", "flow", "is_ready", "timer_id", "wait")

    def __init__(self, flow: Flow[T], schedule: Scheduler) -> None:
        super().__init__()
        self.flow = flow
        self.wait = _NOTHING
        self.timer_id = 0
        """The number of the alarm that is set for it, or 0."""
        self.is_ready = False
        self.cancelled = False
        self._schedule = schedule

    def wake(self) -> None:
        """What the piece waits for is there: let it go on."""
        self._schedule.make_ready(self)

    def cancel(self, error: Exception | None = None) -> None:
        """Close the piece of logic. Whoever waits gets ``error``, by default ``DeadlineError``."""
        if not self.done:
            self.cancelled = True
            self._schedule.drop(self)
            self.fail(error or DeadlineError(waiting_for="work that was cancelled"))


class Scheduler:
    """Pieces of logic. ``on_ready`` is called when one of them can go on: ``advance`` lets it.

    An exception of the class ``failure`` becomes the result of its piece. Any other one closes the piece, and leaves
    ``spawn`` and ``advance``.
    """

    def __init__(self, on_ready: Callable[[], object], failure: type[Exception] = Exception) -> None:
        self._on_ready = on_ready
        self._failure = failure
        self._ready: deque[Task[Any]] = deque()
        self._alarms: list[tuple[float, int]] = []
        self._set: dict[int, Task[Any]] = {}
        """The tasks by the numbers of their alarms. An alarm that is not here is not set any more."""
        self._numbers = count(1)

    def spawn(self, flow: Flow[T]) -> Task[T]:
        """Begin a piece of logic: it runs up to its first wait now."""
        task = Task(flow, self)
        self._go_on(task, None)
        return task

    def advance(self, now: float) -> None:
        """Let each piece go on whose time has come or whose value is there, until nothing more can go on.

        Times are looked at once: a piece that waits for a time that has passed lets others go first. A function of the
        user may run logic too, and so call this method while it runs.
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
        """The first moment at which a piece goes on in any case, or None."""
        alarms = self._alarms
        while alarms and alarms[0][1] not in self._set:
            heappop(alarms)
        return alarms[0][0] if alarms else None

    def make_ready(self, task: Task[Any]) -> None:
        """Let a piece go on when the schedule advances next. For tasks."""
        if not task.is_ready:
            task.is_ready = True
            self._ready.append(task)
            self._on_ready()

    def drop(self, task: Task[Any]) -> None:
        """Close a piece of logic. If it is running, it is closed when it waits next. For tasks."""
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
        task.is_ready = False
        if task.timer_id:
            del self._set[task.timer_id]
            task.timer_id = 0
        wait, task.wait = task.wait, _NOTHING
        for each in wait.futures:
            each.remove_done_callback(task.wake)


def gather(flow: Sequence[Flow[T]]) -> Flow[list[T | Exception]]:
    """Run pieces of logic at the same time; return their values in order.

    A piece that raises gives its exception as its value. If the caller goes away, all pieces are closed.
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
