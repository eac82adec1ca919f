"""The tables of a run, published as table versions in another format. Every run adds one version.

The run also keeps its Parquet tables, which the next run resumes from. A table with keys is compared with its latest
version, and only the differences are merged. Tables without keys are written as a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.pipeline.table_output import OutputDirectory, TableSpec
from kafka_msgs.tables import TableFormat, add_day_column
from kafka_msgs.tables.parquet import parquet_rows

__all__ = ["publish_tables"]

_DAY: Final = "day"


def publish_tables(form: TableFormat, tables: Mapping[str, TableSpec], run: OutputDirectory, out: str) -> None:
    """Publish the tables of the run in ``run`` as new versions of the tables in ``out``, a path or URI."""
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
