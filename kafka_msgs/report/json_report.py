"""A report as JSON: the full content of the page, as values.

Defines the schema of the file. Its version changes if readers of the old version would misread the new one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from kafka_msgs.report.cells import kinds_of
from kafka_msgs.report.model import BarPlot, LinePlot, Metric, Report, Section, Table

__all__ = ["VERSION", "to_dict", "to_json"]

VERSION: Final = 1
"""The version of the schema."""

_PLAIN: Final = (str, int, bool, type(None))


def to_json(report: Report) -> str:
    """Return a report as one line of ASCII JSON, which can also represent text that is not valid Unicode.

    Without indentation, Python is 20× faster, and a report has up to 10,000 offsets.
    """
    return json.dumps(to_dict(report), allow_nan=False) + "\n"


def to_dict(report: Report) -> dict[str, Any]:
    """Return a report as JSON-compatible values: mappings, lists, text and numbers."""
    return {
        "schema": "kafka-msgs-report",
        "version": VERSION,
        "title": report.title,
        "facts": dict(report.facts),
        "sections": [_section(each) for each in report.sections],
        "metrics": [_metric(each) for each in report.metrics],
    }


def _section(section: Section) -> dict[str, Any]:
    common = {"title": section.title, "note": section.note}
    if isinstance(section, Table):
        columns = [{"name": name, "kind": kind} for name, kind in zip(section.columns, kinds_of(section), strict=True)]
        rows = [[_value(each) for each in row] for row in section.rows]
        total = max(section.total or 0, len(rows))
        return {"type": "table", **common, "note": section.note_text, "columns": columns, "rows": rows, "total": total}
    series = {name: _value(list(values)) for name, values in section.series.items()}
    return {**_plot(section), **common, "file": section.file, "unit": section.unit, "series": series}


def _plot(plot: BarPlot | LinePlot) -> dict[str, Any]:
    if isinstance(plot, LinePlot):
        return {"type": "lines", "times": list(plot.x)}
    return {"type": "bars", "labels": list(plot.labels), "log": plot.log}


def _metric(metric: Metric) -> dict[str, Any]:
    samples = [{"labels": dict(each.labels), "value": _value(each.value)} for each in metric.samples]
    return {"name": metric.name, "help": metric.help, "type": metric.type, "samples": samples}


def _value(value: Any) -> Any:
    """Return a JSON-compatible value. Numbers that JSON does not support become text, and so do other objects."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): _value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_value(each) for each in value]
    return value.hex() if isinstance(value, bytes) else str(value)
