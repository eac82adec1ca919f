"""Apache Iceberg tables through pyiceberg: format version 2, without a JVM.

``iceberg_catalog`` finds the catalog of a table. pyarrow writes the data files, which are then added to the table,
because pyiceberg 0.12 turns null lists of structs into empty lists when reading and writing. A merge rewrites the files
that contain one of the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Transaction
from pyiceberg.transforms import IdentityTransform

from kafka_msgs.tables.iceberg_catalog import IcebergTable
from kafka_msgs.tables.key_joins import anti_join, check_keys, drop_keys, removed_keys
from kafka_msgs.tables.table_format import TableFormat, cast_to_schema, to_reader

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["IcebergFormat"]

_MOST_PARTITIONS: Final = 100_000
_OPEN_FILES: Final = 256
_PART: Final = "_part_"


class IcebergFormat(TableFormat):
    """Apache Iceberg."""

    name = "iceberg"
    remote = True

    def exists(self, location: str) -> bool:
        """Return whether the catalog contains the table."""
        return self._at(location).exists()

    def write(self, rows: pa.RecordBatchReader | pa.Table, location: str, partition_by: Sequence[str] = ()) -> None:
        """Create the table, or replace the rows of an existing one."""
        at, reader = self._at(location), to_reader(rows)
        if not at.exists():
            _create(at, reader, partition_by)
            return
        table = at.table()
        _commit(table, _data_files(table), _write_files(at, table, reader))

    def append(self, rows: pa.RecordBatchReader | pa.Table, location: str) -> None:
        """Add rows to an existing table."""
        at = self._at(location)
        table = at.table()
        _commit(table, [], _write_files(at, table, to_reader(rows)))

    def merge(self, rows: pa.Table, location: str, keys: Sequence[str], deleted_keys: pa.Table | None = None) -> None:
        """Rewrite the files that contain one of the keys."""
        check_keys(rows, keys)
        at = self._at(location)
        table = at.table()
        schema = _arrow_schema(table)
        given = cast_to_schema(rows, schema).read_all()
        removed = removed_keys(given, deleted_keys, keys)
        touched = [file for file in _data_files(table) if _has_a_key(at, schema, file, removed, keys)]
        kept = drop_keys(_rows(at, schema, touched, schema.names), removed, keys)
        reader = pa.RecordBatchReader.from_batches(schema, chain(kept, given.to_batches()))
        _commit(table, touched, _write_files(at, table, reader))

    def read(self, location: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the latest version. Strings and bytes have 64-bit offsets; integers have 32 or 64 bits."""
        at = self._at(location)
        table = at.table()
        schema = _arrow_schema(table)
        return _rows(at, schema, _data_files(table), list(columns or schema.names))

    def _at(self, location: str) -> IcebergTable:
        return IcebergTable.of(location, self.fs_options)


def _create(at: IcebergTable, rows: pa.RecordBatchReader, partition_by: Sequence[str]) -> None:
    with at.creation(rows.schema) as transaction:
        with transaction.update_spec() as spec:
            for column in partition_by:
                spec.add_field(column, IdentityTransform(), column)
        transaction.add_files(_write_files(at, transaction, rows), check_duplicate_files=False)


def _commit(table: Table, removed: Sequence[DataFile], added: Sequence[str]) -> None:
    """Commit one new version of a table with replaced files."""
    with table.transaction() as transaction:
        if removed:
            with transaction.update_snapshot().overwrite() as snapshot:
                for file in removed:
                    snapshot.delete_data_file(file)
        transaction.add_files(list(added), check_duplicate_files=False)


def _arrow_schema(table: Table | Transaction) -> pa.Schema:
    return schema_to_pyarrow(_metadata(table).schema(), include_field_ids=False)


def _metadata(table: Table | Transaction) -> TableMetadata:
    return table.table_metadata if isinstance(table, Transaction) else table.metadata


def _write_files(at: IcebergTable, table: Table | Transaction, rows: pa.RecordBatchReader) -> list[str]:
    """Write rows to new files, each with rows of one partition, and return their URLs."""
    metadata, schema, made = _metadata(table), _arrow_schema(table), []
    by = [field.name for field in metadata.spec().fields]
    parted = schema
    for name in by:
        parted = parted.append(schema.field(name).with_name(_PART + name))
    batches = (_parted(batch, by) for batch in cast_to_schema(rows, schema))
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(parted, batches),
        f"{at.path_of(metadata.location)}/data",
        filesystem=at.filesystem,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([parted.field(_PART + name) for name in by]), flavor="hive"),
        basename_template=f"{uuid4()}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_partitions=_MOST_PARTITIONS,
        max_open_files=_OPEN_FILES,
        file_visitor=lambda file: made.append(at.url_of(file.path)),
    )
    return made


def _parted(batch: pa.RecordBatch, by: Sequence[str]) -> pa.RecordBatch:
    """Return a batch with added partition columns, because the data files do not contain them."""
    for name in by:
        batch = batch.append_column(_PART + name, batch[name])
    return batch


def _data_files(table: Table) -> list[DataFile]:
    return [task.file for task in table.scan().plan_files()]


def _has_a_key(at: IcebergTable, schema: pa.Schema, file: DataFile, wanted: pa.Table, keys: Sequence[str]) -> bool:
    found = _rows(at, schema, [file], keys).read_all()
    return bool(anti_join(found, wanted, keys).num_rows < found.num_rows)


def _rows(
    at: IcebergTable, schema: pa.Schema, files: Sequence[DataFile], columns: Sequence[str]
) -> pa.RecordBatchReader:
    paths = [at.path_of(file.file_path) for file in files]
    data = ds.dataset(paths, schema=schema, format="parquet", filesystem=at.filesystem)
    return data.scanner(columns=list(columns)).to_reader()
