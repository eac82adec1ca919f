"""The tables of a commit, published as table versions in another format. Every run adds one version.

The run also keeps its Parquet tables, which the next run resumes from. A table with keys is compared with its latest
version, and only the differences are merged. Tables without keys are written as a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables import TableFormat, add_day_column
from kafka_msgs.tables.commit_log import CommitLog, Snapshot
from kafka_msgs.tables.parquet import parquet_rows
from kafka_msgs.tables.task_output import TableSpec

__all__ = ["publish_head", "publish_tables", "table_rows"]

_DAY: Final = "day"


def publish_head(form: TableFormat, tables: Mapping[str, TableSpec], log: CommitLog, out: str) -> None:
    """Publish the tables of the latest commit. If another run commits meanwhile, its tables are published next.

    So a slow run does not replace later rows by earlier ones, and the next run publishes what a killed one did not.
    """
    head = log.head()
    while head is not None:
        publish_tables(form, tables, log.storage, head, out)
        last = log.head()
        head = None if last is None or last.number == head.number else last


def publish_tables(
    form: TableFormat, tables: Mapping[str, TableSpec], storage: Storage, snapshot: Snapshot, out: str
) -> None:
    """Publish the tables of a commit as new versions of the tables in ``out``, a path or URI."""
    for name, table in tables.items():
        _publish(form, table, table_rows(storage, snapshot, name, table.schema), f"{out.rstrip('/')}/{name}")


def table_rows(storage: Storage, snapshot: Snapshot, name: str, schema: pa.Schema) -> pa.RecordBatchReader:
    """Return the rows of a committed table."""
    files = [storage.full_path(each.path) for each in snapshot.tables[name].values()]
    return parquet_rows(files, schema, filesystem=storage.filesystem, base=storage.full_path(""))


def _publish(form: TableFormat, table: TableSpec, rows: pa.RecordBatchReader, place: str) -> None:
    if table.keys:
        form.publish(rows.read_all(), place, table.keys, table.partition_by)
    elif table.time:
        form.write(add_day_column(rows, table.time, _DAY), place, (_DAY,))
    else:
        form.write(rows, place, table.partition_by)
