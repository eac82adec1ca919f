"""A TCP proxy on loopback that records every Kafka frame passing through it.

Clients connect to the proxy because the broker advertises the proxy's address. Two threads relay each connection, one
per direction; a request is recorded before it is forwarded, so it always precedes its response.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from types import TracebackType
from typing import Final

from kafka_msgs.errors import FrameSizeError
from kafka_msgs.wire import FrameSplitter, join_frames
from tests.recorders.broker import LOOPBACK
from tests.support.recorded_frames import REQUEST, RESPONSE, Direction, Frame

__all__ = ["RecordingProxy"]

_MAX_FRAME: Final = 8 << 20
_CHUNK: Final = 1 << 16
_IDLE_SECONDS: Final = 120


class RecordingProxy:
    """Relays loopback connections to ``upstream_port`` inside a ``with`` block; ``frames`` grows as traffic passes.

    The proxy listens from construction on, so that a broker started later can advertise its ``port``; set
    ``upstream_port`` before the first client connects. Connections idle for two minutes are closed.
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.upstream_port = 0
        self._lock = threading.Lock()
        self._connections = 0
        self._started = time.monotonic()
        self._server = _server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        """The port for clients."""
        port: int = self._server.server_address[1]
        return port

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients."""
        return f"{LOOPBACK}:{self.port}"

    def __enter__(self) -> RecordingProxy:
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def relay(self, client: socket.socket) -> None:
        """Serve one client until either end closes the connection."""
        with self._lock:
            self._connections += 1
            number = self._connections
        with socket.create_connection((LOOPBACK, self.upstream_port), timeout=_IDLE_SECONDS) as upstream:
            client.settimeout(_IDLE_SECONDS)
            answers = threading.Thread(target=self._pump, args=(number, RESPONSE, upstream, client), daemon=True)
            answers.start()
            self._pump(number, REQUEST, client, upstream)
            answers.join()

    def _pump(self, number: int, direction: Direction, source: socket.socket, sink: socket.socket) -> None:
        splitter = FrameSplitter(limit=_MAX_FRAME)
        # Either end may close the connection at any time, or send bytes that are not a frame; the connection then ends.
        with contextlib.suppress(OSError, FrameSizeError):
            while chunk := source.recv(_CHUNK):
                for payload in splitter.feed(chunk):
                    self._note(number, direction, data := join_frames(payload))
                    sink.sendall(data)
        _hang_up(source)
        _hang_up(sink)

    def _note(self, number: int, direction: Direction, data: bytes) -> None:
        with self._lock:
            elapsed_ms = (time.monotonic() - self._started) * 1000
            self.frames.append(Frame(number, direction, elapsed_ms, data))


def _server(proxy: RecordingProxy) -> socketserver.ThreadingTCPServer:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            proxy.relay(self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    return Server((LOOPBACK, 0), Handler)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # The peer may have closed it already.
        connection.shutdown(socket.SHUT_RDWR)
