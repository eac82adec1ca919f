"""Reordering of one direction of a TCP connection within a memory limit. There is no input or output here.

Segments may arrive in any order, more than once, and overlapping. Sequence numbers wrap. Missing bytes are reported as
a chunk without data. ``resync`` interprets the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple

__all__ = ["StreamChunk", "TcpStream"]

_WRAP: Final = 2**32
_WINDOW: Final = 2**30
"""The maximum TCP window. No segment is further away from the segment before it."""
_OVERTAKEN: Final = 2**17
"""The maximum distance in bytes of a segment from a SYN that arrives after it."""
_PATIENCE: Final = 500
"""The number of packets after which the stream stops waiting for acknowledged bytes that were not captured."""
_OVERHEAD: Final = 400
"""The approximate memory overhead of a buffered segment in bytes."""


class StreamChunk(NamedTuple):
    """The next ``size`` bytes of a stream. ``data`` is None if they were not captured.

    ``at`` (microseconds since the epoch) and ``packet`` (number) belong to the packet that contained the bytes, or that
    revealed the gap.
    """

    size: int
    data: bytes | None
    at: int
    packet: int


class _Waiting(NamedTuple):
    """A chunk and its position in the stream. At the same position, bytes come before missing bytes."""

    start: int
    lost: bool
    number: int
    piece: StreamChunk


class TcpStream:
    """The segments of one direction.

    A stream is ``opened`` by its SYN. If the SYN was not captured, ``open_here`` opens the stream. Before that, the
    stream only buffers segments. ``held`` is its approximate memory use in bytes.

    The stream waits for missing bytes until it buffers ``limit`` bytes. It also stops waiting several packets after the
    receiver has acknowledged the bytes: the receiver then has them, and only the capture lost them.
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
        """Whether everything up to the FIN was read."""
        return self.opened and self._end is not None and self._next >= self._end.start

    @property
    def has_start(self) -> bool:
        """Whether the stream was opened by its SYN."""
        return self._first is not None

    def open(self, seq: int) -> bool:
        """Start at the sequence number ``seq``. Return False if the stream already started elsewhere.

        Segments may overtake their SYN, but not by far. Bytes elsewhere belong to an earlier connection.
        """
        position = self._position(seq)
        if self.opened:
            return position == self._first
        earliest = [*self._waiting[:1], *([] if self._end is None else [self._end])]
        if any(not 0 <= each.start - position <= _OVERTAKEN for each in earliest):
            return False
        self.opened, self._first, self._next = True, position, position
        return True

    def open_here(self) -> None:
        """Start at the lowest observed sequence number."""
        self.opened = True
        self._next = self._waiting[0].start if self._waiting else self._next

    def add(self, seq: int, data: bytes, missing: int, at: int, packet: int) -> bool:
        """Buffer the bytes of a segment, and the ``missing`` bytes after them.

        Return False for a sequence number that is too far away to belong to this stream.
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
        """Record that the receiver has acknowledged all bytes before ``seq``."""
        if self._anchored:
            self._acknowledged = max(self._acknowledged, self._position(seq))

    def end(self, seq: int, at: int, packet: int) -> None:
        """Record the FIN with the sequence number ``seq``. No bytes follow it."""
        start = self._position(seq)
        if self._end is None and abs(start - self._next) <= _WINDOW:
            self._end = _Waiting(start, True, 0, StreamChunk(0, None, at, packet))

    def take(self) -> Iterator[StreamChunk]:
        """Yield the chunks that are in order, and missing bytes after their timeout. Call it after every packet."""
        while self._waiting and self.opened:
            if self._waiting[0].start > self._next:
                if self._waits():
                    return
                yield self._lack(self._waiting[0])
            yield from self._release()

    def flush(self) -> Iterator[StreamChunk]:
        """Yield all buffered chunks, and the missing bytes between them and before a FIN."""
        while self._waiting:
            if self._waiting[0].start > self._next:
                yield self._lack(self._waiting[0])
            yield from self._release()
        if self.opened and self._end is not None and self._end.start > self._next:
            yield self._lack(self._end)

    def first_bytes(self) -> bytes:
        """Return the bytes at the lowest buffered position."""
        return self._waiting[0].piece.data or b"" if self._waiting else b""

    def _position(self, seq: int) -> int:
        """Return the position for a sequence number, as close to the stream's position as possible.

        Positions do not wrap.
        """
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
        """Yield the new bytes of the lowest buffered chunk."""
        start, _, _, piece = heappop(self._waiting)
        self.held -= len(piece.data or b"") + _OVERHEAD
        known = self._next - start
        if known < piece.size:
            self._next, self._patience = start + piece.size, _PATIENCE
            rest = piece.data and piece.data[known:]
            yield piece._replace(size=piece.size - known, data=rest)

    def _waits(self) -> bool:
        """Return whether the missing bytes before the lowest chunk may still arrive."""
        if self._acknowledged >= self._waiting[0].start:
            self._patience -= 1
        return self._patience > 0 and self.held <= self._limit

    def _lack(self, before: _Waiting) -> StreamChunk:
        """Move past missing bytes to the next captured byte."""
        size, self._next = before.start - self._next, before.start
        return StreamChunk(size, None, before.piece.at, before.piece.packet)
