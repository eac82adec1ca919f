"""One thread that does all input and output of a client, and the calls that other threads make into it.

The logic of a client, its connections and its timers belong to the I/O thread. Other threads hand it work
(``run``, ``post``) and wait on a lock. Exceptions of signal handlers are raised in the thread of the user only, so no
logic is ever interrupted in the middle. The thread starts with the first call, and is a daemon that ``close`` joins.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from attrs import define

from kafka_msgs.client.blocking import BlockingNetwork
from kafka_msgs.client.helper_threads import call_in_thread
from kafka_msgs.client.schedule import Task
from kafka_msgs.client.waiting import Pending, Steps
from kafka_msgs.errors import ClientError

__all__ = ["IOThread", "SelectThread"]

T = TypeVar("T")

log = logging.getLogger("kafka_msgs.client.io")
_live: weakref.WeakSet[IOThread] = weakref.WeakSet()


@define(kw_only=True, slots=False, repr=False)
class ForkedError(ClientError):
    """A client was used in a child process that inherited it."""

    def _text(self) -> str:
        return "the client was made before a fork; make a client in the child process"


class _Call(Generic[T]):
    """A piece of logic that another thread waits for, and functions of the user that run in that thread meanwhile."""

    __slots__ = ("functions", "lock", "steps", "task", "value")

    def __init__(self, steps: Steps[T]) -> None:
        self.steps = steps
        self.task: Task[T] | None = None
        self.lock = threading.Lock()
        self.lock.acquire()
        self.functions: deque[tuple[Callable[..., Any], tuple[Any, ...], Pending[Any]]] = deque()

    def wake(self) -> None:
        if self.lock.locked():
            self.lock.release()


class IOThread:
    """What both kinds of I/O thread have: an inbox, and calls of other threads."""

    _start: Callable[[Steps[Any]], Task[Any]]

    def _prepare(self) -> None:
        self._inbox: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None
        self._ident = 0
        self._starting = threading.Lock()
        self._stopping = False
        self._finished = False
        self._forked = False
        self._callers: list[_Call[Any]] = []
        self.at_fork: list[Callable[[], object]] = []
        _live.add(self)

    # Called by any thread

    def run(self, steps: Steps[T], *, serves: bool = False) -> T:
        """Let the I/O thread run a piece of logic, and wait for its value. Raises what it raises.

        With ``serves``, functions of the user that logic calls meanwhile run in this thread.
        """
        if threading.get_ident() == self._ident:
            steps.close()
            raise RuntimeError("a blocking method was called in the I/O thread of its client")
        call = _Call(steps)
        self.post(lambda: self._begin(call, serves))
        try:
            while True:
                call.lock.acquire()
                while call.functions:
                    self._serve(call)
                if call.task is not None and call.task.done:
                    return call.task.result()
        except BaseException:
            if call.task is None or not call.task.done:
                self.post(lambda: self._abandon(call))
            raise

    def post(self, function: Callable[[], object]) -> None:
        """Let the I/O thread call a function soon."""
        if self._forked:
            raise ForkedError()
        if self._thread is None:
            self._start_thread()
        self._inbox.append(function)
        self._wake_up()

    @property
    def in_io_thread(self) -> bool:
        """Whether the caller is the I/O thread."""
        return threading.get_ident() == self._ident

    def join(self) -> None:
        """End the thread, after everything that was posted."""
        if self._thread is not None and not self._forked and not self.in_io_thread:
            self._inbox.append(self._stop)
            self._wake_up()
            self._thread.join()

    def _start_thread(self) -> None:
        with self._starting:
            if self._thread is None:
                if self._finished:
                    raise ConnectionAbortedError("the client was closed")
                self._thread = threading.Thread(target=self._main, name="kafka-msgs-io", daemon=True)
                self._thread.start()

    def _serve(self, call: _Call[Any]) -> None:
        """Run a function of the user in the thread of the user."""
        function, arguments, pending = call.functions.popleft()
        try:
            value = function(*arguments)
        except Exception as error:
            failure = error
            self.post(lambda: pending.fail(failure))
        except BaseException:
            self.post(lambda: pending.fail(ConnectionAbortedError("the program interrupted the function")))
            raise
        else:
            self.post(lambda: pending.resolve(value))

    # Called by the I/O thread

    def _begin(self, call: _Call[T], serves: bool) -> None:
        if serves:
            self._callers.append(call)
        task = call.task = self._start(call.steps)
        if task.done:
            self._ended(call)
        else:
            task.on_done(lambda: self._ended(call))

    def _ended(self, call: _Call[Any]) -> None:
        if call in self._callers:
            self._callers.remove(call)
        call.wake()

    def _abandon(self, call: _Call[Any]) -> None:
        if call.task is not None:
            call.task.cancel()
        if call in self._callers:
            self._callers.remove(call)

    def perform_in_poll(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function of the user in the thread that polls."""
        pending: Pending[Any] = Pending()
        if not self._callers:
            pending.fail(ConnectionAbortedError("nobody polls"))
            return pending
        call = self._callers[-1]
        call.functions.append((function, arguments, pending))
        call.wake()
        return pending

    def perform(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function of the user in a helper thread: it may block."""
        return self.offload(function, *arguments)

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function that blocks in a helper thread."""
        return call_in_thread(function, arguments, self.post)

    def call_user(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a callback of the user now. Its exceptions are logged."""
        try:
            function(*arguments)
        except Exception:
            log.exception("a callback raised: %r", function)

    def _stop(self) -> None:
        self._stopping = True

    def _main(self) -> None:
        raise NotImplementedError

    def _wake_up(self) -> None:
        raise NotImplementedError

    # Fork

    def forget_parent(self) -> None:
        """In a child: nothing here may be used any more. The descriptors are closed, nothing is sent."""
        self._forked = True
        for function in self.at_fork:
            function()


class SelectThread(IOThread, BlockingNetwork):
    """The I/O thread on sockets and ``poll``."""

    def __init__(self) -> None:
        BlockingNetwork.__init__(self)
        self._prepare()
        self._awake = True
        self._now = time.monotonic()
        self._bell, self._rope = socket.socketpair()
        self._bell.setblocking(False)
        self._rope.setblocking(False)
        self._poll.register(self._bell, 1)

    def now(self) -> float:
        """Return the time. In the I/O thread it is that of the turn: nothing is late whose answer has arrived."""
        return self._now if self.in_io_thread else time.monotonic()

    wall = staticmethod(time.monotonic)

    def close(self) -> None:
        """Close every connection, and end the thread."""
        if self._forked:
            return
        if self._thread is not None:
            self.post(lambda: BlockingNetwork.close(self))
            self.join()
        self._finished = True
        self._bell.close()
        self._rope.close()

    def turn(self) -> None:
        """(Tests of the former driver call this.)"""
        time.sleep(0.0005)

    def _wake_up(self) -> None:
        if not self._awake:
            self._awake = True
            try:
                self._rope.send(b"x")
            except BlockingIOError:
                pass

    def _on_ready(self) -> None:
        pass

    def _main(self) -> None:
        self._ident = threading.get_ident()
        self._now = time.monotonic()
        inbox, schedule = self._inbox, self._schedule
        try:
            while not self._stopping:
                while inbox:
                    inbox.popleft()()
                schedule.advance(self._now)
                self._send()
                moment = schedule.next_moment
                self._awake = False
                limit: float | None = 0.0 if inbox or self._unsent or self._stopping else None
                if limit is None and moment is not None:
                    limit = min(max(0.0, moment - time.monotonic()) * 1000, 1 << 30)
                self._take(self._poll.poll(limit))
                self._awake = True
                after = time.monotonic()
                if moment is not None and moment <= after:
                    # The process may have been stopped for a while: look once more before anybody is late.
                    self._take(self._poll.poll(0))
                self._now = after
        except BaseException:
            log.exception("the I/O thread ended")
            raise
        finally:
            self._ident = 0
            self._finished = True

    def _take(self, events: list[tuple[int, int]]) -> None:
        bell = self._bell.fileno()
        for descriptor, what in events:
            if descriptor == bell:
                try:
                    self._bell.recv(4096)
                except BlockingIOError:
                    pass
            elif descriptor in self._transports:
                self._transports[descriptor].ready(what)

    def forget_parent(self) -> None:
        super().forget_parent()
        for transport in self._transports.values():
            if transport._socket is not None:
                os.close(transport._socket.detach())
                transport._socket = None
        self._transports.clear()
        self._poll = None  # type: ignore[assignment]
        self._bell.close()
        self._rope.close()


def _after_fork() -> None:
    for each in tuple(_live):
        each.forget_parent()


os.register_at_fork(after_in_child=_after_fork)
