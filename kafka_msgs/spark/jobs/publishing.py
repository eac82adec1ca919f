"""Tables that executors have written as Parquet, made versions of tables in another format.

Rows pass through the driver batch by batch, since what keeps Delta and Iceberg without a JVM runs there. A table with
keys is compared with its last version instead, and held for that; only what differs is merged.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from kafka_msgs.spark.spark_types import arrow_schema
from kafka_msgs.table_formats import TableFormat, add_day_column, get_format
from kafka_msgs.table_formats.parquet import parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TablePublisher", "publisher_of"]

_WORK: Final = ".work"
_DAY: Final = "day"


@frozen
class TablePublisher:
    """Where the tables of a job go, and in which format; ``work`` is where executors write them first."""

    form: TableFormat
    out: Path

    @property
    def work(self) -> Path:
        """The directory of tables in Parquet that are not published yet."""
        return self.out / _WORK

    def has_tables(self) -> bool:
        """Return whether an earlier run has left tables of this format."""
        return any(self.form.exists(str(path)) for path in self.out.iterdir() if path.is_dir())

    def start(self) -> None:
        """Remove what a run has left that did not end."""
        shutil.rmtree(self.work, ignore_errors=True)

    def publish(
        self, name: str, rows: DataFrame, partition_by: Sequence[str], keys: Sequence[str], time: str = ""
    ) -> None:
        """Make what executors have written the new version of a table; a step of a job has what is given."""
        place = str(self.out / name)
        read = parquet_rows(str(self.work / name), arrow_schema(rows.schema))
        if time:
            read, partition_by = add_day_column(read, time, _DAY), (_DAY,)
        if keys:
            self.form.publish(read.read_all(), place, keys, partition_by)
        else:
            self.form.write(read, place, partition_by)

    def end(self) -> None:
        """Remove what has been published."""
        shutil.rmtree(self.work)


def publisher_of(name: str, out: str) -> TablePublisher | None:
    """Return what publishes tables in a format, None for Parquet: that is what executors write.

    Raises ``MissingExtraError``.
    """
    form = get_format(name)
    return None if form.name == "parquet" else TablePublisher(form, Path(out).absolute())
