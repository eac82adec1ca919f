"""Concurrent flows: when each flow resumes, how it ends, and the release of its value."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.client.aio import AsyncNetwork
from kafka_msgs.client.blocking import BlockingNetwork
from kafka_msgs.client.flow import Flow, Future, Wait, sleep_until
from kafka_msgs.client.scheduler import Scheduler, Task
from kafka_msgs.errors import ClientBrokenError, ClientClosedError, DeadlineError
from tests.support.simulated_network import SimulatedNetwork


def a_schedule() -> Scheduler:
    return Scheduler(lambda: None)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30))
def test_pieces_go_on_at_their_times_and_in_order(times: list[tuple[int, int]]) -> None:
    schedule = a_schedule()
    seen: list[tuple[int, float]] = []

    def piece(number: int, moments: tuple[int, int]) -> Flow[int]:
        for moment in moments:
            seen.append((moment, (yield Wait((), float(moment)))))
        return number

    tasks = [schedule.spawn(piece(number, moments)) for number, moments in enumerate(times)]
    now = 0.0
    while (moment := schedule.next_deadline) is not None:
        now = max(now, moment)
        schedule.advance(now)
    assert [task.result() for task in tasks] == list(range(len(times)))
    assert all(at >= wanted for wanted, at in seen)
    assert sorted(at for _, at in seen) == [at for _, at in seen]
    assert sorted(at for _, at in seen) == sorted(
        float(at) for first, second in times for at in (first, max(first, second))
    )


def test_what_a_piece_makes_lets_others_go_on_at_once() -> None:
    values = [Future[int]() for _ in range(5)]
    schedule = a_schedule()

    def piece(number: int) -> Flow[int]:
        yield Wait((values[number],), None)
        if number:
            values[number - 1].resolve(number)
        return values[number].result()

    tasks = [schedule.spawn(piece(number)) for number in range(5)]
    values[4].resolve(5)
    schedule.advance(0.0)
    assert [task.result() for task in tasks] == [1, 2, 3, 4, 5]


def test_a_piece_that_is_cancelled_while_it_runs_ends_where_it_waits_next() -> None:
    schedule = a_schedule()
    closed: list[str] = []
    tasks: list[Task[None]] = []

    def piece() -> Flow[None]:
        try:
            yield Wait((), 1.0)
            tasks[0].cancel()
            yield Wait((), 2.0)
            closed.append("it went on")
        finally:
            closed.append("closed")

    tasks.append(schedule.spawn(piece()))
    schedule.advance(1.0)
    assert closed == ["closed"]
    with pytest.raises(DeadlineError):
        tasks[0].result()
    assert schedule.next_deadline is None


def test_logic_that_a_piece_runs_may_advance_the_others() -> None:
    network = SimulatedNetwork()
    seen: list[str] = []

    def outer() -> Flow[None]:
        yield Wait((), network.time + 1)
        network.run(sleep_until(network.time + 5))
        seen.append("outer")

    def inner() -> Flow[None]:
        yield Wait((), network.time + 3)
        seen.append("inner")

    network.spawn(inner())
    network.run(outer())
    assert seen == ["inner", "outer"]
    assert network.task_count == 0


def test_alarms_that_are_not_needed_any_more_take_no_room() -> None:
    schedule = a_schedule()

    def piece() -> Flow[None]:
        for _ in range(5000):
            value = Future[None]()
            value.resolve(None)
            yield Wait((Future(), woken), 1e9)

    woken: Future[None] = Future()
    task = schedule.spawn(piece())
    while not task.done:
        before, woken = woken, Future()
        before.resolve(None)
        schedule.advance(0.0)
        assert len(schedule._alarms) < 200
    assert schedule.next_deadline is None


def test_the_value_of_a_piece_that_ended_is_not_kept() -> None:
    class Value:
        pass

    schedule = a_schedule()
    woken: Future[None] = Future()

    def piece() -> Flow[Value]:
        yield Wait((woken,), 1e9)
        return Value()

    task = schedule.spawn(piece())
    woken.resolve(None)
    schedule.advance(0.0)
    seen = weakref.ref(task.result())
    del task
    gc.collect()
    assert seen() is None


def test_an_interruption_ends_everything_and_the_next_call_begins_anew() -> None:
    network = BlockingNetwork()

    def interrupted() -> Flow[None]:
        yield Wait((), network.now())
        raise KeyboardInterrupt

    def other() -> Flow[int]:
        yield Wait((), network.now())
        return 5

    task, left = network.spawn(interrupted()), network.spawn(other())
    with pytest.raises(KeyboardInterrupt):
        network.run(sleep_until(network.now() + 60))
    assert task.done
    assert isinstance(left.error, ClientBrokenError)
    assert network.task_count == 0
    assert network.run(other()) == 5
    network.close()


def drive(network: str, make: Callable[[Any], Flow[Any]]) -> Any:
    """Run a flow on a driver; ``make`` receives the network."""
    if network == "blocking":
        with_sockets = BlockingNetwork()
        try:
            return with_sockets.run(make(with_sockets))
        finally:
            with_sockets.close()

    async def main() -> Any:
        on_loop = AsyncNetwork()
        try:
            return await on_loop.run(make(on_loop))
        finally:
            await on_loop.close()

    return asyncio.run(main()) if network == "asyncio" else (lambda net: net.run(make(net)))(SimulatedNetwork())


@pytest.mark.parametrize("network", ["blocking", "asyncio", "simulated"])
def test_every_driver_runs_what_is_spawned_beside_what_is_run(network: str) -> None:
    def main(driver: Any) -> Flow[list[object]]:
        woken: Future[str] = Future()

        def waits() -> Flow[str]:
            yield Wait((woken,), driver.now() + 60)
            return woken.result()

        def wakes() -> Flow[None]:
            yield from sleep_until(driver.now() + 0.001)
            woken.resolve("woken")

        def fails() -> Flow[None]:
            yield from sleep_until(driver.now())
            raise ClientClosedError()

        tasks: list[Task[Any]] = [driver.spawn(each()) for each in (waits, wakes, fails)]
        performed = [driver.run_callback(int, "5"), driver.run_callback(int, "five")]
        for task in tasks:
            while not task.done:
                yield Wait((task,), driver.now() + 60)
        assert driver.task_count == 0
        return [tasks[0].result(), str(tasks[2].error), performed[0].result(), str(performed[1].error)[:15]]

    assert drive(network, main) == ["woken", "the client is closed", 5, "invalid literal"]


def test_a_call_on_asyncio_that_is_cancelled_cleans_up() -> None:
    closed: list[bool] = []

    def piece() -> Flow[None]:
        try:
            yield Wait((Future(),), None)
        finally:
            closed.append(True)

    async def main() -> None:
        network = AsyncNetwork()
        call = asyncio.ensure_future(network.run(piece()))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert closed == [True]
        await network.close()

    asyncio.run(main())


class InterruptionError(BaseException):
    """The exception of a signal handler."""


def interrupt_at(line: int) -> Callable[..., Any]:
    """Return a trace function that raises at an executed line of the scheduler and of futures."""
    left = line

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(("client/scheduler.py", "client/flow.py")):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise InterruptionError
        return trace

    return trace


@pytest.mark.parametrize("of_cancel", [False, True], ids=["wait", "cancel"])
def test_a_signal_may_interrupt_the_start_and_the_end_of_a_wait(of_cancel: bool) -> None:
    before = sys.gettrace()
    for line in itertools.count(1):
        schedule = a_schedule()
        begin, *futures = Future[None](), Future[None](), Future[None]()
        for each in futures:
            each.add_done_callback(lambda: None)

        def piece(first: Future[None] = begin, later: Sequence[Future[None]] = futures) -> Flow[None]:
            yield Wait((first,), None)
            yield Wait(later, 5.0)

        task = schedule.spawn(piece())
        interrupted = False
        try:
            if not of_cancel:
                sys.settrace(interrupt_at(line))
            begin.resolve(None)
            schedule.advance(1.0)
            if of_cancel:
                sys.settrace(interrupt_at(line))
                task.cancel()
        except InterruptionError:
            interrupted = True
        finally:
            sys.settrace(before)
        schedule.drop(task)
        assert task.flow.gi_frame is None  # type: ignore[attr-defined]
        assert schedule.next_deadline is None
        if not interrupted:
            break
    assert line > 10
