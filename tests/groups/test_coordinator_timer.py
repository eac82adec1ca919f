"""Timers expire in the order of their deadlines, however often they are rescheduled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.groups.coordinator_timer import CoordinatorTimer, TimerClock
from kafka_msgs.groups.operation import OperationContext

_STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(-1, 9))), max_size=30)


def _nothing(tx: OperationContext) -> None:
    """Do nothing; these tests do not run timer operations."""


@given(_STEPS)
def test_timers_come_in_the_order_of_deadline_and_arrival(steps: list[tuple[str, int | None]]) -> None:
    clock = TimerClock(now=5)
    timers = CoordinatorTimer(clock)
    expected: dict[str, tuple[int, int]] = {}
    for number, (key, delay) in enumerate(steps):
        if delay is None:
            timers.cancel(key)
            expected.pop(key, None)
        else:
            timers.schedule(key, delay, _nothing)
            expected[key] = 5 + delay, number
        assert timers.is_scheduled(key) == (key in expected)

    came = []
    while (timer := timers.next()) is not None:
        came.append((timer.key, timer.deadline))
        timers.pop(timer)

    assert came == [(key, at) for key, (at, _) in sorted(expected.items(), key=lambda item: item[1])]


def test_timers_that_move_all_the_time_take_no_more_room() -> None:
    clock = TimerClock()
    timers = CoordinatorTimer(clock)
    for now in range(20_000):
        clock.now = now
        timers.schedule(f"session-{now % 3}", 9000 - now % 7, _nothing)
        timers.cancel("other")
        timers.schedule("other", 50, _nothing)

    assert len(timers._heap) < 3000
    assert sorted(key for _, _, key in timers.pending()) == ["other", "session-0", "session-1", "session-2"]


def test_a_cancelled_timer_does_not_come() -> None:
    timers = CoordinatorTimer(TimerClock())
    timers.schedule("a", 1, _nothing)
    timers.cancel_all()

    assert timers.next() is None
