"""The status by window: cases for each rule, and properties of all windows."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.analysis.lag_status import STATUS_RULES, LagHistory, Observation
from kafka_msgs.report.metric_definitions import LagStatus

START = 1_767_225_600_000
STEP = 30_000


def history(offsets: Sequence[int], lags: Sequence[int | None]) -> LagHistory:
    """Return observations that are 30 seconds apart."""
    found = LagHistory()
    for number, (offset, lag) in enumerate(zip(offsets, lags, strict=True)):
        found.add(Observation(number, START + number * STEP, offset, lag))
    return found


def status_of(offsets: Sequence[int], lags: Sequence[int | None], late: int = 0) -> str:
    """Return the status ``late`` milliseconds after the last observation."""
    now = START + (len(offsets) - 1) * STEP + late
    return history(offsets, lags).status(now, lags[-1]).name


@pytest.mark.parametrize(
    ("offsets", "lags", "late", "expected"),
    [
        ([1, 2, 3, 4], [5, 4, 3, 2], 0, "OK"),
        ([1, 2, 3, 4], [5, 6, 7, 6], 0, "OK"),
        ([1, 2, 3, 4], [5, 0, 7, 8], 0, "OK"),
        ([4, 4, 4, 4], [0, 0, 0, 0], 10**9, "OK"),
        ([4, 4, 4, 4], [0, 1, 2, 3], 0, "OK"),
        ([1, 2, 3, 4], [5, 5, 5, 5], 0, "WARNING"),
        ([1, 2, 3, 4], [5, 6, 7, 8], 0, "WARNING"),
        ([1, 1, 1, 1], [5, 5, 5, 5], 0, "STALLED"),
        ([1, 1, 1, 1], [5, 6, 7, 8], 0, "STALLED"),
        ([1, 2, 3, 4], [5, 4, 3, 2], 3 * STEP, "OK"),
        ([1, 2, 3, 4], [5, 4, 3, 2], 3 * STEP + 1, "STOPPED"),
        ([1, 2, 3, 4], [5, 0, 3, 2], 3 * STEP + 1, "STOPPED"),
        ([7, 8, 2, 3], [9, 8, 14, 13], 0, "REWOUND"),
        ([7, 7, 2, 3], [0, 0, 5, 4], 0, "REWOUND"),
        ([7, 8, 2, 9], [9, 8, 14, 0], 0, "OK"),
        ([7, 8, 2, 8], [9, 8, 14, 8], 0, "OK"),
        ([7, 8, 6, 8, 9], [5, 5, 8, 8, 8], 0, "WARNING"),
        ([7, 8, 6, 9, 8], [5, 5, 8, 8, 9], 0, "REWOUND"),
        ([1], [5], 0, "UNKNOWN"),
        ([1], [5], 9_001, "STOPPED"),
        ([1, 2], [5, 6], 0, "UNKNOWN"),
        ([5, 2], [5, 9], 0, "REWOUND"),
        ([1, 2, 3, 4], [5, 6, 7, None], 0, "UNKNOWN"),
        ([1, 2, 3, 4], [None, None, None, 8], 0, "UNKNOWN"),
        ([1, 1, 1, 1], [None, None, 7, 8], 0, "UNKNOWN"),
        ([1, 2, 3, 4], [None, 6, 7, 8], 0, "WARNING"),
        ([1, 2, 3, 4], [None, 0, None, 8], 0, "OK"),
    ],
)
def test_each_rule(offsets: list[int], lags: list[int | None], late: int, expected: str) -> None:
    assert status_of(offsets, lags, late) == expected


def test_a_partition_without_commits_is_unknown_unless_all_is_read() -> None:
    assert LagHistory().status(START, 5).name == "UNKNOWN"
    assert LagHistory().status(START, 0).name == "OK"


def test_every_status_is_reached_by_a_rule() -> None:
    assert {rule.status for rule in STATUS_RULES} == set(LagStatus)


def test_lags_are_looked_up_only_if_the_rules_need_them() -> None:
    asked: list[Observation] = []

    def lag_at(observation: Observation) -> int:
        asked.append(observation)
        return 20 + observation.position

    unknown = history([1, 2, 3, 4], [None] * 4)
    now = START + 3 * STEP
    assert unknown.status(now, 0, lag_at).name == "OK"
    assert unknown.status(now + 4 * STEP, 9, lag_at).name == "STOPPED"
    assert not asked
    assert unknown.status(now, 9, lag_at).name == "WARNING"
    assert len(asked) == 4


def test_of_several_commits_within_a_second_the_last_one_counts() -> None:
    found = LagHistory(size=3)
    for number in range(5000):
        found.add(Observation(number, START + number, number))
    assert [each.offset for each in found.observations] == [2999, 3999, 4999]


@pytest.mark.parametrize(
    ("behind_for", "expected"),
    [
        (None, "STOPPED"),
        (10 * STEP, "STOPPED"),
        (3 * STEP + 1, "STOPPED"),
        (3 * STEP, "OK"),
        (0, "OK"),
        (-1, "STOPPED"),
    ],
)
def test_a_group_that_was_not_behind_for_long_has_not_stopped(behind_for: int | None, expected: str) -> None:
    caught_up = history([1, 2, 3, 4], [5, 3, 1, 0])
    now = START + 100 * STEP
    since = None if behind_for is None else now - behind_for
    assert caught_up.status(now, 1, behind_since=lambda: since).name == expected


observations = st.lists(
    st.builds(Observation, st.integers(0, 10**6), st.integers(0, 60_000), st.integers(0, 99), st.integers(0, 9)),
    unique_by=lambda each: each.position,
)


@given(observations, st.randoms(use_true_random=False), st.integers(0, 80_000), st.integers(0, 9))
def test_the_order_of_observations_does_not_matter(items: list[Observation], dice: Random, now: int, lag: int) -> None:
    whole, one = LagHistory(size=4), LagHistory(size=4)
    for item in items:
        whole.add(item)
    for item in sorted(items, key=lambda _: dice.random()):
        one.add(item)
    assert one.observations == whole.observations
    assert len(whole.observations) <= 4
    assert one.status(now, lag) == whole.status(now, lag)


@given(st.lists(st.integers(1, 9), min_size=3, max_size=10), st.integers(1, 9))
def test_a_lag_that_only_grows_is_never_ok(growth: list[int], lag: int) -> None:
    lags = [lag + sum(growth[:number]) for number in range(len(growth))]
    assert status_of(range(len(growth)), lags) == "WARNING"
    assert status_of([7] * len(growth), lags) == "STALLED"


@given(observations, st.integers(0, 10**9))
def test_a_consumer_without_lag_is_always_ok(items: list[Observation], now: int) -> None:
    found = LagHistory()
    for item in items:
        found.add(item)
    assert found.status(now, 0) is LagStatus.OK
