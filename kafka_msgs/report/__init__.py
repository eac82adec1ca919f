"""Reports: results in readable size, as values and as files.

``model`` defines the structure of a report, and ``sections`` builds its parts from rows. ``writer`` writes a report as
an HTML page, as JSON and as metrics. Other packages compute the statistics; reports are the same for all engines.
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
