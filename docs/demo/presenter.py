"""The display of all sections: numbered headings, executed Python code, and its results.

This module defines the look of the demonstration. The sections contain the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from kafka_msgs import KafkaMsgsError
from kafka_msgs.cli.render.console import table

__all__ = ["Stage", "columns", "narrow", "shorten"]

_INDENT = 2


class Stage:
    """Displays on ``console``; ``names`` are the variables of the executed Python, shared by all sections."""

    def __init__(self, console: Console, names: Mapping[str, Any]) -> None:
        self.names = dict(names)
        self._console = console
        self._sections = 0

    def section(self, title: str, sentence: str) -> None:
        """Start a section."""
        self._sections += 1
        self._console.print()
        self._console.print(Rule(Text(f"{self._sections}. {title}", style="bold"), align="left", style="blue"))
        self.say(sentence)

    def say(self, sentence: str) -> None:
        """Print a sentence."""
        self._console.print(Text(sentence))
        self._console.print()

    def run(self, code: str) -> None:
        """Print Python and run it."""
        self._python(code)
        exec(cleandoc(code), self.names)

    def refused(self, code: str) -> KafkaMsgsError:
        """Print Python that the library must reject, run it, and print the error."""
        self._python(code, blank_after=False)
        try:
            exec(cleandoc(code), self.names)
        except KafkaMsgsError as error:
            self._indented(Text(f"{type(error).__name__}: {error}", style="red"))
            return error
        raise AssertionError(f"not refused: {code}")

    def text(self, text: str, language: str) -> None:
        """Print the text of a file with syntax highlighting."""
        self._indented(_highlighted(text.rstrip(), language))

    def value(self, value: object) -> None:
        """Print a value as Python prints it."""
        self._indented(Text(repr(value), style="green"))

    def table(self, rows: Table) -> None:
        """Print a table; it may be as wide as the console."""
        self._console.print(rows)
        self._console.print()

    def _python(self, code: str, *, blank_after: bool = True) -> None:
        self._indented(_highlighted(cleandoc(code), "python"), blank_after=blank_after)

    def _indented(self, item: RenderableType, *, blank_after: bool = True) -> None:
        self._console.print(Padding(item, (0, 0, int(blank_after), _INDENT), expand=False))


def _highlighted(text: str, language: str) -> Syntax:
    return Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=True)


def columns(*names: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns in ``numbers`` are aligned to the right."""
    made = narrow(table(*names))
    for column in made.columns:
        column.no_wrap = True
        column.justify = "right" if column.header in numbers else "left"
    return made


def narrow(made: Table) -> Table:
    """Return the table without borders and with minimal column spacing, to place several tables side by side."""
    made.show_edge = False
    made.padding = (0, 1, 0, 0)
    return made


def shorten(text: str, width: int) -> str:
    """Return the text, truncated with an ellipsis if it is longer than ``width``."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
