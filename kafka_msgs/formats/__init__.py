"""Tables of Arrow as Parquet, Delta or Iceberg: written, appended to, merged by key, read.

``table_format`` has what a format does. ``parquet``, ``delta`` and ``iceberg`` do it, the last two through libraries of
the extras of the same names, without a JVM. ``keyed`` finds rows by their keys. What tables hold is left to callers.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy import lazy_attributes

if TYPE_CHECKING:
    from kafka_msgs.formats.named import FORMAT_NAMES, format_named
    from kafka_msgs.formats.table_format import TableFormat, with_day
else:
    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {"FORMAT_NAMES": "named", "TableFormat": "table_format", "format_named": "named", "with_day": "table_format"},
    )

__all__ = ["FORMAT_NAMES", "TableFormat", "format_named", "with_day"]
