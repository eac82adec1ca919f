"""HDFS on loopback: Hadoop's name node and data node in a Java process that ends with its context."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Final

from attrs import frozen

from tests.support.maven import JavaProject

__all__ = ["HdfsCluster", "hdfs_cluster"]

_PROJECT: Final = JavaProject(Path(__file__).parents[1] / "filesystems" / "hdfs", "Cluster")
_SECONDS: Final = 3600
"""Maximum run time of a cluster in seconds, including its start."""


@frozen
class HdfsCluster:
    """URIs of the name node: native and over HTTP."""

    hdfs: str
    webhdfs: str


@contextmanager
def hdfs_cluster(home: Path, *directories: Path) -> Iterator[HdfsCluster]:
    """Start a cluster with copies of local directories in ``/logs``, and its own files in ``home``.

    Raises ``OracleUnavailableError`` if Java is not installed, or if Maven is needed for the build and not installed.
    """
    command = [*_PROJECT.command(), str(home), *map(str, directories)]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        watch = Timer(_SECONDS, process.kill)
        watch.start()
        try:
            assert process.stdout is not None
            ports = process.stdout.readline().split()
            if len(ports) != 2:
                errors.seek(0)
                raise RuntimeError(f"HDFS did not start:\n{errors.read()[-2000:].decode(errors='replace')}")
            yield HdfsCluster(f"hdfs://127.0.0.1:{ports[0]}", f"webhdfs://127.0.0.1:{ports[1]}")
        finally:
            watch.cancel()
            process.communicate()
