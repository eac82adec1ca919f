"""A run of three tasks in a separate process, which kills itself before one of its changes.

Changes of the storage and of tables in other formats count. The exit status is 3 for a refused run.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import evolve

from kafka_msgs.errors import ConcurrentRunError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog, WrittenFile
from kafka_msgs.tables.delta import OpenDeltaTable
from kafka_msgs.tables.iceberg import OpenIcebergTable
from kafka_msgs.tables.job_tables import JobTables
from kafka_msgs.tables.task_output import TableSpec, TaskOutput

CHANGES = (
    *((Storage, name) for name in ("create", "write", "output", "delete", "delete_directories")),
    (OpenDeltaTable, "commit"),
    (OpenIcebergTable, "commit"),
)
TASKS = 3
ROWS = 100
SECONDS = 60
OFFSETS = pa.schema([("n", pa.int64()), ("run", pa.string()), ("part", pa.int32())])
GROUPS = pa.schema([("run", pa.string())])


def kill_before(change: int) -> None:
    """Kill this process before the change of the storage or of a table with this number."""
    left = [change]

    def killing(original: Callable[..., Any]) -> Callable[..., Any]:

        def changed(*arguments: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return original(*arguments)

        return changed

    for kind, name in CHANGES:
        setattr(kind, name, killing(getattr(kind, name)))


def tables_at(location: str, form: str, settings: Mapping[str, str]) -> JobTables:
    """Return the tables ``offsets`` and ``groups``, in which each row names the run."""
    specs = {"offsets": TableSpec(OFFSETS, partition_by=("part",)), "groups": TableSpec(GROUPS)}
    found = JobTables.at(location, specs, {"job": "test"}, form, FilesystemOptions.from_mapping(settings))
    return evolve(found, log=CommitLog(found.log.storage, timedelta(seconds=SECONDS)))


def commit_run(tables: JobTables, run: str, before_commit: Callable[[], None]) -> None:
    """Write and commit the tables."""
    storage = tables.log.storage
    token = tables.begin(tables.find_base())
    files: dict[str, list[WrittenFile]] = {"offsets": [], "groups": []}
    for task in range(TASKS):
        output = TaskOutput.start(storage, token)
        rows = pa.table({"n": range(task * ROWS, (task + 1) * ROWS), "run": [run] * ROWS})
        output.append("offsets", rows, f"part={task}")
        output.append("groups", pa.table({"run": [run]}))
        output.close()
        for table, found in output.files.items():
            files[table] += found.values()
    before_commit()
    tables.commit(token, files)


def main(location: str, form: str, settings: Mapping[str, str], run: str, change: int, directory: str) -> None:
    """Run once, and kill this process before a change, if not negative.

    With a ``directory``, the run waits for its file ``go`` before the commit, and writes the reason of a refusal to it.
    """
    if change >= 0:
        kill_before(change)

    def wait() -> None:
        if directory:
            Path(directory, run).touch()
            end = time.monotonic() + SECONDS
            while not Path(directory, "go").exists() and time.monotonic() < end:
                time.sleep(0.01)

    try:
        commit_run(tables_at(location, form, settings), run, wait)
    except ConcurrentRunError as error:
        Path(directory, run).write_text(str(error))
        sys.exit(3)
