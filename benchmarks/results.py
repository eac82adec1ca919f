"""The runs in ``docs/performance.jsonl``: each line is one run of a benchmark (``python -m benchmarks --save``).

A figure of a benchmark is the median of its runs. ``figures`` writes them as tables and ``plots`` draws them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final

from attrs import frozen

from benchmarks.report import Figure

__all__ = ["DOCS", "MEASURED", "Summary", "benchmarks", "named", "summaries"]

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
MEASURED: Final = DOCS / "performance.jsonl"

_VERDICTS: Final = {"MISSED": "missed", "stretch": "exceeded"}


@frozen
class Summary:
    """One figure over several runs."""

    figure: Figure
    values: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """The verdict on the target, or an empty string without one."""
        return _VERDICTS.get(self.figure.verdict, self.figure.verdict)

    def cells(self) -> tuple[str, ...]:
        """Return the name of the figure, the median, the range, the target and the verdict."""
        middle, target = self.figure, ""
        if middle.target is not None:
            target = f"{'at most' if middle.at_most else 'at least'} {middle.shown(middle.target)}"
        spread = f"{middle.shown(min(self.values))} to {middle.shown(max(self.values))}" if len(self.values) > 1 else ""
        return middle.what, middle.shown(middle.value), spread, target, self.verdict


def benchmarks() -> list[str]:
    """Return the names of the benchmarks that were run."""
    return list(dict.fromkeys(json.loads(line)["benchmark"] for line in MEASURED.read_text("utf-8").splitlines()))


def summaries(benchmark: str) -> list[Summary]:
    """Return the figures of a benchmark in printing order."""
    runs: dict[str, list[Figure]] = {}
    for line in MEASURED.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        for row in run["figures"] if run["benchmark"] == benchmark else ():
            runs.setdefault(row["what"], []).append(Figure(**row))
    return [_summary(figures) for figures in runs.values()]


def named(benchmark: str) -> Mapping[str, Summary]:
    """Return the figures of a benchmark by name."""
    return {each.figure.what: each for each in summaries(benchmark)}


def _summary(figures: list[Figure]) -> Summary:
    values = tuple(figure.value for figure in figures)
    last = figures[-1]
    middle = Figure(last.what, median(values), last.unit, last.target, last.stretch, last.at_most)
    return Summary(middle, values)
