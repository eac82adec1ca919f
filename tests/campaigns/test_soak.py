"""The short form of the soak campaign, and tests of its judge."""

from __future__ import annotations

import pytest

from tests.campaigns.soak.campaign import soak
from tests.campaigns.soak.clients import OURS
from tests.campaigns.soak.faults import BRIEF, FAULTS
from tests.campaigns.soak.history import History
from tests.campaigns.soak.report import broken_promises

GOOD = ["A 10 0 0 5", "A 20 0 1 6", "R 30 0 5 0", "R 40 0 6 1", "D"]


def judged(lines: list[str]) -> History:
    history = History()
    for line in lines:
        history.add(line)
    history.judge()
    return history


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (GOOD, None),
        ([*GOOD, "R 50 0 5 0", "R 60 0 6 1"], None),
        ([*GOOD, "F 0 2 a reason", "R 50 0 7 2"], None),
        ([line for line in GOOD if line != "R 40 0 6 1"], "never read"),
        ([*GOOD, "C 0 6", "R 50 0 5 0"], "below the commit"),
        ([*GOOD, "R 50 0 7 0"], "twice"),
        (["A 10 0 0 5", "A 20 0 1 4", "R 30 0 4 1", "R 40 0 5 0"], "came after"),
        (["A 10 0 0 5", "R 30 0 4 0"], "was written at 5"),
        ([*GOOD, "X 0 2", "R 50 0 7 2"], "aborted"),
        (["A 10 0 0 5", "R 30 0 6 1", "R 40 0 5 0"], "read late"),
    ],
)
def test_the_judge_notices(lines: list[str], word: str | None) -> None:
    broken = judged(lines).broken
    assert (broken == []) if word is None else any(word in each for each in broken)


def test_a_pause_counts_from_the_last_event_before_the_fault() -> None:
    lines = [f"A {time} {partition} {time} {time}" for partition in range(3) for time in (100, 200, 1700, 1800)]
    history = judged(lines)
    assert history.stall(1000, 1750) == 1.5
    assert history.stall(1710, 1750) == 0.1
    assert history.stall(1850, 4800) == 3.0


def test_our_clients_keep_all_promises_on_the_embedded_broker() -> None:
    outcome = soak("embedded", OURS, BRIEF, seconds=8, settle=1)
    assert broken_promises([outcome]) == []
    assert all(each.acknowledged > 100 for each in outcome.totals.values())
    assert {each.client for each in outcome.stalls} == set(OURS)


@pytest.mark.slow
def test_our_clients_keep_all_promises_under_every_fault() -> None:
    outcome = soak("embedded", OURS, FAULTS, seconds=120, settle=3)
    assert broken_promises([outcome]) == []
