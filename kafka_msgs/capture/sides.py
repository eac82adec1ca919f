"""One direction of a conversation: from segments to frames, with what is lost, encrypted or no Kafka told beside them.

Owns when a stream starts that has no SYN, and what is made of its first bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kafka_msgs.capture.connections import Connection
from kafka_msgs.capture.faults import REQUEST, CaptureFault, Direction, FaultKind
from kafka_msgs.capture.framing import Frame, Framer, Skipped
from kafka_msgs.capture.protocol import RequestFinder, is_tls, looks_like_sized_request
from kafka_msgs.capture.streams import Piece, Stream

__all__ = ["Read", "Side"]

Read: TypeAlias = Frame | CaptureFault

_JUDGED: Final = RequestFinder.margin
"""Bytes that tell what a stream is."""
_WORDS: Final = {
    FaultKind.TLS: "encrypted (TLS)",
    FaultKind.UNRECOGNISED: "no frames of Kafka",
}


class Side:
    """The bytes that one end sends.

    ``opaque`` says why they are no frames, and is None as long as they are. ``judged`` says whether that is known.
    ``certain`` is whether they are Kafka's whatever they start with, as far as they are not encrypted.
    """

    def __init__(
        self, connection: Connection, direction: Direction, stream: Stream, framer: Framer, *, certain: bool
    ) -> None:
        self.stream = stream
        self.framer = framer
        self.opaque: FaultKind | None = None
        self.judged = False
        self._connection = connection
        self._direction = direction
        self._certain = certain
        self._start: list[Piece] = []
        self._unread = 0
        self._first_unread: Piece | None = None

    @property
    def held(self) -> int:
        """About how many bytes of memory are taken."""
        return self.stream.held + self.framer.held + sum(piece.size for piece in self._start if piece.data)

    def read(self, pieces: Iterable[Piece]) -> Iterator[Read]:
        """Take pieces of the stream; yield what is complete with them."""
        for piece in pieces:
            if piece.data is None:
                reason = f"{piece.size} bytes were not captured"
                yield self._fault(FaultKind.GAP, piece.size, piece.at, piece.packet, reason)
            if self.judged:
                yield from self._pass_on(piece)
            else:
                self.framer.synchronised = self.stream.has_start
                self._start.append(piece)
                yield from self._judge(final=False)

    def finish(self) -> Iterator[Read]:
        """Yield what is left, complete or not."""
        yield from self._judge(final=True)
        yield from map(self._told, self.framer.close())
        if self.opaque and self._first_unread:
            first, size = self._first_unread, self._unread
            self._first_unread, self._unread = None, 0
            yield self._fault(self.opaque, size, first.at, first.packet, f"{size} bytes: {_WORDS[self.opaque]}")

    def _judge(self, *, final: bool) -> Iterator[Read]:
        """Say what the stream is, as soon as there are bytes enough, and pass on what waited for it."""
        data = b"".join(piece.data or b"" for piece in self._start)
        if self.judged or (len(data) < _JUDGED and not final):
            return
        self.judged = True
        if is_tls(data):
            self.opaque = FaultKind.TLS
        elif not self._certain and not self._known(data):
            self.opaque = FaultKind.UNRECOGNISED
        waiting, self._start = self._start, []
        for piece in waiting:
            yield from self._pass_on(piece)

    def _known(self, data: bytes) -> bool:
        """Whether a stream that may be anything starts with a request, or, where its start is missing, has one."""
        if self._direction != REQUEST:
            return True
        return looks_like_sized_request(data) or (
            not self.framer.synchronised and RequestFinder().search(bytearray(data), 0) >= 0
        )

    def _pass_on(self, piece: Piece) -> Iterator[Read]:
        if self.opaque is None:
            yield from map(self._told, self.framer.feed(piece))
        elif piece.data is not None:
            self._unread += piece.size
            self._first_unread = self._first_unread or piece

    def _told(self, found: Frame | Skipped) -> Read:
        if isinstance(found, Frame):
            return found
        reason = f"{found.size} bytes that are no frame of Kafka, or could not be told for one"
        return self._fault(FaultKind.UNRECOGNISED, found.size, found.at, found.packet, reason)

    def _fault(self, kind: FaultKind, size: int, at: int, packet: int, reason: str) -> CaptureFault:
        return CaptureFault(
            kind=kind,
            reason=reason,
            size=size,
            at=at,
            packet=packet,
            connection=self._connection,
            direction=self._direction,
        )
