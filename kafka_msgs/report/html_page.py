"""A report as a single self-contained HTML page.

Prepares the input of the template. The template, its style and its script are in ``templates``. Jinja2 escapes all
text, and the content security policy of the page blocks other scripts and all requests.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

from attrs import frozen

from kafka_msgs.report.cells import cell, kinds_of, sort_key
from kafka_msgs.report.model import Kind, Report, Section, Table
from kafka_msgs.report.plots import render_svg
from kafka_msgs.report.templates import environment

__all__ = ["render_page"]

_LONGEST: Final = 60
"""The maximum number of characters of a cell in one line."""
_RIGHT: Final[frozenset[Kind]] = frozenset({"number", "name", "seconds", "bytes"})
_ROUNDED: Final[frozenset[Kind]] = frozenset({"seconds", "bytes"})


@frozen
class _Cell:
    """A cell: its text, its CSS class, its sort key, and the exact value if the text is rounded."""

    text: str
    style: str
    key: str | None
    exact: str | None


@frozen
class _Column:
    """A column: its name, its kind, and the CSS class of its header, which is aligned like the values."""

    name: str
    kind: Kind
    style: str


@frozen
class _Part:
    """A section for the template: a table, or the markup of a plot."""

    title: str
    note: str
    columns: tuple[_Column, ...] = ()
    rows: tuple[tuple[_Cell, ...], ...] = ()
    plot: str | None = None


def render_page(report: Report, metrics: str = "") -> str:
    """Return the page; ``metrics`` is the text of the metrics, if any. Raises ``MissingExtraError`` without Jinja2."""
    templates = environment()
    script, _, _ = templates.loader.get_source(templates, "report.js")  # type: ignore[union-attr]
    return templates.get_template("report.html.j2").render(
        report=report,
        parts=list(map(_part, report.sections)),
        metrics=metrics,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _part(section: Section) -> _Part:
    if not isinstance(section, Table):
        return _Part(section.title, section.note, plot=render_svg(section))
    kinds = kinds_of(section)
    columns = tuple(_Column(name, kind, _side(kind)) for name, kind in zip(section.columns, kinds, strict=True))
    return _Part(section.title, section.note_text, columns, tuple(tuple(_cells(row, kinds)) for row in section.rows))


def _cells(row: tuple[Any, ...], kinds: tuple[Kind, ...]) -> Iterator[_Cell]:
    for value, kind in zip(row, kinds, strict=True):
        text = cell(value, kind)
        style = _side(kind) or ("long" if len(text) > _LONGEST else "")
        exact = None if value is None or kind not in _ROUNDED else cell(value)
        yield _Cell(text, style, sort_key(value, kind), exact)


def _side(kind: Kind) -> str:
    return "number" if kind in _RIGHT else ""
