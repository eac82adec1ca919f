"""The tables of a run as versions of tables in another format, of which every run adds one.

The run keeps its own tables in Parquet, from which the next one goes on. A table with keys is compared with its last
version, and only what differs is merged; the others are written as a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.formats import TableFormat, with_day
from kafka_msgs.formats.parquet import parquet_rows
from kafka_msgs.pipeline.output import Place, TableForm

__all__ = ["publish_tables"]

_DAY: Final = "day"


def publish_tables(form: TableFormat, tables: Mapping[str, TableForm], run: Place, out: str) -> None:
    """Make the tables that a run has left in ``run`` the new versions of those in ``out``, a path or a URI."""
    for name, table in tables.items():
        _publish(form, table, run.inside(name), f"{out.rstrip('/')}/{name}")


def _publish(form: TableFormat, table: TableForm, source: Place, place: str) -> None:
    rows = parquet_rows(source.path, table.schema, filesystem=source.filesystem)
    if table.keys:
        form.publish(rows.read_all(), place, table.keys, table.by)
    elif table.time:
        form.write(with_day(rows, table.time, _DAY), place, (_DAY,))
    else:
        form.write(rows, place, table.by)
