"""The tables of a run as versions of tables in another format, of which every run adds one.

The run keeps its own tables in Parquet, from which the next one goes on. A table with keys is compared with its last
version, and only what differs is merged; the others are written as a stream.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
from attrs import frozen

from kafka_msgs.formats import TableFormat, with_day
from kafka_msgs.formats.parquet import parquet_rows
from kafka_msgs.pipeline.answers import GROUPS, HISTORY, OFFSETS, PENDING, PROBLEMS
from kafka_msgs.pipeline.history import HISTORY_TABLE

__all__ = ["publish_tables"]

_DAY: Final = "day"


@frozen
class _Table:
    """A table: its columns, the keys of its rows, and the time by whose day it is partitioned."""

    schema: pa.Schema
    keys: tuple[str, ...] = ()
    time: str = ""


_TABLES: Final = {
    "offsets": _Table(OFFSETS, keys=("group", "topic", "topicPartition")),
    "pending": _Table(PENDING),
    "groups": _Table(GROUPS, keys=("group",)),
    "problems": _Table(PROBLEMS),
    HISTORY_TABLE: _Table(HISTORY.append(pa.field("logPartition", pa.int32())), time="logTimestamp"),
}


def publish_tables(form: TableFormat, run: Path, out: Path) -> None:
    """Make the tables that a run has left in ``run`` the new versions of those in ``out``."""
    for name, table in _TABLES.items():
        if (run / name).exists():
            _publish(form, table, run / name, str(out / name))


def _publish(form: TableFormat, table: _Table, source: Path, place: str) -> None:
    rows = parquet_rows(str(source), table.schema)
    if table.keys:
        form.publish(rows.read_all(), place, table.keys)
    elif table.time:
        form.write(with_day(rows, table.time, _DAY), place, (_DAY,))
    else:
        form.write(rows, place)
