"""Reports: what was found, small enough to read, as values and as files.

``content`` describes what a report consists of, and knows nothing of how figures are computed. ``page`` and ``plots``
write it. Whatever engine computes the figures, the report is the same.
"""

from kafka_msgs.report.content import Bars, Lines, Metric, Report, Sample, Section, Table, by_hour
from kafka_msgs.report.page import write_report

__all__ = ["Bars", "Lines", "Metric", "Report", "Sample", "Section", "Table", "by_hour", "write_report"]
