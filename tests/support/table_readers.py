"""The rows of tables in each format, as its own library reads them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from deltalake import DeltaTable

from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.store_options import storage_options
from kafka_msgs.tables.iceberg_catalog import IcebergLocation
from tests.support.committed_tables import committed_table

__all__ = ["delta_table", "read_table"]


def delta_table(location: str, settings: Mapping[str, str] | None = None) -> DeltaTable:
    """Return a Delta table at a path or URI."""
    options = storage_options(location, FilesystemOptions.from_mapping(settings or {}))
    return DeltaTable(location, storage_options=options or None)


def read_table(form: str, location: str, settings: Mapping[str, str] | None = None) -> pa.Table:
    """Return the rows of the latest version of a table of a job, of the latest commit for Parquet."""
    if form == "parquet":
        out, _, name = location.rpartition("/")
        return committed_table(out, name, settings)
    if form == "delta":
        return delta_table(location, settings).to_pyarrow_dataset().to_table()
    table = IcebergLocation.of(location, FilesystemOptions.from_mapping(settings or {})).table()
    assert table is not None
    return table.scan().to_arrow()
