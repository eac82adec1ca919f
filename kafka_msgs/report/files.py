"""The files of a report in a directory: the page, the same as JSON, its metrics for Prometheus, and its plots."""

from __future__ import annotations

from pathlib import Path

from kafka_msgs.report.content import Report, Table
from kafka_msgs.report.data import as_json
from kafka_msgs.report.exposition import exposition
from kafka_msgs.report.page import page_of
from kafka_msgs.report.plots import svg_of

__all__ = ["write_report"]


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write a report into a directory that exists; return the paths, first the page, then the data, then the plots.

    Text that is not Unicode has escapes in the page and in the metrics. Raises ``MissingExtraError`` without Jinja2.
    """
    metrics = exposition(report)
    texts = {
        "report.html": page_of(report, metrics),
        "report.json": as_json(report),
        "report.prom": metrics,
        **{each.file: svg_of(each, alone=True) for each in report.sections if not isinstance(each, Table)},
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    return [directory / name for name in texts]
