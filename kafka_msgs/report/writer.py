"""The files of a report in a directory: the HTML page, the JSON file, the Prometheus metrics, and the plots."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kafka_msgs.report.html_page import render_page
from kafka_msgs.report.json_report import to_json
from kafka_msgs.report.model import Report, Table
from kafka_msgs.report.plots import render_svg
from kafka_msgs.report.prometheus import exposition

__all__ = ["write_report"]

_METRICS: Final = "report.prom"


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write a report to an existing directory and return the paths: first the page, then the data, then the plots.

    Text that is not valid Unicode is escaped in the page and in the metrics. Each file replaces an earlier one by one
    rename, the metrics last: a program that collects them never reads a part of a file. Raises ``MissingExtraError``
    without Jinja2, and ``OSError``.
    """
    metrics = exposition(report)
    texts = {
        "report.html": render_page(report, metrics),
        "report.json": to_json(report),
        _METRICS: metrics,
        **{each.file: render_svg(each, alone=True) for each in report.sections if not isinstance(each, Table)},
    }
    for name in sorted(texts, key=_METRICS.__eq__):
        _replace(directory / name, texts[name])
    return [directory / name for name in texts]


def _replace(path: Path, text: str) -> None:
    # Collectors and web servers skip names with a leading dot.
    new = path.with_name(f".{path.name}-{os.getpid()}.tmp")
    try:
        new.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
