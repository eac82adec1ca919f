"""Tables as directories of Parquet files, partitioned as Hive does it.

Parquet has no versions. A new one is made in a directory beside the table, which then takes its place by two renames;
whoever was killed in between is put right by the next one that reads or writes. Files that a new version keeps are
linked, not copied. Directories are local.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from kafka_msgs.table_formats.key_joins import check_keys, drop_keys, removed_keys
from kafka_msgs.table_formats.table_format import TableFormat, cast_to_schema, to_reader

__all__ = ["ParquetFormat", "parquet_rows"]

_SCHEMA: Final = "_common_metadata"
"""The file with the types of all columns, those of partitions included; readers of Parquet know the name."""
_PARTITIONS: Final = b"kafka_msgs.partition_by"
_MOST_PARTITIONS: Final = 100_000
_OPEN_FILES: Final = 256


class ParquetFormat(TableFormat):
    """Parquet, through pyarrow."""

    name = "parquet"

    def exists(self, location: str) -> bool:
        """Return whether there is a table that this class has written."""
        return (_current(location) / _SCHEMA).exists()

    def write(self, rows: pa.RecordBatchReader | pa.Table, location: str, partition_by: Sequence[str] = ()) -> None:
        """Make the table, or give one that is there these rows."""
        by = _partitions(location) if self.exists(location) else list(partition_by)
        fresh = _beside(location, "new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        reader = to_reader(rows)
        _write_files(reader, fresh, by)
        pq.write_metadata(reader.schema.with_metadata({_PARTITIONS: "\0".join(by).encode()}), fresh / _SCHEMA)
        _take_place(fresh, _current(location))

    def append(self, rows: pa.RecordBatchReader | pa.Table, location: str) -> None:
        """Add rows to a table that is there."""
        fresh = _beside(location, "new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(_current(location), fresh, copy_function=os.link)
        _write_files(cast_to_schema(rows, _schema(location)), fresh, _partitions(location))
        _take_place(fresh, _current(location))

    def merge(self, rows: pa.Table, location: str, keys: Sequence[str], deleted_keys: pa.Table | None = None) -> None:
        """Write the table anew, as a stream, with other rows for the keys."""
        check_keys(rows, keys)
        schema = _schema(location)
        given = cast_to_schema(rows, schema).read_all()
        kept = drop_keys(self.read(location), removed_keys(given, deleted_keys, keys), keys)
        self.write(pa.RecordBatchReader.from_batches(schema, chain(kept, given.to_batches())), location)

    def read(self, location: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the last version."""
        return parquet_rows(str(_current(location)), _schema(location), columns)


def parquet_rows(
    location: str, schema: pa.Schema, columns: Sequence[str] | None = None, filesystem: fs.FileSystem | None = None
) -> pa.RecordBatchReader:
    """Return the rows of a directory of Parquet files, with the types of a schema; times of the oldest form, too."""
    form = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    by = ds.partitioning(schema, flavor="hive")
    files = ds.dataset(location, schema=schema, format=form, partitioning=by, filesystem=filesystem)
    return files.scanner(columns=list(columns or schema.names)).to_reader()


def _write_files(rows: pa.RecordBatchReader, location: Path, by: Sequence[str]) -> None:
    ds.write_dataset(
        rows,
        location,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([rows.schema.field(name) for name in by]), flavor="hive"),
        basename_template=f"part-{uuid4()}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_partitions=_MOST_PARTITIONS,
        max_open_files=_OPEN_FILES,
    )


def _schema(location: str) -> pa.Schema:
    return pq.read_schema(_current(location) / _SCHEMA).remove_metadata()


def _partitions(location: str) -> list[str]:
    found = pq.read_schema(_current(location) / _SCHEMA).metadata[_PARTITIONS].decode()
    return found.split("\0") if found else []


def _current(location: str) -> Path:
    """Return the directory of the table; one that was moved away and not replaced is moved back."""
    path, old = Path(location), _beside(location, "old")
    if not path.exists() and old.exists():
        old.rename(path)
    return path


def _take_place(fresh: Path, path: Path) -> None:
    old = _beside(str(path), "old")
    shutil.rmtree(old, ignore_errors=True)
    if path.exists():
        path.rename(old)
    fresh.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def _beside(location: str, what: str) -> Path:
    path = Path(location)
    return path.with_name(f".{path.name}.{what}")
