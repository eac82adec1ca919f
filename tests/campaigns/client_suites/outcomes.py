"""What suites report about their tests, and how two runs of a suite differ. Nothing here runs anything."""

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
"""What lines about the course of tests in Go begin with, the last when a test cleans up after it was ended."""

_GO: Final = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


@frozen
class Outcome:
    """What became of a test. ``reason`` says why it failed or was skipped, in the words of the suite."""

    verdict: str
    reason: str = ""


@frozen(kw_only=True)
class Run:
    """A suite with one broker: how many tests passed, and the others by name. ``ended`` means: it came to its end."""

    suite: str
    version: str
    broker: str
    ended: bool
    passed: int
    others: Mapping[str, Outcome]

    def count(self, verdict: str) -> int:
        """Return how many tests have a verdict."""
        return self.passed if verdict == PASSED else [each.verdict for each in self.others.values()].count(verdict)

    def outcome(self, test: str) -> Outcome:
        """Return what became of a test. A run that was cut short does not say whether it passed or never ran."""
        return self.others.get(test, Outcome(PASSED if self.ended else UNKNOWN))

    def to_json(self) -> str:
        """The run as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """The run that ``to_json`` wrote."""
        known = json.loads(line)
        others = {name: Outcome(**outcome) for name, outcome in known.pop("others").items()}
        return cls(others=others, **known)


@frozen
class Difference:
    """A test that did not pass with both brokers, what became of it with each, and why that is so, if it is known."""

    test: str
    real: Outcome
    ours: Outcome
    why: str

    @property
    def ours_alone(self) -> bool:
        """Whether it passed with the real broker, and not with the embedded one."""
        return self.real.verdict == PASSED


def differences(real: Run, ours: Run, remarks: Mapping[str, str]) -> list[Difference]:
    """Return the tests that did not pass with both brokers. ``remarks`` has reasons, by pattern of the names."""
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
    """Read a line that the plugin ``reporting`` wrote: a test and what became of it."""
    return line["test"], Outcome(line["verdict"], line["reason"][:_REASON_SHOWN])


@define
class GoEvents:
    """Reads the events of ``go test -json``. The reason of a verdict is what the test printed last."""

    _printed: dict[str, str] = Factory(dict)

    def __call__(self, line: Mapping[str, Any]) -> tuple[str, Outcome] | None:
        """Return the test that an event ends, with what became of it, or None."""
        test, action = line.get("Test"), line["Action"]
        if test is None:
            return None
        if action == "output" and (text := line["Output"].strip()) and not text.startswith(_COURSE):
            self._printed[test] = text
        if action not in _GO:
            return None
        reason = self._printed.pop(test, "")
        return test, Outcome(_GO[action], "" if action == "pass" else reason[:_REASON_SHOWN])
