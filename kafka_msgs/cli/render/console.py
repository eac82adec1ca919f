"""How commands print: through rich, readable on a terminal and complete when piped."""

from __future__ import annotations

import json
from typing import Any, Final

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

__all__ = ["console", "print_json", "table"]

_UNBOUNDED: Final = 10_000
"""Columns of output that is not a terminal: nothing is wrapped or cut there, so that it can be searched."""


def console() -> Console:
    """Return a console on the current standard output that prints text as it is, without interpreting markup."""
    made = Console(markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = _UNBOUNDED
    return made


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table in the style of all commands."""
    made = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
