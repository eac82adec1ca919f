"""Reports: results in readable size, as values and as files.

``model`` defines the structure of a report, and ``sections`` builds its parts from rows. ``writer`` writes a report as
an HTML page, as JSON and as metrics. Other packages compute the statistics; reports are the same for all engines.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

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

if TYPE_CHECKING:
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
else:
    # Metrics and lags need no writer, which imports plots and pages.
    __getattr__, __dir__ = lazy_module_attributes(
        __name__, dict.fromkeys(__all__, "model") | {"write_report": "writer"}
    )
