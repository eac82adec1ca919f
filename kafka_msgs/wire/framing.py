"""Frames of a connection: a four-byte size (int32, big-endian), then a payload with that number of bytes.

This module reads, writes and limits the size. The bytes must be complete and in order; ``kafka_msgs.capture`` handles
missing bytes. There is no input or output here. The source is the Kafka protocol guide, section "Network"; Kafka reads
such frames in ``org.apache.kafka.common.network.NetworkReceive``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import Final

from kafka_msgs.codec import Buffer
from kafka_msgs.errors import FrameSizeError, TruncatedError
from kafka_msgs.validators import check_int

__all__ = ["MAX_FRAME_SIZE", "SIZE_BYTES", "FrameSplitter", "join_frames", "read_frame_size"]

SIZE_BYTES: Final = 4
MAX_FRAME_SIZE: Final = 100 * 2**20
"""The default maximum payload size in bytes: the broker default of ``socket.request.max.bytes``."""

_SIZE: Final = Struct(">i")
_LARGEST: Final = 2**31 - 1
_LARGE_PIECE: Final = 4096


def read_frame_size(buffer: Buffer, offset: int = 0) -> int:
    """Return the stated size in bytes of a frame at ``offset``, unchecked. The buffer must contain its four bytes."""
    size: int = _SIZE.unpack_from(buffer, offset)[0]
    return size


def join_frames(*payloads: Buffer, limit: int = _LARGEST) -> bytes:
    """Return payloads as frames, each after its size. Raises ``FrameSizeError`` for a payload above ``limit`` bytes.

    The size is an int32, so a payload has at most 2,147,483,647 bytes. Raises ``OptionError`` for a limit that is not
    an integer.
    """
    check_int("join_frames", "limit", limit)
    parts: list[Buffer] = []
    for payload in payloads:
        if len(payload) > min(limit, _LARGEST):
            raise FrameSizeError(size=len(payload), limit=min(limit, _LARGEST))
        parts += (_SIZE.pack(len(payload)), payload)
    return b"".join(parts)


class FrameSplitter:
    """A splitter of one direction's bytes into payloads.

    A size is checked as soon as its four bytes have arrived, before any byte of the payload is buffered. The splitter
    therefore buffers at most ``limit`` bytes plus the bytes of one call. A frame that arrives in pieces is joined once.
    Work and memory are proportional to the number of bytes, for pieces of any size. Raises ``OptionError`` for a limit
    that is not an integer.
    """

    __slots__ = ("_error", "_missing", "_parts", "_ready", "_size", "_start", "limit")

    def __init__(self, *, limit: int = MAX_FRAME_SIZE) -> None:
        check_int("FrameSplitter", "limit", limit)
        self.limit = limit
        self._ready: deque[bytes] = deque()
        self._start = b""
        self._size = 0
        self._missing = 0
        self._parts: list[bytes | bytearray] = []
        self._error: FrameSizeError | None = None

    @property
    def held(self) -> int:
        """The number of buffered bytes of the incomplete frame, including its size."""
        return SIZE_BYTES + self._size - self._missing if self._missing else len(self._start)

    @property
    def missing(self) -> int:
        """The number of missing bytes of the incomplete frame, or 0 if its size is unknown."""
        return self._missing

    def feed(self, data: Buffer) -> Iterator[bytes]:
        """Add the next bytes of the connection; return an iterator over the complete payloads.

        The bytes are added immediately. Payloads that the caller did not take from the iterator are returned by the
        next call. If a size is negative or above the limit, the iterator first yields the payloads before it and then
        raises ``FrameSizeError``. The position of the next frame is then unknown: every later call raises the same
        error, and the connection should be closed.
        """
        self.receive(data)
        return iter(self.next_payload, None)

    def receive(self, data: Buffer) -> None:
        """Add the next bytes of the connection. ``bytes`` are fastest; other buffers are copied first."""
        if self._error is not None:
            return
        if data.__class__ is not bytes:
            data = bytes(memoryview(data))
        missing = self._missing
        if not missing:
            self._cut(self._start + data if self._start else data, 0)
        elif len(data) < missing:
            self._keep(data)
        else:
            self._parts.append(data[:missing])
            self._ready.append(b"".join(self._parts))
            self._missing = 0
            self._cut(data, missing)

    def next_payload(self) -> bytes | None:
        """Return the next complete payload, or None if it is incomplete. Raises ``FrameSizeError``."""
        if self._ready:
            return self._ready.popleft()
        if self._error is not None:
            raise self._error
        return None

    def close(self) -> None:
        """End the connection. Raises ``TruncatedError`` if a frame is incomplete."""
        if self.held:
            reason = f"the connection ended after {self.held} bytes of a frame"
            raise TruncatedError(message="frame", version=None, path="", offset=self.held, reason=reason)

    def _cut(self, data: bytes, start: int) -> None:
        """Extract the complete frames of ``data`` from ``start`` on, and buffer the beginning of the next one."""
        end = len(data)
        while end - start >= SIZE_BYTES:
            size: int = _SIZE.unpack_from(data, start)[0]
            if not 0 <= size <= self.limit:
                self._error = FrameSizeError(size=size, limit=self.limit)
                start = end
                break
            start += SIZE_BYTES
            if end - start < size:
                self._size, self._missing, self._parts = size, size, []
                self._keep(data[start:])
                start = end
                break
            self._ready.append(data[start : start + size])
            start += size
        self._start = data[start:]

    def _keep(self, piece: bytes) -> None:
        """Buffer a piece of the incomplete frame. Small pieces share one buffer, which saves an object per piece."""
        self._missing -= len(piece)
        if len(piece) >= _LARGE_PIECE:
            self._parts.append(piece)
        elif self._parts and isinstance(self._parts[-1], bytearray):
            self._parts[-1] += piece
        elif piece:
            self._parts.append(bytearray(piece))
