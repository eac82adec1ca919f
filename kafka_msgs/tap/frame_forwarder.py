"""The bytes of one direction of a connection: received into one memory, cut into frames, passed on from there.

This module owns the memory, and what of it may be passed on at which time. Whose frames these are, and what has to
change in them, is decided by two functions that its owner gives. It does no input or output. A frame is copied only if
somebody keeps or changes it: what is passed on are views of the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from kafka_msgs.codec import Buffer
from kafka_msgs.errors import FrameSizeError
from kafka_msgs.wire import SIZE_BYTES, join_frames, read_frame_size

__all__ = ["HEAD_BYTES", "ForwardMode", "FrameForwarder"]

HEAD_BYTES: Final = 4
"""How many bytes of a payload must be there before it is decided how it passes: the correlation id of a response."""

_FIRST: Final = 2**13
_AT_ONCE: Final = 2**18
"""The size of the memory at first, and how many bytes of unknown frames are received at once, by default."""
_RETAINED: Final = 2**22
"""A memory that had to grow beyond this is given up when the large frame has passed."""


class ForwardMode(Enum):
    """How a frame passes."""

    STREAM = auto()
    """As its bytes come. Only its head is kept."""
    STREAM_AND_COPY = auto()
    """As its bytes come. When it is complete, the whole payload is given to the owner."""
    BUFFER = auto()
    """When it is complete, and perhaps changed."""


class FrameForwarder:
    """Bytes that are received into ``get_buffer()`` and go on after ``buffer_updated()``.

    ``begins`` gets the first ``HEAD_BYTES`` of a payload (fewer if the payload is shorter) and chooses the manner.
    Without it all frames are kept, and no byte waits. ``ends`` gets the payload of a frame that is complete, of a
    ``STREAM`` frame only its head, and the size of the payload. It returns what goes on in its place, or None for the
    bytes as they came. Only a ``BUFFER`` frame can change.

    From the first bytes that are not a frame of at most ``limit`` bytes, everything passes unread, and ``error`` says
    why. The memory has at most twice the bytes of the largest frame that is kept. Work and memory are linear in the
    bytes that came.
    """

    def __init__(
        self,
        limit: int,
        *,
        at_once: int = _AT_ONCE,
        ends: Callable[[bytes, int], Buffer | None],
        begins: Callable[[bytes], ForwardMode] | None = None,
    ) -> None:
        self.error: FrameSizeError | None = None
        self._limit = limit
        self._at_once = at_once
        self._begins = begins
        self._ends = ends
        self._new_memory(_FIRST)
        self._start = 0  # of the frame that is not complete
        self._end = 0  # of what was received
        self._passed = 0  # up to here all bytes went on
        self._size = 0
        self._manner: ForwardMode | None = None
        self._head = b""  # of a frame that passes; then these are its bytes that are still to come:
        self._missing = 0

    @property
    def incomplete(self) -> int:
        """How many bytes of an incomplete frame were received, including its size."""
        if self._missing:
            return SIZE_BYTES + self._size - self._missing
        return self._end - self._start

    def get_buffer(self) -> memoryview:
        """Return where the next bytes have to be put. It is never empty, and is valid until ``buffer_updated``."""
        full = self._end == len(self._memory)
        self._move_down()
        if self._end == len(self._memory) or (full and len(self._memory) < self._at_once):
            self._move_to(2 * len(self._memory))
        whole = SIZE_BYTES + self._size if self._manner in (ForwardMode.STREAM_AND_COPY, ForwardMode.BUFFER) else 0
        return self._view[self._end : whole if whole > self._at_once else self._end + self._at_once]

    def buffer_updated(self, count: int) -> list[Buffer]:
        """Take the first ``count`` bytes of the room; return the pieces that go on now, in their order.

        They are views of the memory, valid until the next ``get_buffer()``. If they are needed longer, call
        ``detach_buffer``.
        """
        self._end += count
        pieces: list[Buffer] = []
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
        """Do not write to this memory again: somebody still reads it."""
        self._move_to(len(self._memory))

    def _waits(self) -> bool:
        """Whether the frame that is not complete must not go on yet."""
        return self._manner is ForwardMode.BUFFER or (self._manner is None and self._begins is not None)

    def _next(self, pieces: list[Buffer]) -> bool:
        """Go on by one step; whether there was one."""
        if self._missing:
            return self._next_missing()
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
            pieces.append(join_frames(changed))
            self._passed = stop
        self._start = stop
        return True

    def _begin(self) -> bool:
        """Read the size and the head of the next frame, and choose its manner; whether that was possible."""
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

    def _next_missing(self) -> bool:
        """Leave the next bytes of a frame that passes alone; whether it is complete."""
        came = min(self._missing, self._end - self._start)
        self._start += came
        self._missing -= came
        if not self._missing:
            self._complete(self._head)
        return not self._missing

    def _complete(self, payload: bytes) -> Buffer | None:
        self._manner = None
        return self._ends(payload, self._size)

    def _pass_on(self, pieces: list[Buffer], stop: int) -> None:
        if stop > self._passed:
            pieces.append(self._view[self._passed : stop])
            self._passed = stop

    def _move_down(self) -> None:
        """Bring the frame that is not complete to the beginning of the memory."""
        if self._start == self._end and len(self._memory) > _RETAINED:
            self._new_memory(_FIRST)
        elif self._start:
            self._view[: self._end - self._start] = self._view[self._start : self._end]
        self._count_from_start()

    def _move_to(self, size: int) -> None:
        """Continue in another memory."""
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
