"""Timers expire in the order of their deadlines, however often they are rescheduled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.coordinator_timer import CoordinatorTimer, TimerClock

_STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(-1, 9))), max_size=30)


def _nothing(tx: OperationContext) -> None:
    """Do nothing; these tests do not run timer operations."""


@given(_STEPS)
def test_timers_come_in_the_order_of_deadline_and_arrival(steps: list[tuple[str, int | None]]) -> None:
    clock = TimerClock(now=5)
    came: list[tuple[str, int]] = []
    timers = CoordinatorTimer(clock, lambda timer: came.append((timer.key, timer.at)))
    expected: dict[str, tuple[int, int]] = {}
    for number, (key, delay) in enumerate(steps):
        if delay is None:
            timers.cancel(key)
            expected.pop(key, None)
        else:
            timers.schedule(key, delay, _nothing)
            expected[key] = 5 + delay, number
        assert timers.is_scheduled(key) == (key in expected)
    in_order = [(key, at) for key, (at, _) in sorted(expected.items(), key=lambda item: item[1])]
    assert clock.pending() == in_order
    assert len(clock) == len(in_order)

    while (run := clock.pop_due(100)) is not None:
        run()

    assert came == in_order


def test_timers_that_move_all_the_time_take_no_more_room() -> None:
    clock = TimerClock()
    timers = CoordinatorTimer(clock, lambda timer: None)
    for now in range(20_000):
        clock.now = now
        timers.schedule(f"session-{now % 3}", 9000 - now % 7, _nothing)
        timers.cancel("other")
        timers.schedule("other", 50, _nothing)

    assert len(clock._heap) < 600
    assert sorted(key for key, _ in clock.pending()) == ["other", "session-0", "session-1", "session-2"]


def test_a_cancelled_timer_does_not_come() -> None:
    clock = TimerClock()
    timers = CoordinatorTimer(clock, lambda timer: None)
    timers.schedule("a", 1, _nothing)
    timers.cancel_all()

    assert clock.first() is None
    assert len(clock) == 0
