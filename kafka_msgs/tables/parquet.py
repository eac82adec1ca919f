"""Tables as directories of Parquet files with Hive partitioning.

Parquet has no table versions. A new version is written to a directory next to the table, and replaces it with two
renames. If the process is killed between them, the next reader or writer completes the replacement. Unchanged files are
linked to the new version, not copied. Only local directories are supported.
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

from kafka_msgs.tables.key_joins import check_keys, drop_keys, removed_keys
from kafka_msgs.tables.table_format import TableFormat, cast_to_schema, to_reader

__all__ = ["ParquetFormat", "parquet_rows"]

_SCHEMA: Final = "_common_metadata"
"""The file with the types of all columns, including partition columns. Parquet readers recognize the name."""
_PARTITIONS: Final = b"kafka_msgs.partition_by"
_MOST_PARTITIONS: Final = 100_000
_OPEN_FILES: Final = 256


class ParquetFormat(TableFormat):
    """Parquet, through pyarrow."""

    name = "parquet"

    def exists(self, location: str) -> bool:
        """Return whether a table written by this class exists."""
        return (_current(location) / _SCHEMA).exists()

    def write(self, rows: pa.RecordBatchReader | pa.Table, location: str, partition_by: Sequence[str] = ()) -> None:
        """Create the table, or replace the rows of an existing one."""
        by = _partitions(location) if self.exists(location) else list(partition_by)
        fresh = _beside(location, "new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        reader = to_reader(rows)
        _write_files(reader, fresh, by)
        pq.write_metadata(reader.schema.with_metadata({_PARTITIONS: "\0".join(by).encode()}), fresh / _SCHEMA)
        _take_place(fresh, _current(location))

    def append(self, rows: pa.RecordBatchReader | pa.Table, location: str) -> None:
        """Add rows to an existing table."""
        fresh = _beside(location, "new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(_current(location), fresh, copy_function=os.link)
        _write_files(cast_to_schema(rows, _schema(location)), fresh, _partitions(location))
        _take_place(fresh, _current(location))

    def merge(self, rows: pa.Table, location: str, keys: Sequence[str], deleted_keys: pa.Table | None = None) -> None:
        """Rewrite the table as a stream, with the rows of the keys replaced."""
        check_keys(rows, keys)
        schema = _schema(location)
        given = cast_to_schema(rows, schema).read_all()
        kept = drop_keys(self.read(location), removed_keys(given, deleted_keys, keys), keys)
        self.write(pa.RecordBatchReader.from_batches(schema, chain(kept, given.to_batches())), location)

    def read(self, location: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the latest version."""
        return parquet_rows(str(_current(location)), _schema(location), columns)


def parquet_rows(
    location: str | Sequence[str],
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    filesystem: fs.FileSystem | None = None,
    base: str | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of a directory of Parquet files with the types of a schema, including Parquet's old time type.

    ``location`` may also list the files. Partition columns are then in the parts of the paths below ``base``.
    """
    form = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    by = ds.partitioning(schema, flavor="hive")
    files = ds.dataset(
        location, schema=schema, format=form, partitioning=by, filesystem=filesystem, partition_base_dir=base
    )
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
    """Return the directory of the table. If it was moved away and not replaced, move it back."""
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
