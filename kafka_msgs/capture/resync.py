"""Frames of one direction of a captured connection with possibly missing bytes.

The size of a frame gives the start of the next frame, even if bytes of the frame are lost. If a size is lost, this
module searches for the next frame, which a ``Finder`` recognizes. ``kafka_msgs.wire.framing`` defines the size format.
There is no input or output here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, TypeAlias

from kafka_msgs.capture.tcp_streams import StreamChunk
from kafka_msgs.wire import SIZE_BYTES, read_frame_size

__all__ = ["Finder", "Found", "Frame", "ResyncSplitter", "Skipped"]

_CREDIT: Final = 2**20
_CREDIT_PER_BYTE: Final = 4
"""The number of bytes that trial decoding may use per received byte. It limits the cost of false candidates."""
_TRIAL: Final = 1000
"""The fixed cost of a trial in bytes, because even a small candidate takes time."""


class Frame(NamedTuple):
    """A frame without its size.

    ``data`` ends at the first byte that was not captured, and ``missing`` counts the missing bytes. ``at``
    (microseconds since the epoch) and ``packet`` (number) belong to the packet that completed it.
    """

    size: int
    data: bytes
    missing: int
    at: int
    packet: int


class Skipped(NamedTuple):
    """Captured bytes that are not part of a frame."""

    size: int
    at: int
    packet: int


Found: TypeAlias = Frame | Skipped


class Finder(Protocol):
    """A recognizer of frames in one direction."""

    margin: int
    """The number of bytes, including the size, needed to recognize a frame."""

    def search(self, buffer: bytearray, start: int) -> int:
        """Return the first position from ``start`` on that looks like a frame with its size, or -1."""

    def confirms(self, payload: bytes) -> bool:
        """Return whether a complete candidate, without its size, is a frame."""


class _IncompleteFrame:
    """A frame with missing bytes. ``left`` counts its bytes that are still to come."""

    def __init__(self, size: int, data: bytes) -> None:
        self.size = size
        self.data = data
        self.left = size - len(data)
        self.missing = 0


class ResyncSplitter:
    """A splitter of a stream into frames.

    ``least`` and ``most`` are the minimum and maximum frame size. With ``synchronized`` a frame starts at the next
    byte. Otherwise the first frame is the first one that the finder confirms.
    """

    def __init__(self, finder: Finder, *, least: int, most: int) -> None:
        self.least = least
        self.synchronized = False
        self._finder = finder
        self._most = most
        self._on_trial = False
        self._buffer = bytearray()
        self._broken: _IncompleteFrame | None = None
        self._searched = 0
        self._skipped = 0
        self._credit = _CREDIT
        self._at = 0
        self._packet = 0

    @property
    def held(self) -> int:
        """The number of buffered bytes, of an incomplete frame or for the search."""
        return len(self._buffer) + (len(self._broken.data) if self._broken else 0)

    def feed(self, piece: StreamChunk) -> Iterator[Found]:
        """Add the next chunk of the stream, and yield the items that it completes."""
        self._at, self._packet = max(self._at, piece.at), max(self._packet, piece.packet)
        if piece.data is None:
            yield from self._lose(piece.size)
        else:
            self._buffer += piece.data
            self._credit += _CREDIT_PER_BYTE * piece.size
        yield from self._cut()

    def close(self) -> Iterator[Found]:
        """Yield the remaining bytes, including an incomplete frame."""
        yield from self._end_trial()
        self._break()
        if self._broken:
            self._broken.missing += self._broken.left
            yield self._mended()
        self._skip(len(self._buffer))
        yield from self._report_skipped()

    def _cut(self) -> Iterator[Found]:
        while True:
            if self._broken:
                if not self._complete_broken():
                    return
                yield self._mended()
            elif not self.synchronized:
                if not self._search():
                    return
            elif (size := self._size()) is None:
                return
            elif not self.least <= size <= self._most:
                self._lose_track()
            elif len(self._buffer) - SIZE_BYTES < size:
                return
            else:
                yield from self._whole(size)

    def _size(self) -> int | None:
        if len(self._buffer) < SIZE_BYTES:
            return None
        return read_frame_size(self._buffer)

    def _whole(self, size: int) -> Iterator[Found]:
        data = bytes(memoryview(self._buffer)[SIZE_BYTES : SIZE_BYTES + size])
        if self._on_trial:
            self._credit -= size + _TRIAL
            if not self._finder.confirms(data):
                self._lose_track()
                return
            self._on_trial = False
            yield from self._report_skipped()
        del self._buffer[: SIZE_BYTES + size]
        yield Frame(size, data, 0, self._at, self._packet)

    def _search(self) -> bool:
        """Move to the next candidate. Return False without one."""
        place = self._finder.search(self._buffer, self._searched)
        while place >= 0 and read_frame_size(self._buffer, place) + _TRIAL > self._credit:
            place = self._finder.search(self._buffer, place + 1)
        if place < 0:
            done = max(self._searched, len(self._buffer) - self._finder.margin + 1)
            self._skip(min(done, len(self._buffer)))
            self._searched = 0
            return False
        self._skip(place)
        self._searched, self.synchronized, self._on_trial = 0, True, True
        return True

    def _lose_track(self) -> None:
        """Continue the search after a candidate that is not a frame."""
        self.synchronized, self._on_trial, self._searched = False, False, 1

    def _end_trial(self) -> Iterator[Found]:
        """Abandon an incomplete candidate, and process the frames after it."""
        while self._on_trial:
            self._lose_track()
            yield from self._cut()

    def _skip(self, size: int) -> None:
        self._skipped += size
        del self._buffer[:size]

    def _report_skipped(self) -> Iterator[Skipped]:
        if self._skipped:
            yield Skipped(self._skipped, self._at, self._packet)
            self._skipped = 0

    def _lose(self, size: int) -> Iterator[Found]:
        """Handle missing bytes: first the rest of the incomplete frame, then bytes of unknown frames."""
        yield from self._end_trial()
        self._break()
        if self._broken:
            lost = min(size, self._broken.left)
            self._broken.left -= lost
            self._broken.missing += lost
            size -= lost
            if not self._broken.left:
                yield self._mended()
        if size:
            self._skip(len(self._buffer))
            self.synchronized, self._searched = False, 0

    def _break(self) -> None:
        """Turn an incomplete frame with a known size into a frame with missing bytes."""
        stated = self._size()
        if self._broken or not self.synchronized or stated is None:
            return
        if self.least <= stated <= self._most:
            self._broken = _IncompleteFrame(stated, bytes(self._buffer[SIZE_BYTES:]))
            self._buffer.clear()

    def _complete_broken(self) -> bool:
        broken = self._broken
        assert broken is not None
        taken = min(broken.left, len(self._buffer))
        del self._buffer[:taken]
        broken.left -= taken
        return not broken.left

    def _mended(self) -> Frame:
        broken, self._broken = self._broken, None
        assert broken is not None
        return Frame(broken.size, broken.data, broken.missing, self._at, self._packet)
