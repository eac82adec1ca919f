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

from kafka_msgs.formats.keyed import check_keys, removed_keys, surviving
from kafka_msgs.formats.table_format import TableFormat, as_reader, fitting

__all__ = ["ParquetFormat", "parquet_rows"]

_SCHEMA: Final = "_common_metadata"
"""The file with the types of all columns, those of partitions included; readers of Parquet know the name."""
_PARTITIONS: Final = b"kafka_msgs.partition_by"
_MOST_PARTITIONS: Final = 100_000
_OPEN_FILES: Final = 256


class ParquetFormat(TableFormat):
    """Parquet, through pyarrow."""

    name = "parquet"

    def exists(self, place: str) -> bool:
        """Return whether there is a table that this class has written."""
        return (_current(place) / _SCHEMA).exists()

    def write(self, rows: pa.RecordBatchReader | pa.Table, place: str, partition_by: Sequence[str] = ()) -> None:
        """Make the table, or give one that is there these rows."""
        by = _partitions(place) if self.exists(place) else list(partition_by)
        fresh = _beside(place, "new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        reader = as_reader(rows)
        _write_files(reader, fresh, by)
        pq.write_metadata(reader.schema.with_metadata({_PARTITIONS: "\0".join(by).encode()}), fresh / _SCHEMA)
        _take_place(fresh, _current(place))

    def append(self, rows: pa.RecordBatchReader | pa.Table, place: str) -> None:
        """Add rows to a table that is there."""
        fresh = _beside(place, "new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(_current(place), fresh, copy_function=os.link)
        _write_files(fitting(rows, _schema(place)), fresh, _partitions(place))
        _take_place(fresh, _current(place))

    def merge(self, rows: pa.Table, place: str, keys: Sequence[str], gone: pa.Table | None = None) -> None:
        """Write the table anew, as a stream, with other rows for the keys."""
        check_keys(rows, keys)
        schema = _schema(place)
        given = fitting(rows, schema).read_all()
        kept = surviving(self.read(place), removed_keys(given, gone, keys), keys)
        self.write(pa.RecordBatchReader.from_batches(schema, chain(kept, given.to_batches())), place)

    def read(self, place: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the last version."""
        return parquet_rows(str(_current(place)), _schema(place), columns)


def parquet_rows(
    place: str, schema: pa.Schema, columns: Sequence[str] | None = None, filesystem: fs.FileSystem | None = None
) -> pa.RecordBatchReader:
    """Return the rows of a directory of Parquet files, with the types of a schema; times of the oldest form, too."""
    form = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    by = ds.partitioning(schema, flavor="hive")
    files = ds.dataset(place, schema=schema, format=form, partitioning=by, filesystem=filesystem)
    return files.scanner(columns=list(columns or schema.names)).to_reader()


def _write_files(rows: pa.RecordBatchReader, place: Path, by: Sequence[str]) -> None:
    ds.write_dataset(
        rows,
        place,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([rows.schema.field(name) for name in by]), flavor="hive"),
        basename_template=f"part-{uuid4()}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_partitions=_MOST_PARTITIONS,
        max_open_files=_OPEN_FILES,
    )


def _schema(place: str) -> pa.Schema:
    return pq.read_schema(_current(place) / _SCHEMA).remove_metadata()


def _partitions(place: str) -> list[str]:
    found = pq.read_schema(_current(place) / _SCHEMA).metadata[_PARTITIONS].decode()
    return found.split("\0") if found else []


def _current(place: str) -> Path:
    """Return the directory of the table; one that was moved away and not replaced is moved back."""
    path, old = Path(place), _beside(place, "old")
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


def _beside(place: str, what: str) -> Path:
    path = Path(place)
    return path.with_name(f".{path.name}.{what}")
