"""``fsspec`` filesystems in forked processes: each process has its own clients, and HDFS is refused where it hangs."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.registry import register_implementation

from kafka_msgs.errors import ForkedProcessError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.resolver import filesystem_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

_SECONDS = 120
"""How long to wait for a process to end before killing it."""


class Noting(LocalFileSystem):  # type: ignore[misc]
    """A filesystem that records the process that created it, and reports the process id as the size of every file."""

    protocol = "noting"
    cachable = False

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.process = os.getpid()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return a file whose size is the process id."""
        return {"name": path, "type": "file", "size": self.process}


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that accepts connections and never responds."""
    with create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def in_fork(function: Callable[[], Any]) -> Any:
    """Return a function's result from a forked process, or None if that process hangs."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=lambda: theirs.send(function()))
    process.start()
    try:
        return ours.recv() if ours.poll(_SECONDS) else None
    finally:
        process.kill()
        process.join()


def kind_of_error(function: Callable[[], Any]) -> str:
    try:
        return f"none: {function()}"
    except OSError as error:
        return type(error).__name__


def test_hdfs_is_refused_in_a_process_that_was_forked_after_its_first_use(nobody: str) -> None:
    made = filesystem_of(f"hdfs://{nobody}").filesystem
    other = FilesystemOptions.from_mapping({"dfs.client.use.datanode.hostname": "true"})
    assert in_fork(lambda: kind_of_error(lambda: made.get_file_info("/logs"))) == ForkedProcessError.__name__
    assert in_fork(lambda: kind_of_error(lambda: filesystem_of(f"hdfs://{nobody}", other))) == "ForkedProcessError"
    with pytest.raises(ForkedProcessError, match="spawn"):
        raise ForkedProcessError(filesystem="hdfs")


def test_a_forked_process_does_not_wait_for_threads_of_clients_that_it_does_not_need(nobody: str) -> None:
    filesystem_of(f"hdfs://{nobody}")
    filesystem_of.cache_clear()
    assert in_fork(lambda: "it goes on") == "it goes on"


def test_other_filesystems_have_a_client_in_each_process(tmp_path: Path) -> None:
    register_implementation("noting", Noting, clobber=True)
    found = filesystem_of("noting:///").filesystem
    sent = pickle.dumps(found)
    here = os.getpid()
    assert found.get_file_info("/x").size == here
    assert pickle.loads(sent).get_file_info("/x").size == here
    child, its_size = in_fork(lambda: (os.getpid(), found.get_file_info("/x").size))
    assert child == its_size != here
