"""Reports: what was found, small enough to read, as values and as files.

``model`` describes what a report consists of, and ``sections`` makes parts of it from rows. ``writer`` writes it: as a
page, as JSON and as metrics. Figures are computed elsewhere; whatever engine does it, the report is the same.
"""

from kafka_msgs.report.model import (
    BarPlot,
    LinePlot,
    Metric,
    Report,
    ReportPart,
    Sample,
    Section,
    Table,
    by_hour,
    report_of,
)
from kafka_msgs.report.writer import write_report

__all__ = [
    "BarPlot",
    "LinePlot",
    "Metric",
    "Report",
    "ReportPart",
    "Sample",
    "Section",
    "Table",
    "by_hour",
    "report_of",
    "write_report",
]  # fmt: skip
