"""Apache Iceberg tables through pyiceberg: format version 2, without a JVM.

A snapshot adds and removes files by reference. The partition columns are only in the metadata of the files, from which
readers take identity partitions. The number of the commit is in the summary of the snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import pyarrow.parquet as pq
from attrs import field, frozen
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions.literals import literal
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from sqlalchemy.exc import SQLAlchemyError

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.tables.commit_log import WrittenFile
from kafka_msgs.tables.iceberg_catalog import NAMESPACE, IcebergLocation
from kafka_msgs.tables.table_format import TableFormat, check_columns, partition_values
from kafka_msgs.tables.task_output import TableSpec

__all__ = ["IcebergFormat"]

_NUMBER: Final = "kafka-msgs.commit"
_PROPERTIES: Final = {TableProperties.COMMIT_NUM_RETRIES: "0"}
"""Without it, pyiceberg would repeat a refused commit on top of the version that it conflicts with."""


@frozen
class OpenIcebergTable:
    """A version of an Iceberg table. ``table`` is None before the first one."""

    at: IcebergLocation
    spec: TableSpec
    table: Table | None
    _data_files: dict[str, DataFile] = field(init=False)

    @_data_files.default
    def _read_data_files(self) -> dict[str, DataFile]:
        found = [] if self.table is None else [task.file for task in self.table.scan().plan_files()]
        return {file.file_path.removeprefix(f"{self.at.url}/"): file for file in found}

    @property
    def number(self) -> int | None:
        """The number of the last commit in the table."""
        if self.table is None:
            return None
        summaries = (each.summary for each in self.table.snapshots())
        return max((int(each[_NUMBER] or 0) for each in summaries if each and _NUMBER in each), default=0)

    @property
    def files(self) -> Collection[str]:
        """The paths of the files."""
        return self._data_files.keys()

    def commit(self, number: int, added: Mapping[str, WrittenFile], removed: Collection[str]) -> None:
        """Add and remove files in one snapshot."""
        with self._creation() if self.table is None else self.table.transaction() as transaction:
            if self.table is None:
                self._define(transaction)
            with transaction.update_snapshot(snapshot_properties={_NUMBER: str(number)}).overwrite() as snapshot:
                for path in removed:
                    snapshot.delete_data_file(self._data_files[path])
                for path, file in added.items():
                    snapshot.append_data_file(self._data_file(transaction, path, file))

    def _creation(self) -> Transaction:
        catalog = self.at.catalog()
        catalog.create_namespace_if_not_exists(NAMESPACE)
        return catalog.create_table_transaction(self.at.name, self.spec.schema, location=self.at.url)

    def _define(self, transaction: Transaction) -> None:
        """Add the partition columns, and the mapping from the columns of files without Iceberg's ids."""
        with transaction.update_spec() as partitions:
            for column in self.spec.partition_by:
                partitions.add_field(column, IdentityTransform(), column)
        mapping = transaction.table_metadata.schema().name_mapping.model_dump_json()
        transaction.set_properties({**_PROPERTIES, TableProperties.DEFAULT_NAME_MAPPING: mapping})

    def _data_file(self, transaction: Transaction, path: str, file: WrittenFile) -> DataFile:
        """Return the entry of a file, with the statistics in its footer."""
        metadata = transaction.table_metadata
        schema = metadata.schema()
        with self.at.filesystem.open_input_file(f"{self.at.path}/{path}") as opened:
            statistics = data_file_statistics_from_parquet_metadata(
                pq.read_metadata(opened),
                compute_statistics_plan(schema, metadata.properties),
                parquet_path_to_id_mapping(schema),
            )
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self.at.url}/{path}",
            file_format=FileFormat.PARQUET,
            partition=Record(*self._partition(schema, file)),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            spec_id=metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def _partition(self, schema: Schema, file: WrittenFile) -> list[Any]:
        values = partition_values(self.spec, file).items()
        return [None if text is None else literal(text).to(schema.find_type(name)).value for name, text in values]


class IcebergFormat(TableFormat):
    """Apache Iceberg. Replaced files remain until their snapshots are expired and orphan files are removed."""

    name = "iceberg"
    conflicts = (
        CommitFailedException,
        CommitStateUnknownException,
        NamespaceAlreadyExistsError,
        TableAlreadyExistsError,
        SQLAlchemyError,
    )
    misread = re.compile(r".*(?:[#?]|%[0-9A-Fa-f]{2})", re.DOTALL)

    def open(self, location: str, spec: TableSpec) -> OpenIcebergTable:
        """Return the latest version of a table."""
        at = IcebergLocation.of(location, self.fs_options)
        table = at.table()
        if table is not None:
            if table.location() != at.url:
                reason = f"the catalog has a table {at.name} at {mask_uri(table.location())}"
                raise JobPathError(path=mask_uri(location), reason=reason)
            partition_by = [each.name for each in table.spec().fields]
            check_columns(mask_uri(location), spec, [each.name for each in table.schema().fields], partition_by)
        return OpenIcebergTable(at, spec, table)
