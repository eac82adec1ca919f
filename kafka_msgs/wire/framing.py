"""Frames of a connection: a size of four bytes (int32, big-endian), then a payload with that number of bytes.

This module owns the size and its limit, for reading and for writing. The bytes must be complete and in order. If bytes
are missing, ``kafka_msgs.capture`` decides what to do. There is no input or output here. The source is the Kafka
protocol guide, section "Network"; Kafka reads such frames in ``org.apache.kafka.common.network.NetworkReceive``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import Final

from kafka_msgs.codec import Buffer
from kafka_msgs.errors import FrameSizeError, TruncatedError

__all__ = ["MAX_FRAME_SIZE", "SIZE_BYTES", "FrameSplitter", "join_frames", "read_frame_size"]

SIZE_BYTES: Final = 4
MAX_FRAME_SIZE: Final = 100 * 2**20
"""The default limit of a payload in bytes: the default of a broker's ``socket.request.max.bytes``."""

_SIZE: Final = Struct(">i")
_LARGEST: Final = 2**31 - 1


def read_frame_size(buffer: Buffer, offset: int = 0) -> int:
    """Return the size in bytes that a frame at ``offset`` states. It is not checked. The buffer must hold its four
    bytes.
    """
    size: int = _SIZE.unpack_from(buffer, offset)[0]
    return size


def join_frames(*payloads: Buffer, limit: int = _LARGEST) -> bytes:
    """Return payloads as frames, each after its size. Raises ``FrameSizeError`` for a payload above ``limit`` bytes.

    The size is an int32, so a payload never has more than 2,147,483,647 bytes.
    """
    parts: list[Buffer] = []
    for payload in payloads:
        if len(payload) > min(limit, _LARGEST):
            raise FrameSizeError(size=len(payload), limit=min(limit, _LARGEST))
        parts += (_SIZE.pack(len(payload)), payload)
    return b"".join(parts)


class FrameSplitter:
    """Cuts the bytes of one direction of a connection into payloads.

    A size is checked as soon as its four bytes have arrived, before any byte of the payload is kept. So the splitter
    keeps at most ``limit`` bytes and the bytes of one call. The work is proportional to the number of bytes, for pieces
    of any size.
    """

    def __init__(self, *, limit: int = MAX_FRAME_SIZE) -> None:
        self._limit = limit
        self._ready: deque[bytes] = deque()
        self._partial = bytearray()
        self._error: FrameSizeError | None = None

    @property
    def held(self) -> int:
        """How many bytes of the incomplete frame are kept, including its size."""
        return len(self._partial)

    def feed(self, data: Buffer) -> Iterator[bytes]:
        """Take the next bytes of the connection; return an iterator over the complete payloads.

        The bytes are taken immediately. Payloads that the caller did not take from the iterator come with the next
        call. For a size that is negative or above the limit, the iterator first yields the payloads before it and then
        raises ``FrameSizeError``. The place of the next frame is then unknown. Every later call raises the same error,
        and the connection should be closed.
        """
        if self._error is None:
            view = memoryview(data)
            self._cut(view, self._complete(view) if self._partial else 0)
        return self._whole()

    def close(self) -> None:
        """Note the end of the connection. Raises ``TruncatedError`` if a frame is incomplete."""
        if self._partial:
            reason = f"the connection ended after {len(self._partial)} bytes of a frame"
            raise TruncatedError(message="frame", version=None, path="", offset=len(self._partial), reason=reason)

    def _whole(self) -> Iterator[bytes]:
        while self._ready:
            yield self._ready.popleft()
        if self._error is not None:
            raise self._error

    def _complete(self, view: memoryview) -> int:
        """Add to the incomplete frame the bytes that belong to it; return the position after them."""
        used = self._add(view, 0, SIZE_BYTES)
        if len(self._partial) < SIZE_BYTES:
            return used
        size = read_frame_size(self._partial)
        if not self._allowed(size):
            return len(view)
        used += self._add(view, used, SIZE_BYTES + size)
        if len(self._partial) == SIZE_BYTES + size:
            self._ready.append(bytes(memoryview(self._partial)[SIZE_BYTES:]))
            self._partial = bytearray()
        return used

    def _add(self, view: memoryview, start: int, size: int) -> int:
        """Let the incomplete frame grow to at most ``size`` bytes; return how many bytes were added."""
        taken = view[start : start + max(0, size - len(self._partial))]
        self._partial += taken
        return len(taken)

    def _cut(self, view: memoryview, start: int) -> None:
        """Take the complete frames in ``view``, and keep the beginning of the next one."""
        while self._error is None and len(view) - start >= SIZE_BYTES:
            size = read_frame_size(view, start)
            end = start + SIZE_BYTES + size
            if not self._allowed(size) or end > len(view):
                break
            self._ready.append(bytes(view[start + SIZE_BYTES : end]))
            start = end
        if self._error is None:
            self._partial += view[start:]

    def _allowed(self, size: int) -> bool:
        if 0 <= size <= self._limit:
            return True
        self._error = FrameSizeError(size=size, limit=self._limit)
        self._partial = bytearray()
        return False
