"""Short listings: the same rows as a table, as a JSON document, or as one JSON object per line.

Owns how a list that fits in memory is printed. Rows of long files are left to ``rows``, which prints them as they come.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.text import Text

from kafka_msgs.cli.render.console import console, print_json, table

__all__ = ["print_listing"]


def print_listing(form: str, columns: Sequence[str], listed: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Print rows, each a mapping with the keys ``columns``, in the order of these.

    ``form`` is one of ``FORMS``. Values are those that JSON has. In a table None is an empty cell, numbers are aligned
    to the right, and a column that is empty in every row is left out.
    """
    if form == "json":
        print_json([{name: row[name] for name in columns} for row in listed])
    elif form == "jsonl":
        for row in listed:
            click.echo(json.dumps({name: row[name] for name in columns}, ensure_ascii=False))
    else:
        _print_table(columns, listed, title)


def _print_table(columns: Sequence[str], listed: Sequence[Mapping[str, Any]], title: str) -> None:
    wanted = [name for name in columns if not listed or any(row[name] is not None for row in listed)]
    shown = table(*map(_heading, wanted), title=title or None)
    for column, name in zip(shown.columns, wanted, strict=True):
        if any(type(row[name]) in (int, float) for row in listed):
            column.justify = "right"
            column.no_wrap = True
    for row in listed:
        shown.add_row(*(Text(_cell(row[name])) for name in wanted))
    console().print(shown)


def _heading(name: str) -> str:
    """Return ``apiKey`` as ``api key``: a heading in words can be folded where a terminal is narrow."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return str(value)
