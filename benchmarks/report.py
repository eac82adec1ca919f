"""Tables of measurements and their targets."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen
from rich.console import Console
from rich.table import Table

from kafka_msgs.cli.render.console import table

__all__ = ["Figure", "Times", "print_figures", "rows_table"]


@frozen
class Figure:
    """One measured number: a ratio (``x``), milliseconds or a count, with an optional target.

    Larger is better unless ``at_most``; ``stretch`` is a more ambitious target.
    """

    what: str
    value: float
    unit: str = "x"
    target: float | None = None
    stretch: float | None = None
    at_most: bool = False

    @property
    def verdict(self) -> str:
        """Return whether the target is reached, or an empty string without a target."""
        if self.target is None:
            return ""
        if not self.reaches(self.target):
            return "MISSED"
        return "stretch" if self.stretch is not None and self.reaches(self.stretch) else "reached"

    def reaches(self, limit: float) -> bool:
        """Return whether the value is as good as ``limit``."""
        return self.value <= limit if self.at_most else self.value >= limit

    def shown(self, number: float | None) -> str:
        """Return a number in the figure's unit."""
        if number is None:
            return ""
        digits = 0 if self.unit == "" else 1 if abs(number) >= 10 else 2
        return f"{number:.{digits}f}{'' if self.unit in ('', 'x') else ' '}{self.unit}"


@frozen
class Times:
    """The seconds of one call of each case."""

    seconds: dict[str, float]

    def ratio(self, slower: str, faster: str) -> float:
        """Return the time of ``slower`` divided by the time of ``faster``."""
        return self.seconds[slower] / self.seconds[faster]


def print_figures(console: Console, title: str, protocol: str, figures: Iterable[Figure]) -> None:
    """Print figures with their targets."""
    shown = rows_table(title, "what", "measured", "target", "stretch", "")
    for figure in figures:
        sign = "<= " if figure.at_most else ">= "
        limits = (
            f"{sign}{figure.shown(limit)}" if limit is not None else "" for limit in (figure.target, figure.stretch)
        )
        style = "red" if figure.verdict == "MISSED" else None
        shown.add_row(figure.what, figure.shown(figure.value), *limits, figure.verdict, style=style)
    console.print(shown)
    console.print(protocol, style="dim")


def rows_table(title: str, first: str, *others: str) -> Table:
    """Return an empty table with a left-aligned first column and right-aligned other columns."""
    made = table(first, *others, title=title)
    for column in made.columns[1:]:
        column.justify = "right"
    return made
