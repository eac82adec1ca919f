"""The interface of table formats, and the format ``parquet``, whose tables the manifests alone define.

The tasks of a run write the files of all formats. Delta and Iceberg tables refer to them, so that no row is copied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import ClassVar, Final, Protocol
from urllib.parse import unquote

from attrs import frozen

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.tables.commit_log import WrittenFile
from kafka_msgs.tables.task_output import TableSpec

__all__ = ["OpenTable", "TableFormat", "check_columns", "partition_values"]

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The value of a null in directory names."""


class OpenTable(Protocol):
    """A version of a table, to be replaced by the next one."""

    @property
    def number(self) -> int | None:
        """The number of the last commit in the table, 0 if it has none, None if the table does not exist."""

    @property
    def files(self) -> Collection[str]:
        """The paths of the files below the directory of the table."""

    def commit(self, number: int, added: Mapping[str, WrittenFile], removed: Collection[str]) -> None:
        """Add and remove files by their paths, in one new version that contains the number of the commit.

        Raises a conflict of the format if the table was changed since it was opened.
        """


@frozen
class TableFormat:
    """Parquet, and the base class of formats with tables of their own, which have versions and ``conflicts``.

    ``location`` is the directory of a table or its URI, with Hadoop's settings in ``fs_options``.
    """

    name: ClassVar[str] = "parquet"
    conflicts: ClassVar[tuple[type[Exception], ...]] = ()
    misread: ClassVar[re.Pattern[str]] = re.compile("(?!)")
    """The locations that the library of the format misreads."""

    fs_options: FilesystemOptions = NO_OPTIONS

    def open(self, location: str, spec: TableSpec) -> OpenTable | None:
        """Return the latest version of a table, None for Parquet. Raises ``JobPathError`` for another table there."""
        del location, spec
        return None


def partition_values(spec: TableSpec, file: WrittenFile) -> dict[str, str | None]:
    """Return the partition values of a file as texts. Raises ``JobPathError`` if its directories name others."""
    parts = [part.partition("=") for part in file.name.split("/")[:-1]]
    if tuple(name for name, _, _ in parts) != spec.partition_by:
        raise JobPathError(path=file.path, reason=f"the table is partitioned by ({', '.join(spec.partition_by)})")
    return {name: None if value == _NULL else unquote(value) for name, _, value in parts}


def check_columns(location: str, spec: TableSpec, columns: Collection[str], partition_by: Collection[str]) -> None:
    """Raise ``JobPathError`` if an existing table has other columns or partition columns than its specification."""
    if [*columns] != spec.schema.names or tuple(partition_by) != spec.partition_by:
        raise JobPathError(path=location, reason="it is a table with other columns; nothing is overwritten")
