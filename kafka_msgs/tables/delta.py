"""Delta Lake tables through delta-rs, at any directory or URI that it supports, without a JVM.

A version adds and removes files by reference. Their paths are relative to the directory of the table: delta-rs 1.6 does
not resolve absolute ones. The number of the commit is the version of an application transaction.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from attrs import frozen
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.store_options import storage_options
from kafka_msgs.tables.commit_log import WrittenFile
from kafka_msgs.tables.table_format import TableFormat, check_columns, partition_values
from kafka_msgs.tables.task_output import TableSpec

__all__ = ["DeltaFormat"]

_APPLICATION: Final = "kafka-msgs"


@frozen
class OpenDeltaTable:
    """A version of a Delta table. ``table`` is None before the first one."""

    location: str
    spec: TableSpec
    options: dict[str, str] | None
    table: DeltaTable | None

    @property
    def number(self) -> int | None:
        """The number of the last commit in the table."""
        return None if self.table is None else self.table.transaction_version(_APPLICATION) or 0

    @property
    def files(self) -> list[str]:
        """The paths of the files."""
        if self.table is None:
            return []
        return [unquote(path) for path in pa.table(self.table.get_add_actions())["path"].to_pylist()]

    def commit(self, number: int, added: Mapping[str, WrittenFile], removed: Collection[str]) -> None:
        """Add and remove files in one transaction."""
        now = time.time_ns() // 1_000_000
        adds = [
            AddAction(
                path, file.size, partition_values(self.spec, file), now, True, json.dumps({"numRecords": file.rows})
            )
            for path, file in added.items()
        ]
        properties = CommitProperties(max_commit_retries=0, app_transactions=[Transaction(_APPLICATION, number, now)])
        if self.table is None:
            self._create(adds, properties)
            return
        removes = [RemoveAction(path, True, now) for path in removed]
        self.table.create_write_transaction(
            [*adds, *removes],
            "append",
            self.table.schema(),
            list(self.spec.partition_by),
            commit_properties=properties,
        )

    def _create(self, adds: list[AddAction], properties: CommitProperties) -> None:
        schema, by = Schema.from_arrow(self.spec.schema), list(self.spec.partition_by)
        try:
            create_table_with_add_actions(
                self.location, schema, adds, partition_by=by, storage_options=self.options, commit_properties=properties
            )
        except DeltaError as error:
            if DeltaTable.is_deltatable(self.location, self.options):
                raise CommitFailedError(str(error)) from error
            raise


class DeltaFormat(TableFormat):
    """Delta Lake. Replaced files remain until you call ``DeltaTable.vacuum``."""

    name = "delta"
    conflicts = (CommitFailedError,)
    misread = re.compile(r".*%[0-9A-Fa-f]{2}|\w+://.*\?", re.DOTALL)

    def open(self, location: str, spec: TableSpec) -> OpenDeltaTable:
        """Return the latest version of a table."""
        options = storage_options(location, self.fs_options) or None
        if not DeltaTable.is_deltatable(location, options):
            return OpenDeltaTable(location, spec, options, None)
        table = DeltaTable(location, storage_options=options)
        columns = [each.name for each in table.schema().fields]
        check_columns(mask_uri(location), spec, columns, table.metadata().partition_columns)
        return OpenDeltaTable(location, spec, options, table)
