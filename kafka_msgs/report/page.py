"""A report as files: one HTML page that needs no other file, and the plots in it as files of their own, too.

Owns the look of the page. Drawing is left to ``plots``.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final

from kafka_msgs.report.content import Report, Section, Table
from kafka_msgs.report.plots import draw

__all__ = ["cell", "write_report"]

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #999; } .number { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1rem; color: #444; } dd { margin: 0; }
th, td { white-space: nowrap; } td.long { white-space: normal; min-width: 24rem; }
p.note { color: #666; font-size: .9rem; } img { max-width: 100%; }
"""
_NUMBER: Final = ' class="number"'
_LONG: Final = ' class="long"'
_LONGEST: Final = 60
"""How many characters a cell shows in one line."""
_NOT_COUNTED: Final = re.compile(r"(Port|Id|Key|code|version|[Ee]poch|[Pp]artition|connection)$")
"""Columns whose numbers are names of something, which are not grouped by thousands."""


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write ``report.html`` and the plots into a directory that exists; return the paths, the page's first.

    Raises ``MissingExtraError`` where there is a plot to draw and no matplotlib.
    """
    page = directory / "report.html"
    plots = [directory / section.file for section in report.sections if not isinstance(section, Table)]
    for section in report.sections:
        if not isinstance(section, Table):
            draw(section, directory / section.file)
    page.write_text("".join(f"{line}\n" for line in _page(report, directory)), encoding="utf-8")
    return [page, *plots]


def cell(value: Any, column: str = "") -> str:
    """Return a value as a report shows it: nothing for None. Numbers that count something are grouped."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return str(value) if _NOT_COUNTED.search(column) else f"{value:,}"
    return ", ".join(map(cell, value)) if isinstance(value, list | tuple) else str(value)


def _page(report: Report, directory: Path) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{escape(report.title)}</h1>"
    if report.facts:
        pairs = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in report.facts.items())
        yield f"<dl>{''.join(pairs)}</dl>"
    for section in report.sections:
        yield f"<h2>{escape(section.title)}</h2>"
        yield from _section(section, directory)
        if section.note:
            yield f'<p class="note">{escape(section.note)}</p>'
    yield "</body>\n</html>"


def _section(section: Section, directory: Path) -> Iterator[str]:
    if not isinstance(section, Table):
        image = b64encode((directory / section.file).read_bytes()).decode("ascii")
        yield f'<p><img src="data:image/png;base64,{image}" alt="{escape(section.title)}"></p>'
        return
    if not section.rows:
        yield '<p class="note">none</p>'
        return
    yield (
        "<table>\n<thead><tr>" + "".join(map(_head, section.columns, zip(*section.rows, strict=True))) + "</tr></thead>"
    )
    yield "<tbody>"
    for row in section.rows:
        yield "<tr>" + "".join(map(_data, section.columns, row)) + "</tr>"
    yield "</tbody>\n</table>"


def _head(column: str, values: tuple[Any, ...]) -> str:
    """Return the head of a column, on the side where its values are."""
    number = any(map(_is_number, values))
    return f"<th{_NUMBER if number else ''}>{escape(column)}</th>"


def _data(column: str, value: Any) -> str:
    text = cell(value, column)
    kind = _NUMBER if _is_number(value) else _LONG if len(text) > _LONGEST else ""
    return f"<td{kind}>{escape(text)}</td>"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
