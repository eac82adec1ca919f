"""Tables of Apache Iceberg, through pyiceberg: format version 2, and no JVM.

The catalog is ``catalog.db`` beside the tables, a file of SQLite in the layout of Iceberg's JDBC catalog. Files of rows
are written by pyarrow and then added to the table, because pyiceberg 0.12 turns a list of structs that is null into an
empty one, both ways. A merge writes files anew that have one of the keys. Directories are local.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Transaction
from pyiceberg.transforms import IdentityTransform

from kafka_msgs.formats.keyed import check_keys, left_out, removed_keys, surviving
from kafka_msgs.formats.table_format import TableFormat, as_reader, fitting

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["CATALOG_FILE", "NAMESPACE", "IcebergFormat", "catalog_of"]

CATALOG_FILE: Final = "catalog.db"
"""The catalog, beside the directories of its tables."""
NAMESPACE: Final = "kafka"
"""The namespace of the tables in their catalog; the name of a table is that of its directory."""
_MOST_PARTITIONS: Final = 100_000
_OPEN_FILES: Final = 256
_SCHEME: Final = "file://"
_PART: Final = "_part_"


class IcebergFormat(TableFormat):
    """Apache Iceberg."""

    name = "iceberg"

    def exists(self, place: str) -> bool:
        """Return whether the catalog beside the directory has the table."""
        path = Path(place).absolute()
        return (path.parent / CATALOG_FILE).exists() and catalog_of(path.parent).table_exists(_name(path))

    def write(self, rows: pa.RecordBatchReader | pa.Table, place: str, partition_by: Sequence[str] = ()) -> None:
        """Make the table, or give one that is there these rows."""
        reader = as_reader(rows)
        if not self.exists(place):
            _create(place, reader, partition_by)
            return
        table = _table(place)
        _commit(table, _data_files(table), _write_files(table, reader))

    def append(self, rows: pa.RecordBatchReader | pa.Table, place: str) -> None:
        """Add rows to a table that is there."""
        table = _table(place)
        _commit(table, [], _write_files(table, as_reader(rows)))

    def merge(self, rows: pa.Table, place: str, keys: Sequence[str], gone: pa.Table | None = None) -> None:
        """Write the files anew that have one of the keys."""
        check_keys(rows, keys)
        table = _table(place)
        schema = _arrow_schema(table)
        given = fitting(rows, schema).read_all()
        removed = removed_keys(given, gone, keys)
        touched = [file for file in _data_files(table) if _has_a_key(table, file, removed, keys)]
        kept = surviving(_rows(table, touched, schema.names), removed, keys)
        reader = pa.RecordBatchReader.from_batches(schema, chain(kept, given.to_batches()))
        _commit(table, touched, _write_files(table, reader))

    def read(self, place: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of the last version; strings and bytes have 64-bit offsets, and integers 32 bits or 64."""
        table = _table(place)
        return _rows(table, _data_files(table), list(columns or _arrow_schema(table).names))


def catalog_of(directory: Path) -> SqlCatalog:
    """Return the catalog of the tables in a directory, which is made with the first of them."""
    return SqlCatalog(NAMESPACE, uri=f"sqlite:///{directory / CATALOG_FILE}", warehouse=_url(directory))


def _name(path: Path) -> str:
    return f"{NAMESPACE}.{path.name}"


def _table(place: str) -> Table:
    path = Path(place).absolute()
    return catalog_of(path.parent).load_table(_name(path))


def _create(place: str, rows: pa.RecordBatchReader, partition_by: Sequence[str]) -> None:
    path = Path(place).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    catalog = catalog_of(path.parent)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    creation = catalog.create_table_transaction(_name(path), rows.schema, location=_url(path))
    with creation as transaction:
        with transaction.update_spec() as spec:
            for column in partition_by:
                spec.add_field(column, IdentityTransform(), column)
        transaction.add_files(_write_files(transaction, rows), check_duplicate_files=False)


def _commit(table: Table, removed: Sequence[DataFile], added: Sequence[str]) -> None:
    """Make one new version of a table, with other files."""
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


def _write_files(table: Table | Transaction, rows: pa.RecordBatchReader) -> list[str]:
    """Write rows to new files, those of one partition each, and return the URLs of these."""
    metadata, schema, made = _metadata(table), _arrow_schema(table), []
    by = [field.name for field in metadata.spec().fields]
    parted = schema
    for name in by:
        parted = parted.append(schema.field(name).with_name(_PART + name))
    batches = (_parted(batch, by) for batch in fitting(rows, schema))
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(parted, batches),
        Path(_path(metadata.location)) / "data",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([parted.field(_PART + name) for name in by]), flavor="hive"),
        basename_template=f"{uuid4()}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_partitions=_MOST_PARTITIONS,
        max_open_files=_OPEN_FILES,
        file_visitor=lambda file: made.append(_url(Path(file.path))),
    )
    return made


def _parted(batch: pa.RecordBatch, by: Sequence[str]) -> pa.RecordBatch:
    """Return a batch with columns to part files by, since those are not in the files."""
    for name in by:
        batch = batch.append_column(_PART + name, batch[name])
    return batch


def _data_files(table: Table) -> list[DataFile]:
    return [task.file for task in table.scan().plan_files()]


def _has_a_key(table: Table, file: DataFile, wanted: pa.Table, keys: Sequence[str]) -> bool:
    found = _rows(table, [file], keys).read_all()
    return bool(left_out(found, wanted, keys).num_rows < found.num_rows)


def _rows(table: Table, files: Sequence[DataFile], columns: Sequence[str]) -> pa.RecordBatchReader:
    schema = _arrow_schema(table)
    paths = [_path(file.file_path) for file in files]
    return ds.dataset(paths, schema=schema, format="parquet").scanner(columns=list(columns)).to_reader()


def _url(path: Path) -> str:
    """Return a path as pyiceberg and Iceberg take it: nothing is quoted."""
    return f"{_SCHEME}{path.absolute()}"


def _path(url: str) -> str:
    return url.removeprefix(_SCHEME)
