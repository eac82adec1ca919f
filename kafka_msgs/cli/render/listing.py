"""Short listings: the same rows as a table, as a JSON document, as one JSON object per line, or as CSV.

This module prints lists that fit in memory. ``rows`` prints the rows of long files as they come.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from kafka_msgs.cli.render.console import console, print_json, print_paragraphs, table
from kafka_msgs.cli.render.output import csv_cell, echo, json_text, number_text, one_line

__all__ = ["print_listing"]

_GAP: Final = 2
"""The number of spaces after each column of a table."""

_TEXT_WIDTHS: Final = (40, 24, 12)
"""Widths of a text on one line; the first that fits the terminal is used."""


def print_listing(
    output_format: str,
    columns: Sequence[str],
    listed: Iterable[Mapping[str, Any]],
    *,
    title: str = "",
    in_table: Sequence[str] | None = None,
) -> None:
    """Print rows, each a mapping with the keys ``columns``, in the order of these.

    ``output_format`` is one of ``FORMS``. Values are JSON values. Lines of JSON and of CSV are printed as rows come. A
    table has the columns ``in_table``, by default all: None is an empty cell, numbers are aligned to the right, and a
    column that is empty in every row is omitted.
    """
    if output_format == "json":
        print_json([{name: row[name] for name in columns} for row in listed])
    elif output_format == "jsonl":
        for row in listed:
            echo(json_text({name: row[name] for name in columns}))
    elif output_format == "csv":
        for fields in (columns, *([_field(row[name]) for name in columns] for row in listed)):
            echo(_csv_line(fields), nl=False)
    else:
        _print_table(columns if in_table is None else in_table, list(listed), title)


def _print_table(columns: Sequence[str], listed: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print a table without breaking numbers or heading words, or paragraphs if the table would not fit."""
    requested = [name for name in columns if not listed or any(row[name] not in (None, "", []) for row in listed)]
    cells = [[_cell(row[name]) for name in requested] for row in listed]
    numbers = [any(type(row[name]) in (int, float) for row in listed) for name in requested]
    out = console()
    widths = next(
        (widths for most in _TEXT_WIDTHS if sum(widths := _widths(requested, cells, numbers, most)) < out.width), None
    )
    if widths is None:
        print_paragraphs(out, requested, cells)
        return
    shown = table(*map(_heading, requested), title=title or None)
    for column, width, number in zip(shown.columns, widths, numbers, strict=True):
        column.justify = "right" if number else "left"
        column.min_width = width - _GAP
    for row in cells:
        shown.add_row(*map(Text, row))
    out.print(shown)


def _widths(requested: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool], most: int) -> list[int]:
    """Return the minimum widths of columns, gaps included; at most ``most`` letters of a text must fit on one line."""
    widths = []
    for column, (name, number) in enumerate(zip(requested, numbers, strict=True)):
        words = [word for row in cells for word in row[column].split(" ")]
        longest = max(map(len, words), default=0)
        heading = max(map(len, _heading(name).split()))
        widths.append(_GAP + max(heading, longest if number else min(longest, most)))
    return widths


def _heading(name: str) -> str:
    """Return ``apiKey`` as ``api key``: a heading in words can be folded on a narrow terminal."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if value < 100 else f"{value:.0f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    if isinstance(value, dict):
        return json_text(value)
    return one_line(str(value))


def _field(value: Any) -> str:
    """Return a value for CSV: an empty field for None, and numbers unchanged."""
    if isinstance(value, str):
        return csv_cell(value)
    if isinstance(value, list | tuple):
        return csv_cell(", ".join(map(str, value)))
    return "" if value is None else number_text(value) if isinstance(value, float) else _cell(value)


def _csv_line(fields: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue()
