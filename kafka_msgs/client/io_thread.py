"""The I/O thread of a client, and the calls that other threads make into it.

The flows, connections and timers of a client belong to the I/O thread. Other threads pass work to it (``run``,
``post``) and wait on a lock. So signal handlers raise exceptions in the user's thread only, and never interrupt a flow.
The thread starts with the first call. It is a daemon that ``close`` and the exit of the process join. A child process
cannot use an inherited network (``ForkedError``).
"""

from __future__ import annotations

import atexit
import logging
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from kafka_msgs.client.blocking import BlockingNetwork
from kafka_msgs.client.flow import Flow, Future, Wait
from kafka_msgs.client.helper_threads import call_in_thread
from kafka_msgs.client.scheduler import Task
from kafka_msgs.client.sockets import creating_socket
from kafka_msgs.errors import ClientBrokenError, ClientClosedError, KafkaMsgsError

__all__ = ["IOThread"]

T = TypeVar("T")

_LOG: Final = logging.getLogger("kafka_msgs.client.io")
_EXIT_TIMEOUT: Final = 5.0
"""Seconds that the exit of the process waits for producers to deliver records and consumers to leave groups."""
_started: Final[set[IOThread]] = set()
"""The running threads. The exit of the process ends them."""


class _Call(Generic[T]):
    """A flow that another thread waits for, and the user callbacks that this thread runs meanwhile."""

    __slots__ = ("done", "error", "flow", "functions", "futures", "lock", "task")

    def __init__(self, flow: Flow[T]) -> None:
        self.flow = flow
        self.task: Task[T] | None = None
        self.done = False
        self.error: Exception | None = None
        self.lock = threading.Lock()
        self.lock.acquire()
        self.functions: deque[tuple[Callable[..., Any], tuple[Any, ...], Future[Any]]] = deque()
        self.futures: list[Future[Any]] = []
        """The futures of all callbacks that the waiting thread runs."""

    def wake(self) -> None:
        """Wake the waiting thread to check for changes."""
        if self.lock.locked():
            self.lock.release()

    def finish(self, error: Exception | None = None) -> None:
        """End the wait of the other thread, with the value of the task or with an error."""
        if not self.done:
            self.done, self.error = True, error
            self.wake()

    def result(self) -> T:
        """Return the value. Raises the error of the task, or the error that ended the call."""
        if self.error is not None:
            raise self.error
        assert self.task is not None
        return self.task.result()


