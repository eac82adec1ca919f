"""The files of a report in a directory: the HTML page, the JSON file, the Prometheus metrics, and the plots."""

from __future__ import annotations

from pathlib import Path

from kafka_msgs.report.html_page import render_page
from kafka_msgs.report.json_report import to_json
from kafka_msgs.report.model import Report, Table
from kafka_msgs.report.plots import render_svg
from kafka_msgs.report.prometheus import exposition

__all__ = ["write_report"]


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write a report to an existing directory and return the paths: first the page, then the data, then the plots.

    Text that is not valid Unicode is escaped in the page and in the metrics. Raises ``MissingExtraError`` without
    Jinja2.
    """
    metrics = exposition(report)
    texts = {
        "report.html": render_page(report, metrics),
        "report.json": to_json(report),
        "report.prom": metrics,
        **{each.file: render_svg(each, alone=True) for each in report.sections if not isinstance(each, Table)},
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    return [directory / name for name in texts]
