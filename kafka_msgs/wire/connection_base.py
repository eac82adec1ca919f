"""The common base of both connection sides: states, received bytes, the end of the connection, and permanent errors."""

from __future__ import annotations

from enum import StrEnum
from typing import NoReturn

from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.codec import Buffer
from kafka_msgs.errors import FrameSizeError, LocalProtocolError, ProtocolError, RemoteProtocolError
from kafka_msgs.wire.framing import MAX_FRAME_SIZE, FrameSplitter

__all__ = ["Connection", "ConnectionState"]


class ConnectionState(StrEnum):
    """The state of a connection. The modules of the two sides contain the state transition tables."""

    OPEN = "OPEN"
    HANDSHAKE = "HANDSHAKE"
    TOKENS = "TOKENS"
    HALF_CLOSED = "HALF_CLOSED"
    CLOSED = "CLOSED"
    ERROR = "ERROR"


class Connection:
    """One side of a connection, without input or output. This is the base class of both sides."""

    __slots__ = ("_catalog", "_ended", "_error", "_frames", "_max_frame_size", "_state")

    def __init__(self, *, max_frame_size: int = MAX_FRAME_SIZE, catalog: MessageCatalog | None = None) -> None:
        self._max_frame_size = max_frame_size
        self._catalog = catalog
        self._state = ConnectionState.OPEN
        self._error: ProtocolError | None = None
        self._frames = FrameSplitter(limit=max_frame_size)
        self._ended = False

    @property
    def state(self) -> ConnectionState:
        """The current state."""
        return self._state

    @property
    def error(self) -> ProtocolError | None:
        """The error that broke the connection, or None."""
        return self._error

    @property
    def bytes_needed(self) -> int:
        """The number of missing bytes of the current frame, or 0 if its size is unknown.

        A caller can use this as a hint for the size of its next read.
        """
        return self._frames.missing

    @property
    def max_frame_size(self) -> int:
        """The maximum frame size in bytes. A new limit applies only to frames whose size arrives later."""
        return self._max_frame_size

    @max_frame_size.setter
    def max_frame_size(self, size: int) -> None:
        self._max_frame_size = self._frames.limit = size

    def receive_data(self, data: Buffer) -> None:
        """Buffer bytes from the other side. ``b""`` marks the end of the connection.

        The frame size is checked before any byte of the frame is buffered. After an error and after ``close`` the bytes
        are dropped. Raises ``LocalProtocolError`` for bytes after the end.
        """
        if self._error is not None or self._state is ConnectionState.CLOSED:
            return
        if not data:
            self._ended = True
        elif self._ended:
            self._fail_local("bytes cannot follow the end of the connection")
        else:
            self._frames.receive(data)

    def _next_payload(self) -> bytes | None:
        """Return the payload of the next frame, or None. Raises ``RemoteProtocolError``, and the permanent error."""
        if self._error is not None:
            raise self._error
        try:
            payload = self._frames.next_payload()
        except FrameSizeError as error:
            self._fail_remote(str(error), error)
        if payload is None and self._ended and self._frames.held:
            self._fail_remote(f"the connection ended after {self._frames.held} bytes of a frame")
        return payload

    def _close(self) -> None:
        """Drop the received bytes. An ERROR state remains."""
        self._frames = FrameSplitter(limit=self._max_frame_size)
        if self._error is None:
            self._state = ConnectionState.CLOSED

    def _fail_local(self, reason: str) -> NoReturn:
        """Raise a protocol error of this side. The first error of a broken connection is permanent."""
        if self._error is not None:
            reason = f"{reason}: {self._error}"
        error = LocalProtocolError(state=self._state, reason=reason)
        self._error = self._error or error
        self._state = ConnectionState.ERROR
        raise error

    def _fail_remote(self, reason: str, cause: Exception | None = None) -> NoReturn:
        """Raise a protocol error of the other side."""
        self._error = RemoteProtocolError(state=self._state, reason=reason)
        self._state = ConnectionState.ERROR
        raise self._error from cause
