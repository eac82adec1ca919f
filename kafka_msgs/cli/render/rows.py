"""Rows of files in the output forms of commands: as tables, as one JSON document, or as JSON lines, with a summary.

This module formats rows. The commands define their contents.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka_msgs.cli.render.output import echo, json_text

__all__ = ["Named", "Row", "Summary", "print_rows"]

_ROWS_A_TABLE: Final = 500
_ROWS_A_WRITE: Final = 100


class Row(NamedTuple):
    """A row: its kind, such as ``batch`` or ``error``, and its JSON values by name."""

    kind: str
    facts: dict[str, Any]


Named = tuple[Path, Row]
"""A row and its file."""

Summary = Callable[[], dict[str, Any]]
"""Returns the last row, after all other rows have been printed."""


def print_rows(output_format: str, rows: Iterator[Named], summary: Summary) -> None:
    """Print rows as they come, and the summary after them; ``output_format`` is one of the command's ``FORMS``."""
    _PRINTERS[output_format](rows, summary)


def _fact(named: Named) -> dict[str, Any]:
    path, row = named
    return {"kind": row.kind, "file": str(path), **row.facts}


def _print_lines(rows: Iterator[Named], summary: Summary) -> None:
    while part := list(islice(rows, _ROWS_A_WRITE)):
        echo("\n".join(json_text(_fact(row)) for row in part))
    echo(json_text({"kind": "summary", **summary()}))


def _print_json(rows: Iterator[Named], summary: Summary) -> None:
    listed = [_fact(row) for row in rows]
    echo(json_text({"rows": listed, "summary": summary()}, indent=2))


def _print_tables(rows: Iterator[Named], summary: Summary) -> None:
    """Print a table for each run of rows of one form; long runs are split to limit memory use."""
    show = _show_on_terminal if sys.stdout.isatty() or os.environ.get("FORCE_COLOR") else _show_aligned
    for (path, kind, names), run in groupby(rows, lambda row: (row[0], row[1].kind, tuple(row[1].facts))):
        while part := list(islice(run, _ROWS_A_TABLE)):
            cells = [[_cell(value) for value in row.facts.values()] for _, row in part]
            show(f"{path}: {kind}", names, cells)
    show("summary", ("what", ""), [[name, _cell(value)] for name, value in summary().items()])


def _show_on_terminal(title: str, names: Sequence[str], cells: list[list[str]]) -> None:
    """Print a table if it fits the terminal, otherwise each row as a paragraph."""
    from rich.text import Text

    from kafka_msgs.cli.render.console import console, print_paragraphs, table

    out = console()
    out.print(Text(title, style="italic"))
    if _width(names, cells) > out.width:
        print_paragraphs(out, names, cells)
        return
    shown = table(*names)
    for row in cells:
        shown.add_row(*map(Text, row))
    out.print(shown)


def _width(names: Sequence[str], cells: list[list[str]]) -> int:
    """Return the number of columns of a table without folding, as ``table`` lays it out."""
    return 1 + sum(max(map(len, column)) + 2 for column in zip(names, *cells, strict=True))


def _show_aligned(title: str, names: Sequence[str], cells: list[list[str]]) -> None:
    """Print rows that need no folding; laying out a cell with rich takes longer than reading a record."""
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (names, *cells))
    echo("\n".join((title, *lines, "")))


def _cell(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else json_text(value)


_PRINTERS: Final = {"table": _print_tables, "json": _print_json, "jsonl": _print_lines}
