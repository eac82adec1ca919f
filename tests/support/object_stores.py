"""Loopback servers for the protocols of Azure's and Google's object stores, run from third-party programs.

Each program is fetched and built on first use; its server ends with the context.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from threading import Timer
from typing import Final

from attrs import field, frozen
from pyarrow import fs

from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.resolver import filesystem_of
from tests.support.foreign_programs import AZURE, GCS

__all__ = ["ObjectStore", "azure_store", "gcs_store"]

_SECONDS: Final = 3600
"""Maximum run time of a server in seconds."""
_START_SECONDS: Final = 60
_ACCOUNT: Final = "devstoreaccount1"
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The well-known account and key, the only ones that Azurite accepts."""


@frozen
class ObjectStore:
    """A bucket: prefix and suffix of its URIs, its name, and the settings that clients need."""

    start: str
    end: str
    bucket: str
    settings: Mapping[str, str] = field(repr=False)

    def uri(self, path: str) -> str:
        """Return the URI of a path in the bucket."""
        return f"{self.start}/{path}{self.end}"

    def store(self) -> fs.FileSystem:
        """Return the filesystem, for preparing a test."""
        return filesystem_of(f"{self.start}{self.end}", FilesystemOptions.from_mapping(self.settings)).filesystem


@contextmanager
def azure_store(bucket: str) -> Iterator[ObjectStore]:
    """Provide a container on an Azure Blob Storage server. Raises ``ProgramUnavailableError`` without Node and npm."""
    options = ("--silent", "--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry", "--blobPort")
    with _running([*AZURE.command(), *options]) as port:
        host = f"127.0.0.1:{port}"
        parts = {f"{part}_storage_{what}" for part in ("blob", "dfs") for what in ("authority", "scheme")}
        end = "?" + "&".join(f"{part}={host if part.endswith('authority') else 'http'}" for part in sorted(parts))
        domain = f"{_ACCOUNT}.dfs.core.windows.net"
        settings = {f"fs.azure.account.key.{domain}": _KEY}
        yield _with_bucket(ObjectStore(f"abfs://{bucket}@{domain}", end, bucket, settings))


@contextmanager
def gcs_store(bucket: str) -> Iterator[ObjectStore]:
    """Provide a bucket on a Google Cloud Storage server. Raises ``ProgramUnavailableError`` without Go."""
    options = ("-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-log-level", "error", "-port")
    with _running([*GCS.command(), *options]) as port:
        settings = {
            "fs.gs.storage.root.url": f"http://127.0.0.1:{port}",
            "fs.gs.auth.type": "UNAUTHENTICATED",
            "fs.gs.project.id": "tests",
        }
        yield _with_bucket(ObjectStore(f"gs://{bucket}", "", bucket, settings))


def _with_bucket(made: ObjectStore) -> ObjectStore:
    made.store().create_dir(made.bucket)
    return made


@contextmanager
def _running(command: Sequence[str]) -> Iterator[int]:
    """Run a server whose command ends with the port option; yield the port when it listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL)
    watch = Timer(_SECONDS, process.kill)
    watch.start()
    try:
        _wait_for(port, process)
        yield port
    finally:
        watch.cancel()
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server listens."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{process.args!r} did not start")
