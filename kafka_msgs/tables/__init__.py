"""Arrow tables as Parquet, Delta or Iceberg: write, append, merge by key, and read.

``table_format`` defines the interface of a format. ``parquet``, ``delta`` and ``iceberg`` implement it; the last two
use the libraries of the extras of the same names, without a JVM. ``key_joins`` finds rows by key. Callers define the
content of tables.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.tables.factory import FORMAT_NAMES, get_format
    from kafka_msgs.tables.table_format import TableFormat, add_day_column
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
