"""Parsing of suite reports, and comparison of two runs of a suite. This module runs no tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Self

from attrs import Factory, asdict, define, frozen

__all__ = [
    "FAILED",
    "PASSED",
    "SKIPPED",
    "UNKNOWN",
    "Difference",
    "GoEvents",
    "Outcome",
    "Run",
    "differences",
    "of_pytest",
]

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
UNKNOWN: Final = "passed or not run"

_REASON_SHOWN: Final = 200
_COURSE: Final = ("===", "---", "panic.go:")
"""Prefixes of status lines of Go tests. The last one appears when a test cleans up after it was ended."""

_GO: Final = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


@frozen
class Outcome:
    """The outcome of a test. ``reason`` is the suite's own message for a failed or skipped test."""

    verdict: str
    reason: str = ""


@frozen(kw_only=True)
class Run:
    """A run of a suite with one broker: the number of passed tests, and the other tests by name.

    ``ended`` is False if the run hit its time limit.
    """

    suite: str
    version: str
    broker: str
    ended: bool
    passed: int
    others: Mapping[str, Outcome]

    def count(self, verdict: str) -> int:
        """Return the number of tests with a verdict."""
        return self.passed if verdict == PASSED else [each.verdict for each in self.others.values()].count(verdict)

    def outcome(self, test: str) -> Outcome:
        """Return the outcome of a test. If the run was cut short, an unreported test either passed or never ran."""
        return self.others.get(test, Outcome(PASSED if self.ended else UNKNOWN))

    def to_json(self) -> str:
        """Return the run as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Return the run from a line of ``to_json``."""
        known = json.loads(line)
        others = {name: Outcome(**outcome) for name, outcome in known.pop("others").items()}
        return cls(others=others, **known)


@frozen
class Difference:
    """A test that did not pass with both brokers, with its outcome for each broker and the reason if known."""

    test: str
    real: Outcome
    ours: Outcome
    why: str

    @property
    def ours_alone(self) -> bool:
        """Whether the test passed with the real broker but not with the embedded one."""
        return self.real.verdict == PASSED


def differences(real: Run, ours: Run, remarks: Mapping[str, str]) -> list[Difference]:
    """Return the tests that did not pass with both brokers. ``remarks`` maps patterns of test names to reasons."""
    return [
        Difference(
            test,
            real.outcome(test),
            ours.outcome(test),
            next((why for pattern, why in remarks.items() if fnmatchcase(test, pattern)), ""),
        )
        for test in sorted({*real.others, *ours.others})
    ]


def of_pytest(line: Mapping[str, Any]) -> tuple[str, Outcome]:
    """Parse a line written by the plugin ``reporting``: a test and its outcome."""
    return line["test"], Outcome(line["verdict"], line["reason"][:_REASON_SHOWN])


@define
class GoEvents:
    """Parses the events of ``go test -json``. The reason of a verdict is the last output of the test."""

    _printed: dict[str, str] = Factory(dict)

    def __call__(self, line: Mapping[str, Any]) -> tuple[str, Outcome] | None:
        """Return the test that an event ends, with its outcome, or None."""
        test, action = line.get("Test"), line["Action"]
        if test is None:
            return None
        if action == "output" and (text := line["Output"].strip()) and not text.startswith(_COURSE):
            self._printed[test] = text
        if action not in _GO:
            return None
        reason = self._printed.pop(test, "")
        return test, Outcome(_GO[action], "" if action == "pass" else reason[:_REASON_SHOWN])
