"""Publishes the Parquet tables that executors have written as versions of tables in another format.

Rows pass through the driver batch by batch, because the JVM-free libraries for Delta and Iceberg run there. A table
with keys is instead held in memory and compared with its latest version, and only the differences are merged.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from kafka_msgs.spark.spark_types import arrow_schema
from kafka_msgs.tables import TableFormat, add_day_column, get_format
from kafka_msgs.tables.parquet import parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TablePublisher", "publisher_of"]

_WORK: Final = ".work"
_DAY: Final = "day"


@frozen
class TablePublisher:
    """The destination and format of a job's tables; executors first write them to ``work``."""

    form: TableFormat
    out: Path

    @property
    def work(self) -> Path:
        """The directory of the unpublished Parquet tables."""
        return self.out / _WORK

    def has_tables(self) -> bool:
        """Return whether an earlier run has left tables of this format."""
        return any(self.form.exists(str(path)) for path in self.out.iterdir() if path.is_dir())

    def start(self) -> None:
        """Remove the leftovers of an interrupted run."""
        shutil.rmtree(self.work, ignore_errors=True)

    def publish(
        self, name: str, rows: DataFrame, partition_by: Sequence[str], keys: Sequence[str], time: str = ""
    ) -> None:
        """Publish the executors' output as the new version of a table, with the settings of the job step."""
        place = str(self.out / name)
        read = parquet_rows(str(self.work / name), arrow_schema(rows.schema))
        if time:
            read, partition_by = add_day_column(read, time, _DAY), (_DAY,)
        if keys:
            self.form.publish(read.read_all(), place, keys, partition_by)
        else:
            self.form.write(read, place, partition_by)

    def end(self) -> None:
        """Remove the published Parquet tables."""
        shutil.rmtree(self.work)


def publisher_of(name: str, out: str) -> TablePublisher | None:
    """Return the publisher for a format, or None for Parquet, which executors write directly.

    Raises ``MissingExtraError``.
    """
    form = get_format(name)
    return None if form.name == "parquet" else TablePublisher(form, Path(out).absolute())
