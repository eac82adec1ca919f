"""Commits the Parquet files that executors have written as versions of tables in a format, which refer to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from attrs import evolve, frozen

from kafka_msgs.tables.commit_log import RunToken, WrittenFile
from kafka_msgs.tables.job_tables import JobTables
from kafka_msgs.tables.task_output import TableSpec

__all__ = ["IDENTITY", "TablePublisher"]

IDENTITY: Final = {"job": "spark"}
"""The identity of all runs: none resumes an earlier one, and the tables of several jobs may be in one directory."""
_ATTEMPT: Final = "spark"


@frozen
class TablePublisher:
    """A run that writes tables of a format."""

    tables: JobTables
    token: RunToken

    @classmethod
    def start(cls, tables: JobTables) -> TablePublisher:
        """Start a run. Raises ``JobPathError`` if the directory contains anything else than earlier runs."""
        return cls(tables, tables.begin(tables.find_base()))

    def directory(self, name: str) -> Path:
        """Return the directory for the files of a table."""
        return Path(self.tables.out, self.token.data_path(_ATTEMPT, name, ""))

    def publish(self, specs: Mapping[str, TableSpec]) -> None:
        """Publish the files of all tables as their next versions. Raises the errors of ``JobTables.commit``."""
        files = {name: list(self._files(name)) for name in specs}
        evolve(self.tables, specs=specs).commit(self.token, files)

    def _files(self, name: str) -> Iterator[WrittenFile]:
        home = self.directory(name)
        for path in sorted(home.rglob("*.parquet")):
            inner = path.relative_to(home).as_posix()
            at = self.token.data_path(_ATTEMPT, name, inner)
            yield WrittenFile(inner, at, path.stat().st_size, pq.read_metadata(path).num_rows)
