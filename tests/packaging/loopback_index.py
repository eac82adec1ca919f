"""A package index on loopback with this project's distributions; it redirects to pip's index for other packages."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

__all__ = ["loopback_index"]

_START_SECONDS: Final = 60


@contextmanager
def loopback_index(directory: Path) -> Iterator[str]:
    """Serve ``directory`` until the end of the block; yield the URL for uploads, of which ``simple/`` is the index."""
    port = _free_port()
    serve = (Path(sys.executable).parent / "pypi-server", "run", "--interface", "127.0.0.1", "--port", str(port))
    # Uploads need no password: the index listens on loopback only.
    options = ("--passwords", ".", "--authenticate", ".", "--hash-algo", "sha256", "--fallback-url", _other_packages())
    with (directory.parent / "index.log").open("wb") as log:
        server = subprocess.Popen([*serve, *options, directory], stdout=log, stderr=log)
        try:
            _wait_for(port, server)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.wait()


def _other_packages() -> str:
    """Return the index that pip is set to."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    )
    return done.stdout.strip() or "https://pypi.org/simple/"


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"the index does not listen on port {port}")
