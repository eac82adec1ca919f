"""The client suites campaign: parsing of reports, comparison of runs, and the published page."""

from __future__ import annotations

from tests.campaigns.client_suites.brokers import BROKERS
from tests.campaigns.client_suites.outcomes import (
    FAILED,
    PASSED,
    SKIPPED,
    GoEvents,
    Outcome,
    Run,
    differences,
    of_pytest,
)
from tests.campaigns.client_suites.page import PAGE, runs, written
from tests.campaigns.client_suites.suites import SUITES


def run(broker: str, passed: int, **others: Outcome) -> Run:
    return Run(suite="s", version="1", broker=broker, ended=True, passed=passed, others=others)


def test_go_says_why_last_and_before_it_cleans_up() -> None:
    read = GoEvents()
    printed = (
        "=== RUN TestA",
        "a_test.go:1: connected",
        "a_test.go:2: no such topic",
        "panic.go:694: deleting",
        "--- FAIL",
    )
    for line in printed:
        assert read({"Action": "output", "Test": "TestA", "Output": f"    {line}\n"}) is None
    assert read({"Action": "fail", "Test": "TestA"}) == ("TestA", Outcome(FAILED, "a_test.go:2: no such topic"))
    assert read({"Action": "pass", "Test": "TestB"}) == ("TestB", Outcome(PASSED))
    assert read({"Action": "pass"}) is None


def test_lines_of_pytest() -> None:
    line = {"test": "tests/test_a.py::test_b", "verdict": "skipped", "reason": "x" * 1000}
    name, outcome = of_pytest(line)
    assert (name, outcome.verdict, len(outcome.reason)) == ("tests/test_a.py::test_b", SKIPPED, 200)


def test_runs_differ_by_what_did_not_pass() -> None:
    real = run("kafka", 2, c=Outcome(FAILED, "late"))
    ours = run("embedded", 1, b=Outcome(FAILED, "no such api"), c=Outcome(SKIPPED))
    found = differences(real, ours, {"b*": "known"})
    assert [(each.test, each.ours_alone, each.why) for each in found] == [("b", True, "known"), ("c", False, "")]
    assert [ours.count(verdict) for verdict in (PASSED, FAILED, SKIPPED)] == [1, 1, 1]
    assert Run.from_json(ours.to_json()) == ours


def test_the_page_shows_the_results() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert written(text, runs()) == text
    assert {suite: set(by_broker) for suite, by_broker in runs().items()} == {name: set(BROKERS) for name in SUITES}
