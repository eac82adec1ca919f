"""Command output through rich, readable on a terminal and complete when piped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from kafka_msgs.cli.render.output import echo, json_text, visible

__all__ = ["console", "print_json", "print_paragraphs", "table"]

_UNBOUNDED: Final = 10_000
"""The width of output that is not a terminal: text is not wrapped or cut, so that it can be searched."""


class _Console(Console):
    """A console that makes control characters visible."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object with ``visible`` text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def console() -> Console:
    """Return a console on the current standard output that prints text literally, without interpreting markup."""
    made = _Console(markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = _UNBOUNDED
    return made


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table in the style of all commands."""
    made = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_paragraphs(out: Console, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print each row as a paragraph of ``name=value``, for rows that a table would break apart."""
    for row in rows:
        words = " ".join(f"{name}={cell}" for name, cell in zip(names, row, strict=True))
        for line in textwrap.wrap(words, out.width, subsequent_indent="  ", break_on_hyphens=False):
            shown = Text(line)
            shown.highlight_regex(r"(?<!\S)\w+(?==)", "cyan")
            out.print(shown)
    out.print()


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    echo(json_text(value, indent=2))
