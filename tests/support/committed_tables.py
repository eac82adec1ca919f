"""The rows of committed tables, on any filesystem, as readers of the manifest see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog, Snapshot

__all__ = ["committed_rows", "committed_table", "committed_tables", "head_of"]

Rows = list[dict[str, Any]]


def head_of(out: str, settings: Mapping[str, str] | None = None) -> tuple[Storage, Snapshot]:
    """Return the storage of an output directory, and its latest commit."""
    storage = Storage.at(out, FilesystemOptions.from_mapping(settings or {}))
    head = CommitLog(storage).head()
    assert head is not None
    return storage, head


def committed_rows(out: str, name: str, settings: Mapping[str, str] | None = None) -> Rows:
    """Return the rows of a table in the latest commit."""
    storage, head = head_of(out, settings)
    return _rows(storage, head, name)


def committed_tables(out: str, settings: Mapping[str, str] | None = None) -> dict[str, Rows]:
    """Return the rows of all tables in the latest commit, without checkpoints."""
    storage, head = head_of(out, settings)
    return {name: _rows(storage, head, name) for name in head.tables if not name.startswith("_")}


def committed_table(out: str, name: str, settings: Mapping[str, str] | None = None) -> pa.Table:
    """Return a table in the latest commit."""
    return _table(*head_of(out, settings), name)


def _rows(storage: Storage, head: Snapshot, name: str) -> Rows:
    found: Rows = _table(storage, head, name).to_pylist()
    return found


def _table(storage: Storage, head: Snapshot, name: str) -> pa.Table:
    files = [storage.full_path(each.path) for each in head.tables[name].values()]
    data: Any = ds.dataset(files, filesystem=storage.filesystem, format="parquet", partitioning="hive")
    return data.to_table()