class IOThread(BlockingNetwork):
    """The loop in a dedicated thread. Any thread may call ``run``, ``post`` and ``close``."""

    def __init__(self) -> None:
        super().__init__(Exception)
        self._inbox: deque[tuple[Callable[[], object], _Call[Any] | None]] = deque()
        self._thread: threading.Thread | None = None
        self._ident = 0
        self._starting = threading.Lock()
        self._awake = True
        self._stopping = False
        self._end: Exception | None = None
        """The error for new calls after the end."""
        self._calls: list[_Call[Any]] = []
        self._serving: list[_Call[Any]] = []
        self._wake_up_pair: tuple[socket.socket, ...] = ()
        """The socket that the thread polls, and the socket that wakes it."""

    # Called by any thread

    def now(self) -> float:
        """Return the time in seconds; inside a flow, the time of the current turn."""
        time = self._turn_time
        return time if time is not None and threading.get_ident() == self._ident else self.monotonic()

    def run(self, flow: Flow[T]) -> T:
        """Run a flow in the I/O thread, and wait for its value. Raises the exceptions of the flow.

        User callbacks that the flow passes to ``perform_in_poll`` run in the calling thread meanwhile. An exception
        that interrupts the wait cancels the flow.
        """
        self._check_caller(flow)
        call = _Call(flow)
        try:
            self.post(lambda: self._begin(call), call)
            while not call.done:
                call.lock.acquire()
                while call.functions:
                    self._serve(call)
        except BaseException:
            self._post_quietly(lambda: self._abandon(call))
            raise
        return call.result()

    def post(self, function: Callable[[], object], call: _Call[Any] | None = None) -> None:
        """Call a function soon in the I/O thread. Functions posted after the end are not called."""
        self._check_usable()
        self._inbox.append((function, call))
        if self._thread is None:
            self._start_thread()
        if self._end is not None:
            self._reject(self._end)
        self._wake_up()

    def close(self) -> None:
        """Close every connection, and end the thread. Pending calls raise ``ClientClosedError``."""
        if self._forked:
            return
        with self._starting:
            thread, self._closed = self._thread, True
            if thread is None and self._end is None:
                self._finish(ClientClosedError())
        if thread is not None and self._end is None:
            self._inbox.append((self._stop, None))
            self._wake_up()
        if thread is not None and not self.in_io_thread:
            thread.join()

    @property
    def in_io_thread(self) -> bool:
        """Whether the caller is the I/O thread."""
        return threading.get_ident() == self._ident

    @property
    def is_started(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._end is None and not (self._closed or self._forked)

    def dispose(self, flow: Flow[None] | None, *, ends: bool) -> None:
        """End an unclosed facade without waiting."""
        self._post_quietly(lambda: self.spawn(self._disposing(flow, ends)))

    def _disposing(self, flow: Flow[None] | None, ends: bool) -> Flow[None]:
        try:
            if flow is not None:
                yield from flow
        except KafkaMsgsError as error:
            _LOG.warning("a client that was not closed could not be closed in order: %s", error)
        finally:
            self._stopping = self._stopping or ends

    def turn(self) -> None:
        """Do nothing: the thread advances the flows."""

    def _check_caller(self, flow: Flow[Any]) -> None:
        try:
            self._check_usable()
            if self.in_io_thread:
                raise RuntimeError("a blocking method was called in the I/O thread of its own client")
        except BaseException:
            flow.close()
            raise

    def _check_usable(self) -> None:
        if isinstance(self._end, ClientBrokenError):
            raise ClientBrokenError(cause=self._end.cause)
        super()._check_usable()

    def _start_thread(self) -> None:
        """Start a thread. If an exception interrupts this, a second thread may start, but only one of them stays."""
        with self._starting:
            if self._thread is None and not self._closed:
                threading.Thread(target=self._main, name="kafka-msgs-io", daemon=True).start()

    def _wake_up(self) -> None:
        if self._awake:
            return
        try:
            self._awake = True
            self._wake_up_pair[1].send(b"x")
        except OSError:  # full: the thread wakes anyway; closed: it has ended
            return
        except BaseException:  # from a signal handler: the byte may be unsent
            self._awake = False
            raise

    def _serve(self, call: _Call[Any]) -> None:
        """Run the next user callback of a call in the user's thread."""
        function, arguments, future = call.functions[0]
        try:
            value = function(*arguments)
        except Exception as failure:
            error = failure
            self.post(lambda: future.fail(error))
        else:
            self.post(lambda: future.resolve(value))
        finally:
            call.functions.popleft()

    # Called by the I/O thread

    def perform_in_poll(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a user callback in the thread that waits in ``run``, and return its result."""
        future: Future[Any] = Future()
        if not self._calls:
            future.fail(ClientClosedError())
            return future
        call = self._calls[-1]
        call.futures.append(future)
        call.functions.append((function, arguments, future))
        call.wake()
        return future

    def run_callback(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a user callback in a helper thread, because it may block, and return its result."""
        return self.offload(function, *arguments)

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a blocking function in a helper thread, and return its result."""
        return call_in_thread(function, arguments, self._post_quietly)

    def _post_quietly(self, function: Callable[[], object]) -> None:
        with suppress(KafkaMsgsError):  # the client may have ended meanwhile, and what the function is about with it
            self.post(function)

    def _begin(self, call: _Call[T]) -> None:
        self._calls.append(call)
        task = call.task = self._start(call.flow)
        if task.done:
            self._ended(call)
        else:
            task.add_done_callback(lambda: self._ended(call))

    def _ended(self, call: _Call[Any]) -> None:
        self._forget_call(call)
        call.finish()

    def _abandon(self, call: _Call[Any]) -> None:
        """Cancel a call after its waiting thread was interrupted."""
        if call.task is not None:
            call.task.cancel()
        for future in call.futures:
            future.fail(ClientClosedError())
        self._forget_call(call)

    def _forget_call(self, call: _Call[Any]) -> None:
        if call in self._calls:
            self._calls.remove(call)

    def _stop(self) -> None:
        self._stopping = True

    def _main(self) -> None:
        with self._starting:
            if self._thread is not None or self._end is not None:
                return
            self._thread, self._ident = threading.current_thread(), threading.get_ident()
            self._open_wake_up_pair()
            _started.add(self)
        self._turn_time = self.monotonic()
        error: Exception = ClientClosedError()
        try:
            self._loop()
        except BaseException as cause:
            _LOG.exception("the I/O thread of a client ended")
            error = ClientBrokenError(cause=cause)
        finally:
            self._finish(error)

    def _open_wake_up_pair(self) -> None:
        with creating_socket:
            self._wake_up_pair = socket.socketpair()
        for each in self._wake_up_pair:
            each.setblocking(False)
        self._poll.register(self._wake_up_pair[0], select.POLLIN)

    def _close_wake_up_pair(self) -> None:
        for each in self._wake_up_pair:
            each.close()

    def _loop(self) -> None:
        while True:
            self._advance()
            if self._stopping:
                return
            self._look()

    def _advance(self) -> None:
        """Run posted functions, advance the flows, and write."""
        while self._inbox:
            self._inbox.popleft()[0]()
        super()._advance()

    def _wait(self, moment: float | None) -> None:
        self._awake = False
        limit = 0 if self._inbox or self._unsent else self._poll_limit(moment)
        self._handle(self._poll.poll(limit))
        self._awake = True

    def _handle(self, events: list[tuple[int, int]]) -> None:
        reader = self._wake_up_pair[0]
        if any(descriptor == reader.fileno() for descriptor, _ in events):
            reader.recv(1 << 12)
        super()._handle(events)

    def _finish(self, error: Exception) -> None:
        """Close the network. All waiting threads receive the error."""
        self._end = error
        self._end_all(error)
        for call in tuple(self._calls):
            if call.task is not None:
                call.task.cancel(error)
            call.finish(error)
        self._reject(error)
        self._ident, self._turn_time = 0, None
        _started.discard(self)
        self._close_wake_up_pair()

    def _reject(self, error: Exception) -> None:
        """End calls that were posted after the end."""
        while self._inbox:
            call = self._inbox.popleft()[1]
            if call is not None:
                call.flow.close()
                call.finish(error)

    # Fork and exit of the process

    def leave_to_parent(self) -> None:
        """Close the inherited descriptors in a child process, without sending anything to the brokers."""
        _started.discard(self)
        self._ident = 0
        self._inbox.clear()
        self._close_wake_up_pair()
        super().leave_to_parent()

    def exit(self) -> None:
        """Deliver pending records within a few seconds, then end the thread. For the exit of the process."""
        try:
            self.run(self._close_users(self.monotonic() + _EXIT_TIMEOUT))
        except (KafkaMsgsError, RuntimeError) as error:
            _LOG.warning("a client was not closed in order at the exit: %s", error)
        finally:
            self.close()

    def _close_users(self, deadline: float) -> Flow[None]:
        for task in [self.spawn(flow) for flow in self.events.exit(deadline)]:
            if not task.done:
                yield Wait((task,), deadline)
            task.cancel()
            if task.error is not None:
                _LOG.warning("a client was not closed in order at the exit: %s", task.error)


def _at_exit() -> None:
    for thread in tuple(_started):
        thread.exit()


getattr(threading, "_register_atexit", atexit.register)(_at_exit)
