"""Forwarding of one direction of a connection: its bytes are received into a buffer, split into frames, and passed on.

This module manages the buffer, and decides which of its bytes may be forwarded. Two callbacks interpret and change
frames. The module does no input or output. A frame is copied only if a callback retains or changes it: forwarded bytes
are views of the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from kafka_msgs.codec import Buffer
from kafka_msgs.errors import FrameSizeError
from kafka_msgs.wire import SIZE_BYTES, read_frame_size

__all__ = ["HEAD_BYTES", "ForwardMode", "FrameForwarder", "Pause", "Piece"]

HEAD_BYTES: Final = 4
"""The payload bytes needed to choose a forward mode: the correlation id of a response, or the API key and version."""

_FIRST: Final = 2**13
_AT_ONCE: Final = 2**18
"""The initial buffer size, and the default number of bytes of unknown frames to receive at once."""
_RETAINED: Final = 2**22
"""A buffer that grew beyond this is released after the large frame."""


class ForwardMode(Enum):
    """The forward mode of a frame."""

    STREAM = auto()
    """Forward bytes as they arrive. Only the head of the frame is retained."""
    STREAM_AND_COPY = auto()
    """Forward bytes as they arrive. The complete payload is then passed to the owner."""
    BUFFER = auto()
    """Forward the frame when it is complete, possibly changed."""


class Pause(NamedTuple):
    """A pause before the pieces that follow."""

    seconds: float


Piece: TypeAlias = Buffer | Pause
"""Bytes to forward, or a pause."""


class FrameForwarder:
    """Bytes that are received into ``get_buffer()`` and forwarded after ``buffer_updated()``.

    ``begins`` receives the first ``HEAD_BYTES`` of a payload (fewer if the payload is shorter) and returns its forward
    mode. Without it all frames are copied, and no byte is held. ``ends`` receives the payload of a complete frame, or
    only the head of a ``STREAM`` frame, and the payload size. It returns the pieces to forward instead of the frame, or
    None for the original bytes. Only a ``BUFFER`` frame can change. During ``ends``, the owner may add pieces to
    ``insertions``, which follow the frame.

    From the first bytes that are not a frame of at most ``limit`` bytes, all bytes are forwarded without parsing, and
    ``error`` contains the reason. The buffer is at most twice as large as the largest retained frame. Work and memory
    are linear in the number of received bytes.
    """

    def __init__(
        self,
        limit: int,
        *,
        at_once: int = _AT_ONCE,
        ends: Callable[[bytes, int], Sequence[Piece] | None],
        begins: Callable[[bytes], ForwardMode] | None = None,
    ) -> None:
        self.error: FrameSizeError | None = None
        self.insertions: list[Piece] = []
        self._limit = limit
        self._at_once = at_once
        self._begins = begins
        self._ends = ends
        self._new_memory(_FIRST)
        self._start = 0  # start of the incomplete frame
        self._end = 0  # end of the received bytes
        self._passed = 0  # end of the forwarded bytes
        self._size = 0
        self._manner: ForwardMode | None = None
        self._head = b""  # of a frame that is being streamed; the next attribute is its number of missing bytes:
        self._missing = 0

    @property
    def incomplete(self) -> int:
        """The number of received bytes of an incomplete frame, including its size."""
        if self._missing:
            return SIZE_BYTES + self._size - self._missing
        return self._end - self._start

    @property
    def held(self) -> int:
        """The size of the buffer in bytes."""
        return len(self._memory)

    def release(self) -> None:
        """Give up the buffer and the callbacks at the end of the connection. No bytes follow."""
        self._new_memory(0)
        self._begins, self._ends = None, _unchanged

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes. It is never empty, and valid until ``buffer_updated``."""
        full = self._end == len(self._memory)
        self._move_down()
        if self._end == len(self._memory) or (full and len(self._memory) < self._at_once):
            self._move_to(2 * len(self._memory))
        whole = SIZE_BYTES + self._size if self._manner in (ForwardMode.STREAM_AND_COPY, ForwardMode.BUFFER) else 0
        return self._view[self._end : whole if whole > self._at_once else self._end + self._at_once]

    def buffer_updated(self, count: int) -> list[Piece]:
        """Process the first ``count`` bytes of the buffer; return the pieces to forward now, in order.

        They are views of the buffer, valid until the next ``get_buffer()``. To use them longer, call ``detach_buffer``.
        """
        self._end += count
        pieces: list[Piece] = []
        try:
            while self.error is None and self._next(pieces):
                pass
        except FrameSizeError as error:
            self.error = error
        if self.error is not None:
            self._start = self._end
        self._pass_on(pieces, self._start if self._waits() else self._end)
        return pieces

    def detach_buffer(self) -> None:
        """Stop writing to this buffer, because its views are still in use."""
        self._move_to(len(self._memory))

    def _waits(self) -> bool:
        """Whether the incomplete frame must be held."""
        return self._manner is ForwardMode.BUFFER or (self._manner is None and self._begins is not None)

    def _next(self, pieces: list[Piece]) -> bool:
        """Process one step; return whether progress was possible."""
        if self._missing:
            return self._next_missing(pieces)
        if self._manner is None and not self._begin():
            return False
        if self._manner is ForwardMode.STREAM and self._size > HEAD_BYTES:
            return self._start_passing()
        stop = self._start + SIZE_BYTES + self._size
        if self._end < stop:
            return False
        changed = self._complete(bytes(self._view[self._start + SIZE_BYTES : stop]))
        if changed is not None:
            self._pass_on(pieces, self._start)
            pieces += changed
            self._passed = stop
        self._start = stop
        self._insert(pieces)
        return True

    def _begin(self) -> bool:
        """Read the size and the head of the next frame, and choose its forward mode.

        Return whether enough bytes were available.
        """
        there = self._end - self._start - SIZE_BYTES
        if there < 0:
            return False
        size = read_frame_size(self._view, self._start)
        if not 0 <= size <= self._limit:
            raise FrameSizeError(size=size, limit=self._limit)
        if there < min(size, HEAD_BYTES):
            return False
        self._size = size
        head = self._start + SIZE_BYTES
        start = bytes(self._view[head : head + min(size, HEAD_BYTES)])
        self._manner = ForwardMode.STREAM_AND_COPY if self._begins is None else self._begins(start)
        return True

    def _start_passing(self) -> bool:
        head = self._start + SIZE_BYTES
        self._start = head + HEAD_BYTES
        self._head = bytes(self._view[head : self._start])
        self._missing = self._size - HEAD_BYTES
        return True

    def _next_missing(self, pieces: list[Piece]) -> bool:
        """Skip the next bytes of a streamed frame; return whether it is complete."""
        came = min(self._missing, self._end - self._start)
        self._start += came
        self._missing -= came
        if not self._missing:
            self._complete(self._head)
            self._insert(pieces)
        return not self._missing

    def _insert(self, pieces: list[Piece]) -> None:
        """Add the owner's insertions after the frames before them."""
        if self.insertions:
            self._pass_on(pieces, self._start)
            pieces += self.insertions
            self.insertions = []

    def _complete(self, payload: bytes) -> Sequence[Piece] | None:
        self._manner = None
        return self._ends(payload, self._size)

    def _pass_on(self, pieces: list[Piece], stop: int) -> None:
        if stop > self._passed:
            pieces.append(self._view[self._passed : stop])
            self._passed = stop

    def _move_down(self) -> None:
        """Move the incomplete frame to the beginning of the buffer."""
        if self._start == self._end and len(self._memory) > _RETAINED:
            self._new_memory(_FIRST)
        elif self._start:
            self._view[: self._end - self._start] = self._view[self._start : self._end]
        self._count_from_start()

    def _move_to(self, size: int) -> None:
        """Continue in a new buffer."""
        kept = self._view[self._start : self._end]
        self._new_memory(size)
        self._view[: len(kept)] = kept
        self._count_from_start()

    def _new_memory(self, size: int) -> None:
        self._memory = bytearray(size)
        self._view = memoryview(self._memory)

    def _count_from_start(self) -> None:
        self._end -= self._start
        self._passed -= self._start
        self._start = 0


def _unchanged(payload: bytes, size: int) -> None:
    """Forward a frame unchanged."""
