"""The tables of a run as versions of tables in another format, of which every run adds one.

The run keeps its own tables in Parquet, from which the next one goes on. A table with keys is compared with its last
version, and only what differs is merged; the others are written as a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.pipeline.table_output import OutputDirectory, TableSpec
from kafka_msgs.table_formats import TableFormat, add_day_column
from kafka_msgs.table_formats.parquet import parquet_rows

__all__ = ["publish_tables"]

_DAY: Final = "day"


def publish_tables(form: TableFormat, tables: Mapping[str, TableSpec], run: OutputDirectory, out: str) -> None:
    """Make the tables that a run has left in ``run`` the new versions of those in ``out``, a path or a URI."""
    for name, table in tables.items():
        _publish(form, table, run.subdirectory(name), f"{out.rstrip('/')}/{name}")


def _publish(form: TableFormat, table: TableSpec, source: OutputDirectory, place: str) -> None:
    rows = parquet_rows(source.path, table.schema, filesystem=source.filesystem)
    if table.keys:
        form.publish(rows.read_all(), place, table.keys, table.partition_by)
    elif table.time:
        form.write(add_day_column(rows, table.time, _DAY), place, (_DAY,))
    else:
        form.write(rows, place, table.partition_by)
