"""The interface of table formats, ``TableFormat``.

Implements the code that all formats share: publishing of complete tables, deleted keys, and day columns. The module of
a format implements its storage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from attrs import frozen

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.tables.key_joins import anti_join, check_keys, diff_rows

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.tables", extra="arrow", package="pyarrow") from error

__all__ = ["TableFormat", "add_day_column", "cast_to_schema", "to_reader"]


@frozen
class TableFormat(ABC):
    """Writes and reads tables of one format. Each write call atomically creates one new version.

    ``rows`` is an Arrow table or any object that ``pyarrow`` reads as a stream of batches; streams are not held in
    memory. ``location`` is the directory of a table, which is the same for all versions. If the format is ``remote``,
    it may also be a URI on S3, Azure or Google Cloud Storage, with Hadoop's settings in ``fs_options``.
    """

    name: ClassVar[str]
    remote: ClassVar[bool] = False

    fs_options: FilesystemOptions = NO_OPTIONS

    @abstractmethod
    def exists(self, location: str) -> bool:
        """Return whether a table of this format exists."""

    @abstractmethod
    def write(self, rows: pa.RecordBatchReader | pa.Table, location: str, partition_by: Sequence[str] = ()) -> None:
        """Create the table, or replace the rows of an existing one.

        ``partition_by`` names columns with few distinct values; rows with different values are in different files. An
        existing table keeps its partitioning and its columns.
        """

    @abstractmethod
    def append(self, rows: pa.RecordBatchReader | pa.Table, location: str) -> None:
        """Add rows to an existing table."""

    @abstractmethod
    def merge(self, rows: pa.Table, location: str, keys: Sequence[str], deleted_keys: pa.Table | None = None) -> None:
        """Replace rows with the same keys, add rows with new keys, and remove rows with the keys of ``deleted_keys``.

        ``deleted_keys`` has the columns ``keys``. A key in ``rows`` and ``deleted_keys`` keeps its new row. Raises
        ``OptionError`` if a key contains a null, or if two rows have the same key.
        """

    @abstractmethod
    def read(self, location: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the latest version in arbitrary order, with all columns or the given ones."""

    def publish(
        self, rows: pa.Table, location: str, keys: Sequence[str] = (), partition_by: Sequence[str] = ()
    ) -> None:
        """Replace the content of the table with these rows. With keys, only the differences are merged."""
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
    """Return rows as a stream of batches with the columns of a schema, in its order and with its types."""
    batches = (batch.select(schema.names).cast(schema) for batch in to_reader(rows))
    return pa.RecordBatchReader.from_batches(schema, batches)


def add_day_column(rows: pa.RecordBatchReader | pa.Table, time: str, name: str = "day") -> pa.RecordBatchReader:
    """Return rows with an additional last column for the UTC day of a time, null without a time."""
    reader = to_reader(rows)
    batches = (batch.append_column(name, _days(batch[time])) for batch in reader)
    return pa.RecordBatchReader.from_batches(reader.schema.append(pa.field(name, pa.date32())), batches)


def _days(times: pa.Array) -> pa.Array:
    return pc.cast(pc.floor_temporal(times, unit="day"), pa.date32())
