"""Metrics in the Prometheus text format, for scrapers and the node exporter's textfile collector.

Defines the format, version 0.0.4, and the metrics that every report has about itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kafka_msgs.report.model import Metric, Report, Sample, Table, metric

__all__ = ["exposition", "metrics_text"]

_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABEL: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_NOT_IN_NAME: Final = re.compile("[^a-zA-Z0-9_]")


def exposition(report: Report) -> str:
    """Return the metrics of a report as text, preceded by the metrics of all reports: facts and row counts.

    If the facts contain the ``cluster``, all metrics have it as a label.
    """
    cluster = {"cluster": report.facts["cluster"]} if "cluster" in report.facts else {}
    return metrics_text(_of_itself(report)) + metrics_text(report.metrics, cluster)


def metrics_text(metrics: Iterable[Metric], common: Mapping[str, str] | None = None) -> str:
    """Return metrics as text, omitting metrics without samples. ``common`` contains labels for all samples."""
    given = list(metrics)
    # Metrics about the same objects share their label mappings.
    labels = {id(sample.labels): sample.labels for metric in given for sample in metric.samples}
    texts = {number: _labels({**(common or {}), **each}) for number, each in labels.items()}
    return "".join(f"{line}\n" for metric in given if metric.samples for line in _lines(metric, texts))


def _of_itself(report: Report) -> Iterator[Metric]:
    facts = {_NOT_IN_NAME.sub("_", name): value for name, value in report.facts.items()}
    yield metric("kafka_msgs_report_info", [Sample({"title": report.title, **facts}, 1)])
    rows = {each.title: len(each.rows) for each in report.sections if isinstance(each, Table)}
    # A collector may read several reports with equal table names, so each sample includes the title of its report.
    samples = (Sample({"title": report.title, "table": table}, number) for table, number in rows.items())
    yield metric("kafka_msgs_report_rows", samples)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value.translate(_IN_LABEL)}"' for name, value in labels.items())


def _lines(metric: Metric, labels: Mapping[int, str]) -> Iterator[str]:
    """Yield the lines of a metric; ``labels`` contains the label texts by the identity of their mappings."""
    yield f"# HELP {metric.name} {metric.help.translate(_IN_HELP)}"
    yield f"# TYPE {metric.name} {metric.type}"
    for sample in metric.samples:
        yield f"{metric.name}{{{labels[id(sample.labels)]}}} {_value(sample.value)}"


def _value(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)
