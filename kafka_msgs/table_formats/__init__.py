"""Tables of Arrow as Parquet, Delta or Iceberg: written, appended to, merged by key, read.

``table_format`` has what a format does. ``parquet``, ``delta`` and ``iceberg`` do it, the last two through libraries of
the extras of the same names, without a JVM. ``key_joins`` finds rows by their keys. What tables hold is left to
callers.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.table_formats.factory import FORMAT_NAMES, get_format
    from kafka_msgs.table_formats.table_format import TableFormat, add_day_column
else:
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "FORMAT_NAMES": "factory",
            "TableFormat": "table_format",
            "get_format": "factory",
            "add_day_column": "table_format",
        },
    )

__all__ = ["FORMAT_NAMES", "TableFormat", "add_day_column", "get_format"]
