"""The verdict on the outputs of one invocation."""

from __future__ import annotations

import json
import re
from typing import Final, Self

from attrs import asdict, frozen

from tests.campaigns.tools.known_differences import KNOWN

__all__ = ["Outcome", "Output", "compared", "is_repeatable"]

_LOOKS: Final = re.compile(
    r"--describe|--list|describe|\blist\b|--dry-run|kafka-get-offsets|--verify|broker-api-versions|find-hanging"
)


@frozen
class Output:
    """The normalized outputs of one invocation on both clusters."""

    line: str
    kafka: list[str]
    ours: list[str]

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Return the output that ``to_json`` wrote."""
        return cls(**json.loads(line))


@frozen
class Outcome:
    """The lines that a known difference does not explain, and the reasons that explain others."""

    line: str
    kafka: list[str]
    ours: list[str]
    reasons: frozenset[str]

    @property
    def is_explained(self) -> bool:
        """Whether no difference is left."""
        return self.kafka == self.ours

    @property
    def verdict(self) -> str:
        """``equal``, ``DIFFERENT``, or the reasons of the difference."""
        if not self.is_explained:
            return "DIFFERENT"
        return "; ".join(sorted(self.reasons)) or "equal"


def compared(output: Output) -> Outcome:
    """Compare the outputs; each known difference removes its lines from both sides if they differ."""
    kafka, ours = output.kafka, output.ours
    reasons: set[str] = set()
    for known in KNOWN:
        if kafka != ours and re.search(known.invocations, output.line):
            fewer = [[each for each in lines if not re.search(known.lines, each)] for lines in (kafka, ours)]
            if fewer != [kafka, ours]:
                kafka, ours = fewer
                reasons.add(known.reason)
    return Outcome(output.line, kafka, ours, frozenset(reasons))


def is_repeatable(line: str) -> bool:
    """Return whether an invocation changes nothing, so that it can wait for the real cluster's background work."""
    return _LOOKS.search(line) is not None
