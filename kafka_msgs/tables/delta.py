"""Delta Lake tables through delta-rs, at any directory or URI that it supports, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from kafka_msgs.filesystems.store_options import storage_options
from kafka_msgs.tables.key_joins import anti_join, check_keys
from kafka_msgs.tables.table_format import TableFormat, to_reader

__all__ = ["DeltaFormat"]

_GONE: Final = "_gone"


class DeltaFormat(TableFormat):
    """Delta Lake. Unreferenced files remain until you call ``DeltaTable.vacuum``."""

    name = "delta"
    remote = True

    def exists(self, location: str) -> bool:
        """Return whether a Delta table exists."""
        return bool(DeltaTable.is_deltatable(location, self._options(location)))

    def write(self, rows: pa.RecordBatchReader | pa.Table, location: str, partition_by: Sequence[str] = ()) -> None:
        """Create the table, or replace the rows of an existing one."""
        by = None if self.exists(location) else list(partition_by)
        write_deltalake(
            location, to_reader(rows), mode="overwrite", partition_by=by, storage_options=self._options(location)
        )

    def append(self, rows: pa.RecordBatchReader | pa.Table, location: str) -> None:
        """Add rows to an existing table."""
        write_deltalake(self._table(location), to_reader(rows), mode="append")

    def merge(self, rows: pa.Table, location: str, keys: Sequence[str], deleted_keys: pa.Table | None = None) -> None:
        """Merge with Delta's own merge, which rewrites only files that contain the keys."""
        check_keys(rows, keys)
        columns = {name: f"source.`{name}`" for name in rows.column_names}
        (
            self._table(location)
            .merge(
                _source(rows, keys, deleted_keys),
                predicate=" AND ".join(f"target.`{name}` = source.`{name}`" for name in keys),
                source_alias="source",
                target_alias="target",
            )
            .when_matched_delete(f"source.{_GONE} = true")
            .when_matched_update(columns)
            .when_not_matched_insert(columns, predicate=f"source.{_GONE} = false")
            .execute()
        )

    def read(self, location: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the latest version."""
        names = None if columns is None else list(columns)
        return self._table(location).to_pyarrow_dataset().scanner(columns=names).to_reader()

    def _table(self, location: str) -> DeltaTable:
        return DeltaTable(location, storage_options=self._options(location))

    def _options(self, location: str) -> dict[str, str] | None:
        return storage_options(location, self.fs_options) or None


def _source(rows: pa.Table, keys: Sequence[str], deleted_keys: pa.Table | None) -> pa.Table:
    """Return all rows to merge, with a column that marks removed rows."""
    marked = rows.append_column(_GONE, pa.repeat(pa.scalar(False), rows.num_rows))
    if deleted_keys is None:
        return marked
    left = anti_join(deleted_keys.select(keys).cast(rows.select(keys).schema), rows, keys)
    removed = left.append_column(_GONE, pa.repeat(pa.scalar(True), left.num_rows))
    return pa.concat_tables([marked, removed], promote_options="default")
