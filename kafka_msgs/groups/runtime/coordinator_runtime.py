"""The runtime of a coordinator: the shards of the partitions that it leads, their time, and their output.

Kafka's ``CoordinatorRuntime``. A caller elects the runtime for a partition, loads the records of the partition, passes
in requests and the time, and reports committed records. Each of these calls returns an output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from attrs import define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.coordinator_timer import Timer
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import (
    BackgroundTask,
    CoordinatorOutput,
    MarkerAppend,
    ProducerIdAndEpoch,
    RecordAppend,
)
from kafka_msgs.groups.runtime.shard import Shard
from kafka_msgs.groups.runtime.shard_runtime import CoordinatorDefinition, OperationT, ShardRuntime, StateT
from kafka_msgs.internal_topics.records import InternalRecord
from kafka_msgs.internal_topics.replay import TransactionEnd

__all__ = ["CoordinatorRuntime"]

T = TypeVar("T")


@define
class _PeriodicTask:
    """A task of the whole coordinator. Its first time is due ``interval_ms`` after the first election."""

    interval_ms: int
    run: Callable[[], None]
    catches_up: bool
    at: int = -1
    order: int = 0


class CoordinatorRuntime(Generic[StateT, OperationT]):
    """The shards of a coordinator.

    ``append`` appends a batch or a marker to its partition, and returns the offset after it. It raises ``ApiError`` if
    the append fails. The caller reports committed records with ``committed``, which ``append`` may call itself.

    Each method that takes ``now``, the time in milliseconds, returns its output, except for ``elect`` and ``write``.
    """

    def __init__(
        self,
        definition: CoordinatorDefinition[StateT, OperationT],
        append: Callable[[RecordAppend | MarkerAppend], int],
    ) -> None:
        self.shards: dict[int, Shard[StateT, OperationT]] = {}
        self._next_tick_events: deque[tuple[int, int, Callable[[], None]]] = deque()
        self._periodic: list[_PeriodicTask] = []
        self._elected = False
        self._target = 0
        self._runtime = ShardRuntime(definition=definition, append=append, postpone=self._postpone)
        self._clock = self._runtime.clock
        self._events = self._runtime.events

    # Operations

    def write(self, partition: int, operation: Callable[[OperationT], T | Future[T]], *, now: int) -> Future[T]:
        """Run an operation in a partition. Return the future of its value, settled when its records are committed.

        Other output of the operation is part of the next output.
        """
        self._clock.now = now
        shard = self.shards.get(partition)
        if shard is None:
            return Future.from_error(GroupError(ErrorCode.NOT_COORDINATOR))
        future = shard.submit(operation)
        self._run()
        return future

    def read(self, partition: int, operation: Callable[[OperationT], T]) -> T:
        """Run an operation on the state of a partition as of its last committed record. Raises ``ApiError``."""
        shard = self.shards.get(partition)
        if shard is None:
            raise GroupError(ErrorCode.NOT_COORDINATOR)
        return shard.read(operation)

    def run_in_each(self, operations: Iterable[Callable[[OperationT], object]]) -> None:
        """Run operations in each partition, after the current events. Their errors are ignored."""
        for shard in self.shards.values():
            self._events.extend(partial(shard.run, each) for each in operations)

    # Time, and background tasks

    def run_periodically(self, interval_ms: int, task: Callable[[], None], *, catches_up: bool = True) -> None:
        """Run a task of the whole coordinator periodically, from the first election on.

        If the time jumps by several intervals, the task runs once for each of them, or only once unless it
        ``catches_up``.
        """
        self._periodic.append(_PeriodicTask(interval_ms, task, catches_up))

    @property
    def next_timer(self) -> int | None:
        """The time, in milliseconds, at which the next ``tick`` is due, or None if no timer is scheduled."""
        due = self._next_due()
        return None if due is None else due[0]

    def pending_timers(self) -> list[tuple[str, int]]:
        """Return the key and the deadline in ms of each scheduled timer, in the order of the deadlines."""
        return self._clock.pending()

    def tick(self, now: int) -> CoordinatorOutput:
        """Run all timers that are due at ``now``, each with its own deadline as the time."""
        self._target = now
        while (due := self._next_due()) is not None and due[0] <= now:
            deadline, _, run = due
            self._clock.now = max(self._clock.now, deadline)
            run()
            self._run()
        self._clock.now = max(self._clock.now, now)
        return self._take_output()

    def _next_due(self) -> tuple[int, int, Callable[[], None]] | None:
        """The next due event: its time, its order among all events, which is unique, and its callback."""
        due: list[tuple[int, int, Callable[[], None]]] = []
        if self._elected:
            for task in self._periodic:
                due.append((task.at, task.order, partial(self._run_task, task)))
        if self._next_tick_events:
            due.append((*self._next_tick_events[0][:2], self._run_later))
        if (timer := self._clock.first()) is not None:
            due.append((timer.at, timer.order, self._run_timer))
        if (write := self._runtime.first_waiting()) is not None:
            timed_out = GroupError(ErrorCode.REQUEST_TIMED_OUT)
            due.append((write.deadline, write.order, partial(write.complete, timed_out)))
        return min(due, default=None)

    def _run_timer(self) -> None:
        callback = self._clock.pop_due(self._clock.now)
        assert callback is not None
        callback()

    def _fire(self, shard: Shard[StateT, OperationT], timer: Timer) -> None:
        serving = self.shards.get(shard.partition, shard)
        shard.fire(timer, replaced=serving is not shard and serving.is_active)

    def _postpone(self, event: Callable[[], None]) -> None:
        """Run an event as Kafka's timer without a delay: after all current work, even if the leader has changed."""
        self._next_tick_events.append((self._clock.now, self._clock.next_order(), event))

    def _run_later(self) -> None:
        self._next_tick_events.popleft()[2]()

    def _run_task(self, task: _PeriodicTask) -> None:
        if not task.catches_up:
            self._clock.now = max(self._clock.now, self._target)
        task.run()
        self._schedule(task)

    def _schedule(self, task: _PeriodicTask) -> None:
        task.at, task.order = self._clock.now + task.interval_ms, self._clock.next_order()

    def shift_timers(self, ms: int) -> None:
        """Follow a clock that jumps by ``ms``. Timers keep their remaining time; only ages change."""
        self._clock.now += ms
        self._next_tick_events = deque((at + ms, order, event) for at, order, event in self._next_tick_events)
        for task in self._periodic:
            task.at += ms
        self._clock.shift(ms)
        for write in self._runtime.waiting:
            write.deadline += ms

    def complete_background_task(
        self, work: BackgroundTask, value: Any, error: Exception | None, *, now: int
    ) -> CoordinatorOutput:
        """Accept the result of a background task: its value, or the exception that it raised."""
        self._clock.now = now
        shard = self.shards.get(work.partition)
        if shard is not None:
            shard.finish_work(work, value, error)
        return self._take_output()

    # Partitions

    def elect(self, partition: int, epoch: int, *, now: int) -> bool:
        """Become the leader of a partition at a leader epoch. Return whether the partition must be loaded.

        Until ``loaded`` is called, requests to the partition fail with COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._clock.now = now
        if not self._elected:
            self._elected = True
            for task in self._periodic:
                self._schedule(task)
        shard = self.shards.get(partition)
        if shard is None:
            shard = self.shards[partition] = Shard(partition, self._runtime, self._fire)
        return shard.elect(epoch)

    def load(
        self, partition: int, records: Iterable[InternalRecord | TransactionEnd], first_offset: int | None = None
    ) -> None:
        """Load records of a partition, in order. The caller may split them over any number of calls.

        ``first_offset`` is the offset of the first of them. Without it they follow the records loaded before.
        """
        self.shards[partition].load(records, first_offset)

    def loaded(self, partition: int, end: int = 0, *, now: int) -> CoordinatorOutput:
        """Finish loading a partition. ``end`` is the offset after the last record of the log."""
        self._clock.now = now
        self.shards[partition].loaded(end)
        return self._take_output()

    def load_failed(self, partition: int, *, now: int) -> CoordinatorOutput:
        """Record that the log of a partition could not be read. Its requests fail with NOT_COORDINATOR."""
        self._clock.now = now
        self.shards[partition].load_failed()
        return self._take_output()

    def resign(self, partition: int, epoch: int | None, *, now: int) -> CoordinatorOutput:
        """Resign from a partition whose leadership moved at an epoch. None means at any epoch."""
        self._clock.now = now
        shard = self.shards.get(partition)
        if shard is not None and shard.resign(epoch):
            del self.shards[partition]
        return self._take_output()

    def committed(self, partition: int, offset: int, *, now: int | None = None) -> CoordinatorOutput:
        """Record that the records of a partition before ``offset`` are committed.

        ``append`` may call this without ``now``. The output is then part of the current call's output.
        """
        shard = self.shards.get(partition)
        if shard is not None:
            self._events.appendleft(partial(shard.commit, offset))
        if now is None:
            return CoordinatorOutput()
        self._clock.now = now
        return self._take_output()

    def write_end_transaction(
        self,
        partition: int,
        producer: ProducerIdAndEpoch,
        committed: bool,
        done: Callable[[Any, ApiError | None], None],
        *,
        now: int,
    ) -> CoordinatorOutput:
        """End a transaction in a partition, by commit or by abort. ``done`` is called with None and the error."""
        self._clock.now = now
        shard = self.shards.get(partition)
        if shard is None:
            done(None, GroupError(ErrorCode.NOT_COORDINATOR))
        else:
            shard.end_transaction(producer, committed, done)
        return self._take_output()

    # Output

    def _run(self) -> None:
        events = self._events
        while events:
            events.popleft()()

    def take_output(self, *, now: int) -> CoordinatorOutput:
        """Return the output of earlier calls of ``write``."""
        self._clock.now = now
        return self._take_output()

    def _take_output(self) -> CoordinatorOutput:
        """Run pending events, and return the output."""
        self._run()
        output, self._runtime.output = self._runtime.output, CoordinatorOutput()
        output.scheduled, self._clock.scheduled = self._clock.scheduled, output.scheduled
        return output
