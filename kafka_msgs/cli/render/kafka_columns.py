"""Columns under Kafka's own headings, for the commands whose output scripts expect from Kafka's tools.

This module defines the layout: one line per row, columns separated by at least one space, ``-`` for missing values.
Lines are not folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka_msgs.cli.render.output import echo, is_terminal, one_line

__all__ = ["print_columns"]

_GAP = "  "


def print_columns(headings: Mapping[str, str], listed: Sequence[Mapping[str, Any]]) -> None:
    """Print rows under headings; ``headings`` has the heading of each name, in the order of the columns."""
    cells = [[_cell(row[name]) for name in headings] for row in listed]
    lines = [list(headings.values()), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        echo(_GAP.join(map(str.ljust, line, widths)).rstrip())


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return one_line(str(value)) if is_terminal() else str(value)
