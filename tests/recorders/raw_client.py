"""Requests to a broker over a plain socket, with this library's messages, recording the frames of both directions."""

from __future__ import annotations

import socket
import time
from types import TracebackType
from typing import Any, Final

from kafka_msgs import Request, Response
from kafka_msgs.wire import SIZE_BYTES, decode_response, encode_request, join_frames, read_frame_size
from tests.recorders.broker import LOOPBACK
from tests.support.recorded_frames import REQUEST, RESPONSE, Direction, Frame

__all__ = ["Conversation"]

_TIMEOUT_SECONDS: Final = 30


class Conversation:
    """One connection to a broker on loopback, open inside a ``with`` block; ``frames`` grows with each request."""

    def __init__(self, port: int, *, client_id: str) -> None:
        self.frames: list[Frame] = []
        self._port = port
        self._client_id = client_id
        self._started = time.monotonic()

    def __enter__(self) -> Conversation:
        self._socket = socket.create_connection((LOOPBACK, self._port), timeout=_TIMEOUT_SECONDS)
        self._stream = self._socket.makefile("rb")
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, request: Request[Response], version: int) -> Any:
        """Send a request and return the broker's response."""
        number = len(self.frames) // 2 + 1
        payload = encode_request(request, version, correlation_id=number, client_id=self._client_id)
        self._note(REQUEST, join_frames(payload))
        self._socket.sendall(self.frames[-1].data)
        prefix = self._stream.read(SIZE_BYTES)
        self._note(RESPONSE, prefix + self._stream.read(read_frame_size(prefix)))
        api_key = request.INFO.api_key
        assert api_key is not None
        return decode_response(self.frames[-1].payload, api_key, version).message

    def is_closed(self) -> bool:
        """Return whether the broker closes the connection. Raises ``TimeoutError`` if it neither closes it nor
        responds.
        """
        return not self._stream.read(1)

    def _note(self, direction: Direction, data: bytes) -> None:
        self.frames.append(Frame(1, direction, (time.monotonic() - self._started) * 1000, data))
