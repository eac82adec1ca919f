"""The caller and the I/O thread of a client on simulated time: one of them runs at a time, and a plan switches them.

A ``Plan`` lets the caller run some steps of the client, then the I/O thread some steps, then the caller again, and so
on. So a test can enumerate the interleavings of a call with the work of the I/O thread: each executed line of the
modules with shared state is a step, or each line that takes a lock or accesses shared state. Locks exclude the other
thread as real locks do.
"""

from __future__ import annotations

import linecache
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from math import inf
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from kafka_msgs.client import Client, ClientConfig
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, sleep_until
from kafka_msgs.client.scheduler import Task
from tests.support.simulated_network import SimulatedNetwork

__all__ = ["Plan", "SteppedClient", "SteppedLock", "SteppedNetwork"]

T = TypeVar("T")

_SHARED = (
    "consumer/assigned_partitions.py", "consumer/consumer_state.py", "consumer/core.py", "consumer/fetch_collector.py",
    "consumer/fetcher.py", "consumer/positions.py", "consumer/record_collector.py", "consumer/record_taker.py",
    "producer/batch_completion.py", "producer/core.py", "producer/delivery.py", "producer/producer_batch.py",
    "producer/record_accumulator.py",
)  # fmt: skip
"""The modules that access positions, buffers and open batches."""
_ACCESS = re.compile(r"lock|position|handled|buffer|\bopen|\.incomplete|\.batches")
"""The lines that take a lock or access the state which both threads use."""
_TURN = 1.0
"""The limit of a turn of the I/O thread in simulated seconds."""
_NEVER = sys.float_info.max
_LIMIT = 60.0
"""Seconds after which a switch that never ends fails the test."""


class Plan(NamedTuple):
    """The steps of each turn of the threads. The first turn is the caller's, which continues after the last one.

    A step is an executed line of the shared modules, or, with ``accesses``, a line that takes a lock or accesses shared
    state. A turn of the I/O thread also ends when it waits for a lock, and before a second of simulated time passes.
    """

    steps: tuple[int, ...]
    accesses: bool = False


class SteppedNetwork(SimulatedNetwork):
    """A simulated network whose flows run in a second thread, which runs only when the caller waits or is switched."""

    def __init__(self) -> None:
        super().__init__()
        self.caller_steps = 0
        """The steps of the caller during the last ``follow``."""
        self._plan = Plan(())
        self._turns: deque[int] = deque()
        self._turn_of_io = self._traces = False
        self._turn_end = 0.0
        self._inbox: deque[Callable[[], object]] = deque()
        self._batons = threading.Semaphore(0), threading.Semaphore(0)
        self._waits_for: list[object] = [None, None]
        self._error: BaseException | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    # The switches

    @property
    def in_io_thread(self) -> bool:
        """Whether this is the I/O thread."""
        return threading.current_thread() is self._thread

    def switch(self) -> None:
        """Run the other thread until it switches back."""
        me = self.in_io_thread
        self._batons[not me].release()
        assert self._batons[me].acquire(timeout=_LIMIT), "the other thread never switches back"
        if me and self._stopping:
            raise SystemExit
        if self._error is not None and not me:
            error, self._error = self._error, None
            raise error

    def wait_for(self, reason: object) -> None:
        """Run the other thread until it calls ``notify`` with this reason."""
        me = self.in_io_thread
        self._waits_for[me] = reason
        if me:
            self._end_turn(me)
        while self._waits_for[me] is reason:
            assert self._waits_for[not me] is None, "both threads wait"
            self.switch()

    def notify(self, reason: object) -> None:
        """End the wait of the other thread. The caller continues at once, the I/O thread at the next switch."""
        me = self.in_io_thread
        if self._waits_for[not me] is reason:
            self._waits_for[not me] = None
            if me:
                self._end_turn(me)
                self.switch()

    @contextmanager
    def follow(self, plan: Plan) -> Iterator[None]:
        """Switch the threads by a plan while the block runs."""
        self.caller_steps = 0
        self._plan, self._turns = plan, deque(plan.steps)
        self._turn_of_io, self._traces = False, True
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)
            self._traces = False

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self._traces or not frame.f_code.co_filename.endswith(_SHARED):
            return None
        if event == "line" and not (self._plan.accesses and not _is_access(frame.f_code, frame.f_lineno)):
            self._step(self.in_io_thread)
        return self._trace

    def _step(self, me: bool) -> None:
        self.caller_steps += not me
        if me is self._turn_of_io and self._turns:
            self._turns[0] -= 1
            if self._turns[0] == 0:
                self._end_turn(me)
                if me or self._turns:
                    self.switch()

    def _end_turn(self, me: bool) -> None:
        if me is self._turn_of_io and self._turns:
            self._turns.popleft()
            self._turn_of_io = not me
            self._turn_end = self.time + _TURN

    # The interface of an I/O thread, for the caller

    is_started = is_forked = False

    def turn(self) -> None:
        """Do nothing: the I/O thread advances the flows."""

    def run(self, flow: Flow[T]) -> T:
        """Run a flow in the I/O thread, and wait for its value."""
        assert not self.in_io_thread
        tasks: list[Task[T]] = []

        def begin() -> None:
            task = self._start(flow)
            tasks.append(task)
            if task.done:
                self.notify(tasks)
            else:
                task.add_done_callback(lambda: self.notify(tasks))

        self._inbox.append(begin)
        self.wait_for(tasks)
        return tasks[0].result()

    def post(self, function: Callable[[], object]) -> None:
        """Call a function soon in the I/O thread."""
        self._inbox.append(function)

    def settle(self, seconds: float) -> None:
        """Advance the simulated time in the I/O thread."""
        self.run(sleep_until(self.time + seconds))

    def close(self) -> None:
        """End the I/O thread."""
        self._stopping = True
        self._batons[True].release()
        self._thread.join(_LIMIT)

    # The I/O thread

    def _main(self) -> None:
        self._batons[True].acquire()
        sys.settrace(self._trace)
        while not self._stopping:
            try:
                self._turn()
            except SystemExit:
                return
            except BaseException as error:
                self._error = error
                self._waits_for[False] = None
                self.switch()

    def _turn(self) -> None:
        while self._inbox:
            self._inbox.popleft()()
        self._advance()
        if self._inbox:
            return
        limited = self._traces and self._turn_of_io and self._turns
        if self._next_event() <= (self._turn_end if limited else _NEVER):
            self._look()
        else:
            self._end_turn(self.in_io_thread)
            self.switch()

    def _next_event(self) -> float:
        """Return when the I/O thread next has work, or infinity."""
        if self._arrived:
            return self.time
        deadline = self._schedule.next_deadline
        return min(inf if deadline is None else deadline, self._agenda[0][0] if self._agenda else inf)


class SteppedLock:
    """A reentrant lock of a ``SteppedNetwork``: waiting for it runs the other thread."""

    def __init__(self, network: SteppedNetwork) -> None:
        self._network = network
        self._owner: bool | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = self._network.in_io_thread
        while self._owner not in (None, me):
            self._network.wait_for(self)
        self._owner = me
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._network.notify(self)


class SteppedClient(Client):
    """A blocking client on a ``SteppedNetwork``."""

    def __init__(self, network: SteppedNetwork, servers: str, **settings: Any) -> None:
        self._has_owner = True
        self.threadless = False
        self.network = network  # type: ignore[assignment]
        self.core = ClientCore(ClientConfig(bootstrap_servers=servers, **settings), network)


@cache
def _is_access(code: CodeType, line: int | None) -> bool:
    return _ACCESS.search(linecache.getline(code.co_filename, line or 0)) is not None
