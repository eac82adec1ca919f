"""What a format of tables does: one value of ``TableFormat`` for each.

Owns what is the same for all: rows that are whole, the keys that are gone, days. How a table is kept is left to the
module of the format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.table_formats.key_joins import anti_join, check_keys, diff_rows

__all__ = ["TableFormat", "add_day_column", "cast_to_schema", "to_reader"]


@frozen
class TableFormat(ABC):
    """Writes and reads tables of one format. Each call that writes makes one new version: all of it, or nothing.

    ``rows`` is a table of Arrow or anything that ``pyarrow`` reads as a stream of batches; a stream is not held in
    memory. ``location`` is the directory of a table. It is the same directory for all versions. Where the format is
    ``remote``, it may be the URI of one on S3, Azure or Google's storage, and ``fs_options`` are Hadoop's for it.
    """

    name: ClassVar[str]
    remote: ClassVar[bool] = False

    fs_options: FilesystemOptions = NO_OPTIONS

    @abstractmethod
    def exists(self, location: str) -> bool:
        """Return whether there is a table of this format."""

    @abstractmethod
    def write(self, rows: pa.RecordBatchReader | pa.Table, location: str, partition_by: Sequence[str] = ()) -> None:
        """Make the table, or give one that is there these rows in the place of its own.

        ``partition_by`` names columns of few values: rows with other values are in other files. A table that is there
        keeps its partitions and its columns.
        """

    @abstractmethod
    def append(self, rows: pa.RecordBatchReader | pa.Table, location: str) -> None:
        """Add rows to a table that is there."""

    @abstractmethod
    def merge(self, rows: pa.Table, location: str, keys: Sequence[str], deleted_keys: pa.Table | None = None) -> None:
        """Put rows in the place of those with the same keys, add the others, and remove rows with the keys of
        ``deleted_keys``.

        ``deleted_keys`` has the columns ``keys``. A key that is in both keeps its new row. Raises ``OptionError`` where
        a key has a null, or where two rows have the same key.
        """

    @abstractmethod
    def read(self, location: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the last version, in no order, with all columns or those that are named."""

    def publish(
        self, rows: pa.Table, location: str, keys: Sequence[str] = (), partition_by: Sequence[str] = ()
    ) -> None:
        """Leave the table with these rows, whatever there was before; with keys, only what differs is merged."""
        if not keys or not self.exists(location):
            self.write(rows, location, partition_by)
            return
        check_keys(rows, keys)
        before = cast_to_schema(self.read(location), rows.schema).read_all()
        deleted_keys = anti_join(before.select(keys), rows, keys)
        self.merge(diff_rows(rows, before, keys), location, keys, deleted_keys)


def to_reader(rows: pa.RecordBatchReader | pa.Table) -> pa.RecordBatchReader:
    """Return rows as a stream of batches."""
    return rows if isinstance(rows, pa.RecordBatchReader) else rows.to_reader()


def cast_to_schema(rows: pa.RecordBatchReader | pa.Table, schema: pa.Schema) -> pa.RecordBatchReader:
    """Return rows as a stream of batches with the columns of a schema, in its order and types."""
    batches = (batch.select(schema.names).cast(schema) for batch in to_reader(rows))
    return pa.RecordBatchReader.from_batches(schema, batches)


def add_day_column(rows: pa.RecordBatchReader | pa.Table, time: str, name: str = "day") -> pa.RecordBatchReader:
    """Return rows with a last column for the day of a time in UTC, null where there is no time."""
    reader = to_reader(rows)
    batches = (batch.append_column(name, _days(batch[time])) for batch in reader)
    return pa.RecordBatchReader.from_batches(reader.schema.append(pa.field(name, pa.date32())), batches)


def _days(times: pa.Array) -> pa.Array:
    return pc.cast(pc.floor_temporal(times, unit="day"), pa.date32())
