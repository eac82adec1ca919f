"""Metrics in the text format of Prometheus, as scrapers and the textfile collector of its node exporter read it.

Owns the format, version 0.0.4, and what every report says of itself in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from kafka_msgs.report.content import Metric, Report, Sample, Table

__all__ = ["exposition", "metrics_text"]

_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABEL: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_NOT_IN_NAME: Final = re.compile("[^a-zA-Z0-9_]")


def exposition(report: Report) -> str:
    """Return the metrics of a report as text, after those that all reports have: its facts and its numbers of rows."""
    return metrics_text((*_of_itself(report), *report.metrics))


def metrics_text(metrics: Iterable[Metric]) -> str:
    """Return metrics as text; one without samples is left out."""
    return "".join(f"{line}\n" for metric in metrics if metric.samples for line in _lines(metric))


def _of_itself(report: Report) -> Iterator[Metric]:
    facts = {_NOT_IN_NAME.sub("_", name): value for name, value in report.facts.items()}
    yield Metric(
        name="kafka_msgs_report_info",
        help="What the report is about, how and when it was made.",
        samples=(Sample({"title": report.title, **facts}, 1),),
    )
    rows = {each.title: len(each.rows) for each in report.sections if isinstance(each, Table)}
    # Reports that a collector reads together have tables of the same name, so each sample has the title of its report.
    yield Metric(
        name="kafka_msgs_report_rows",
        help="How many rows each table of the report shows.",
        samples=tuple(Sample({"title": report.title, "table": table}, number) for table, number in rows.items()),
    )


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help.translate(_IN_HELP)}"
    yield f"# TYPE {metric.name} {metric.type}"
    for sample in metric.samples:
        labels = ",".join(f'{name}="{value.translate(_IN_LABEL)}"' for name, value in sample.labels.items())
        yield f"{metric.name}{{{labels}}} {_value(sample.value)}"


def _value(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)
