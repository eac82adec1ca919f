"""A loopback server for the S3 protocol that accepts one pair of keys and counts the bytes it sends.

moto implements buckets and objects. A layer around it rejects requests that are not signed with the keys (AWS Signature
Version 4), and records the bytes sent.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any, Final
from urllib.parse import unquote

from attrs import field, frozen
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyarrow import fs
from werkzeug.serving import make_server

__all__ = ["KEYS", "S3Server", "s3_process", "s3_server"]

_SECONDS: Final = 60
"""Maximum time for a process to end, in seconds."""

KEYS: Final[Mapping[str, str]] = {
    "fs.s3a.access.key": "AKIDREADER",
    "fs.s3a.secret.key": "a+secret/of-the-reader",
    "fs.s3a.session.token": "token-of-this-hour",
}
"""The client's credentials, as Hadoop settings."""

_SIGNED: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), *"
    r"SignedHeaders=(?P<headers>[^,]+), *Signature=(?P<signature>[0-9a-f]+)"
)
_REFUSED: Final = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
_MOTO: Final = Lock()
"""Serializes requests: a client retry during its first request confuses moto."""
_NOT_THERE: Final = b"<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"


@frozen
class S3Server:
    """Address of the server, and the object bytes that it sent, by path on the server."""

    endpoint: str
    sent: Counter[str] = field(factory=Counter)
    refused: list[str] = field(factory=list)
    vanished: set[str] = field(factory=set)
    """Deleted objects that listings still contain, by path on the server."""

    @property
    def settings(self) -> dict[str, str]:
        """The client settings for the server, including keys."""
        return {"fs.s3a.endpoint": f"http://{self.endpoint}", "fs.s3a.endpoint.region": "us-east-1", **KEYS}

    def store(self) -> fs.S3FileSystem:
        """Return the filesystem of the server, for preparing a test."""
        access, secret, token = KEYS.values()
        return fs.S3FileSystem(
            access_key=access, secret_key=secret, session_token=token, endpoint_override=self.endpoint,
            scheme="http", region="us-east-1", allow_bucket_creation=True,
        )  # fmt: skip

    def serve(self, moto: Any, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        """Respond to a request: reject it, or pass it to moto and count the bytes."""
        path = unquote(environ["PATH_INFO"])
        if not _is_signed(environ):
            self.refused.append(path)
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [_REFUSED]
        if path in self.vanished:
            start("404 Not Found", [("Content-Type", "application/xml")])
            return [_NOT_THERE]
        with _MOTO:
            parts: Iterable[bytes] = list(moto(environ, start))
        return self._counted(path, parts) if environ["REQUEST_METHOD"] == "GET" else parts

    def _counted(self, path: str, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.sent[path] += len(part)
            yield part


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run an empty server that ends with the context."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = DomainDispatcherApplication(create_backend_app)
    found: list[S3Server] = []
    made = make_server("127.0.0.1", 0, lambda *call: found[0].serve(moto, *call), threaded=True)
    found.append(S3Server(f"127.0.0.1:{made.server_port}"))
    thread = Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield found[0]
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


@contextmanager
def s3_process() -> Iterator[S3Server]:
    """Run a server in another process, for clients that block this one while they wait; it reports no bytes sent."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield S3Server(process.stdout.readline().strip())
        process.communicate(timeout=_SECONDS)


def _is_signed(environ: Mapping[str, Any]) -> bool:
    match = _SIGNED.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
    access, secret, token = KEYS.values()
    if match is None or match["key"] != access or environ.get("HTTP_X_AMZ_SECURITY_TOKEN") != token:
        return False
    return hmac.compare_digest(_signature(secret, match["scope"], match["headers"], environ), match["signature"])


def _signature(secret: str, scope: str, names: str, environ: Mapping[str, Any]) -> str:
    raw, _, query = environ["REQUEST_URI"].partition("?")
    headers = "".join(f"{name}:{' '.join(_header(environ, name).split())}\n" for name in names.split(";"))
    ordered = "&".join(sorted(part if "=" in part else f"{part}=" for part in query.split("&") if part))
    body = environ["HTTP_X_AMZ_CONTENT_SHA256"]
    request = "\n".join([environ["REQUEST_METHOD"], raw, ordered, headers, names, body])
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", environ["HTTP_X_AMZ_DATE"], scope, digest])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _header(environ: Mapping[str, Any], name: str) -> str:
    key = name.upper().replace("-", "_")
    return str(environ.get(key if key in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{key}", ""))


if __name__ == "__main__":
    with s3_server() as server:
        print(server.endpoint, flush=True)
        sys.stdin.read()
