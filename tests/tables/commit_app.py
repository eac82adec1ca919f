"""A program that commits one run of three tasks, and kills itself before one of its changes to the storage.

Arguments: the location, the name of the run, the number of the change, and a directory with whose file ``go`` the
program waits before it commits, if any. Settings of the filesystem are in the environment variable ``SETTINGS``, as
JSON. The exit status is 3 for a refused run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_msgs.errors import ConcurrentRunError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog, WrittenFile
from kafka_msgs.tables.current_link import finish_commit
from kafka_msgs.tables.task_output import TaskOutput

CHANGES = ("create", "write", "output", "delete")
TASKS = 3
ROWS = 100
SECONDS = 60


def kill_before(change: int) -> None:
    """Kill this process before its storage change with this number."""
    left = [change]

    def killing(name: str) -> Callable[..., Any]:
        original = getattr(Storage, name)

        def changed(*arguments: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return original(*arguments)

        return changed

    for name in CHANGES:
        setattr(Storage, name, killing(name))


def commit_run(storage: Storage, run: str, before_commit: Callable[[], None]) -> None:
    """Write and commit the tables ``offsets`` and ``groups``, in which each row names the run."""
    log = CommitLog(storage, timedelta(seconds=SECONDS))
    token = log.begin({"job": "test"}, log.head())
    files: dict[str, list[WrittenFile]] = {"offsets": [], "groups": []}
    for task in range(TASKS):
        output = TaskOutput.start(storage, token)
        rows = pa.table({"run": [run] * ROWS, "n": range(task * ROWS, (task + 1) * ROWS)})
        output.append("offsets", rows, f"part={task}")
        output.append("groups", pa.table({"run": [run]}))
        output.close()
        for table, found in output.files.items():
            files[table] += found.values()
    before_commit()
    log.commit(token, files)
    finish_commit(log)


def main(location: str, run: str, change: str, directory: str = "") -> int:
    """Run once."""
    storage = Storage.at(location, FilesystemOptions.from_mapping(json.loads(os.environ.get("SETTINGS", "{}"))))
    if int(change) >= 0:
        kill_before(int(change))

    def wait() -> None:
        if directory:
            Path(directory, run).touch()
            end = time.monotonic() + SECONDS
            while not Path(directory, "go").exists() and time.monotonic() < end:
                time.sleep(0.01)

    try:
        commit_run(storage, run, wait)
    except ConcurrentRunError as error:
        print(error)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
