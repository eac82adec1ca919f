"""Loopback servers for the protocols of Azure's and Google's object stores, run from third-party programs.

Each program is fetched and built on first use; its server ends with the context.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread, Timer
from typing import Final
from urllib.parse import unquote

from attrs import field, frozen
from pyarrow import fs

from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.resolver import filesystem_of
from tests.support.foreign_programs import AZURE, GCS

__all__ = ["ObjectStore", "azure_store", "gcs_store"]

_SECONDS: Final = 3600
"""Maximum run time of a server in seconds."""
_START_SECONDS: Final = 60
_CONDITION: Final = "X-Goog-If-Generation-Match"
_ACCOUNT: Final = "devstoreaccount1"
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The well-known account and key, the only ones that Azurite accepts."""


@frozen
class ObjectStore:
    """A bucket: prefix and suffix of its URIs, its name, and the settings that clients need.

    ``creating`` are the settings of clients that create objects under a condition, if these are others.
    """

    start: str
    end: str
    bucket: str
    settings: Mapping[str, str] = field(repr=False)
    creating: Mapping[str, str] = field(factory=dict, repr=False)

    def uri(self, path: str) -> str:
        """Return the URI of a path in the bucket."""
        return f"{self.start}/{path}{self.end}"

    def store(self) -> fs.FileSystem:
        """Return the filesystem, for preparing a test."""
        return filesystem_of(f"{self.start}{self.end}", FilesystemOptions.from_mapping(self.settings)).filesystem


@contextmanager
def azure_store(bucket: str) -> Iterator[ObjectStore]:
    """Provide a container on an Azure Blob Storage server. Raises ``ProgramUnavailableError`` without Node and npm."""
    options = ("--silent", "--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry", "--blobPort", "PORT")
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
    options = ("-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-log-level", "error", "-port", "PORT")
    with _running([*GCS.command(), *options]) as port, _xml_proxy(port) as address:
        settings = {
            "fs.gs.storage.root.url": f"http://127.0.0.1:{port}",
            "fs.gs.auth.type": "UNAUTHENTICATED",
            "fs.gs.project.id": "tests",
        }
        creating = settings | {"fs.gs.storage.root.url": f"http://{address}"}
        yield _with_bucket(ObjectStore(f"gs://{bucket}", "", bucket, settings, creating))


def _upload(path: str, headers: Mapping[str, str], body: bytes) -> tuple[str, str, bytes, Mapping[str, str]]:
    """Return the creation of an object in the JSON interface."""
    bucket, name = path[1:].split("/", 1)
    about = json.dumps({"name": unquote(name)}).encode()
    parts = (b"application/json\r\n\r\n" + about, b"text/plain\r\n\r\n" + body)
    content = b"".join(b"--part\r\nContent-Type: " + each + b"\r\n" for each in parts) + b"--part--\r\n"
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart&ifGenerationMatch={headers[_CONDITION]}"
    return "POST", path, content, {"Content-Type": "multipart/related; boundary=part"}


@contextmanager
def _xml_proxy(port: int) -> Iterator[str]:
    """Serve Google's XML interface for the creation of objects, which the server lacks; forward all other requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            headers = {name.title(): each for name, each in self.headers.items()}
            body = self.rfile.read(int(headers.pop("Content-Length", 0)))
            with closing(HTTPConnection("127.0.0.1", port, timeout=_START_SECONDS)) as server:
                server.request(
                    *(
                        _upload(self.path, headers, body)
                        if _CONDITION in headers
                        else (self.command, self.path, body, headers)
                    )
                )
                answer = server.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            size = {} if self.command == "HEAD" else {"Content-Length": str(len(content))}
            for name, each in {"ETag": '"1"', **dict(answer.getheaders()), **size}.items():
                if name != "Transfer-Encoding":
                    self.send_header(name, each)
            self.end_headers()
            self.wfile.write(content)

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.forward
            raise AttributeError(name)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _with_bucket(made: ObjectStore) -> ObjectStore:
    made.store().create_dir(made.bucket)
    return made


@contextmanager
def _running(command: Sequence[str]) -> Iterator[int]:
    """Run a server, with the port in place of ``PORT`` in its command; yield the port when it listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([part.replace("PORT", str(port)) for part in command], stdout=subprocess.DEVNULL)
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
