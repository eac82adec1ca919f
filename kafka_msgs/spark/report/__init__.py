"""Reports of jobs: what was found, small enough to read, as one HTML page with its plots beside it.

``content`` describes what a report consists of, ``page`` and ``plots`` write it. Figures are computed elsewhere.
"""

from kafka_msgs.spark.report.content import Bars, Lines, Report, Section, Table, by_hour, table_of, time_of
from kafka_msgs.spark.report.page import write_report

__all__ = ["Bars", "Lines", "Report", "Section", "Table", "by_hour", "table_of", "time_of", "write_report"]
