"""One direction of a TCP connection, put in order within a limit of memory. There is no input or output here.

Segments may come in any order, more than once, and overlapping. Sequence numbers wrap. Missing bytes are reported as a
piece without data. ``resync`` knows the meaning of the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple

__all__ = ["StreamChunk", "TcpStream"]

_WRAP: Final = 2**32
_WINDOW: Final = 2**30
"""The largest window of TCP. No segment is further away from the segment before it."""
_PATIENCE: Final = 500
"""The number of packets after which acknowledged bytes that were not captured are no longer waited for."""
_OVERHEAD: Final = 400
"""How many bytes of memory a held segment takes in addition to its content, approximately."""


class StreamChunk(NamedTuple):
    """The next ``size`` bytes of a stream. ``data`` is None if they were not captured.

    ``at`` (microseconds since the epoch) and ``packet`` (number) belong to the packet that brought the bytes, or that
    showed that they are missing.
    """

    size: int
    data: bytes | None
    at: int
    packet: int


class _Waiting(NamedTuple):
    """A piece and its place in the stream. At the same place, bytes come before missing bytes."""

    start: int
    lost: bool
    number: int
    piece: StreamChunk


class TcpStream:
    """The segments of one direction.

    A stream is ``opened`` by its SYN. If the SYN was not captured, ``open_here`` opens the stream. Before that, the
    stream only holds segments. ``held`` is approximately how many bytes of memory it takes.

    The stream waits for missing bytes until it holds ``limit`` bytes. It also stops waiting some packets after the
    receiver has acknowledged the bytes: then the receiver has them, and only the capture lost them.
    """

    def __init__(self, limit: int) -> None:
        self.held = 0
        self.opened = False
        self._limit = limit
        self._waiting: list[_Waiting] = []
        self._count = 0
        self._anchored = False
        self._first: int | None = None
        self._next = 0
        self._end: _Waiting | None = None
        self._acknowledged = 0
        self._patience = _PATIENCE

    @property
    def complete(self) -> bool:
        """Whether everything up to the FIN was taken."""
        return self.opened and self._end is not None and self._next >= self._end.start

    @property
    def has_start(self) -> bool:
        """Whether the stream was opened by its SYN."""
        return self._first is not None

    def open(self, seq: int) -> bool:
        """Start at ``seq``, the number of the first byte. Return False if the stream already started elsewhere."""
        position = self._position(seq)
        if self.opened:
            return position == self._first
        self.opened, self._first, self._next = True, position, position
        return True

    def open_here(self) -> None:
        """Start with the lowest number that was seen."""
        self.opened = True
        self._next = self._waiting[0].start if self._waiting else self._next

    def add(self, seq: int, data: bytes, missing: int, at: int, packet: int) -> bool:
        """Hold the bytes of a segment, and the ``missing`` bytes after them.

        Return False for a number that is too far away to belong to this stream.
        """
        start = self._position(seq)
        if abs(start - self._next) > _WINDOW:
            return False
        if data:
            self._hold(start, StreamChunk(len(data), data, at, packet))
        if missing:
            self._hold(start + len(data), StreamChunk(missing, None, at, packet))
        return True

    def acknowledge(self, seq: int) -> None:
        """Note that the receiver has everything before ``seq``."""
        if self._anchored:
            self._acknowledged = max(self._acknowledged, self._position(seq))

    def end(self, seq: int, at: int, packet: int) -> None:
        """Note the FIN with the number ``seq``. No byte comes after it."""
        start = self._position(seq)
        if self._end is None and abs(start - self._next) <= _WINDOW:
            self._end = _Waiting(start, True, 0, StreamChunk(0, None, at, packet))

    def take(self) -> Iterator[StreamChunk]:
        """Yield the pieces that are in order, and missing bytes that are no longer waited for. Call it after every
        packet.
        """
        while self._waiting and self.opened:
            if self._waiting[0].start > self._next:
                if self._waits():
                    return
                yield self._lack(self._waiting[0])
            yield from self._release()

    def flush(self) -> Iterator[StreamChunk]:
        """Yield everything that is held, with the missing bytes in between. If there was a FIN, missing bytes before
        it, too.
        """
        while self._waiting:
            if self._waiting[0].start > self._next:
                yield self._lack(self._waiting[0])
            yield from self._release()
        if self.opened and self._end is not None and self._end.start > self._next:
            yield self._lack(self._end)

    def first_bytes(self) -> bytes:
        """The bytes at the lowest place that is held."""
        return self._waiting[0].piece.data or b"" if self._waiting else b""

    def _position(self, seq: int) -> int:
        """Return the place of a sequence number: the one nearest to the stream's position. Places do not wrap."""
        if not self._anchored:
            self._anchored, self._next = True, _WRAP + seq
        return self._next + (seq - self._next + _WRAP // 2) % _WRAP - _WRAP // 2

    def _hold(self, start: int, piece: StreamChunk) -> None:
        if start + piece.size <= self._next and self.opened:
            return
        self._count += 1
        self.held += len(piece.data or b"") + _OVERHEAD
        heappush(self._waiting, _Waiting(start, piece.data is None, self._count, piece))

    def _release(self) -> Iterator[StreamChunk]:
        """Yield the new bytes of the lowest held piece."""
        start, _, _, piece = heappop(self._waiting)
        self.held -= len(piece.data or b"") + _OVERHEAD
        known = self._next - start
        if known < piece.size:
            self._next, self._patience = start + piece.size, _PATIENCE
            rest = piece.data and piece.data[known:]
            yield piece._replace(size=piece.size - known, data=rest)

    def _waits(self) -> bool:
        """Whether the missing bytes before the lowest piece can still come."""
        if self._acknowledged >= self._waiting[0].start:
            self._patience -= 1
        return self._patience > 0 and self.held <= self._limit

    def _lack(self, before: _Waiting) -> StreamChunk:
        """Move to the next captured byte, over the missing bytes before it."""
        size, self._next = before.start - self._next, before.start
        return StreamChunk(size, None, before.piece.at, before.piece.packet)
