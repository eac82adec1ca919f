"""A report as files: one HTML page that loads nothing from elsewhere, and the plots that it shows.

Owns the look of the page. Drawing is left to ``plots``.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final

from kafka_msgs.spark.report.content import Report, Section, Table
from kafka_msgs.spark.report.plots import draw

__all__ = ["cell", "write_report"]

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #999; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
p.note { color: #666; font-size: .9rem; } img { max-width: 100%; }
"""
_NUMBER: Final = ' class="number"'


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write ``report.html`` and the plots into a directory that exists; return the paths, the page's first.

    Raises ``MissingExtraError`` where there is a plot to draw and no matplotlib.
    """
    page = directory / "report.html"
    plots = [directory / section.file for section in report.sections if not isinstance(section, Table)]
    for section in report.sections:
        if not isinstance(section, Table):
            draw(section, directory / section.file)
    page.write_text("".join(f"{line}\n" for line in _page(report)), encoding="utf-8")
    return [page, *plots]


def cell(value: Any) -> str:
    """Return a value as a report shows it: nothing for None, numbers grouped by thousands."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(cell, value)) if isinstance(value, list | tuple) else str(value)


def _page(report: Report) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{escape(report.title)}</h1>"
    for section in report.sections:
        yield f"<h2>{escape(section.title)}</h2>"
        yield from _section(section)
        if section.note:
            yield f'<p class="note">{escape(section.note)}</p>'
    yield "</body>\n</html>"


def _section(section: Section) -> Iterator[str]:
    if not isinstance(section, Table):
        yield f'<p><img src="{escape(section.file)}" alt="{escape(section.title)}"></p>'
        return
    yield "<table>\n<thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in section.columns) + "</tr></thead>"
    yield "<tbody>"
    for row in section.rows:
        yield "<tr>" + "".join(map(_data, row)) + "</tr>"
    yield "</tbody>\n</table>"


def _data(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{_NUMBER if number else ''}>{escape(cell(value))}</td>"
