"""One direction of a conversation: it turns stream chunks into frames, and reports lost or foreign bytes as faults.

This module determines the start of a stream without a SYN, and recognizes the protocol from its first bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kafka_msgs.capture.connections import CapturedConnection
from kafka_msgs.capture.faults import REQUEST, CaptureFault, Direction, FaultKind
from kafka_msgs.capture.frame_finders import RequestFinder, is_tls, looks_like_sized_request
from kafka_msgs.capture.resync import Frame, ResyncSplitter, Skipped
from kafka_msgs.capture.tcp_streams import StreamChunk, TcpStream
from kafka_msgs.catalog import MessageCatalog

__all__ = ["DirectionReader", "Read"]

Read: TypeAlias = Frame | CaptureFault

_ENOUGH: Final = RequestFinder.margin
"""The number of bytes needed to recognize a stream."""
_REASONS: Final = {
    FaultKind.TLS: "encrypted (TLS)",
    FaultKind.UNRECOGNISED: "not frames of Kafka",
}


class DirectionReader:
    """The bytes from one end.

    ``opaque`` is the reason why they are not parsed as frames, or None. ``recognised`` is True once the protocol is
    known. With ``certain`` they are parsed as Kafka frames whatever their first bytes, unless they are encrypted.
    """

    def __init__(
        self,
        connection: CapturedConnection,
        direction: Direction,
        stream: TcpStream,
        splitter: ResyncSplitter,
        *,
        certain: bool,
        catalog: MessageCatalog | None,
    ) -> None:
        self.stream = stream
        self.splitter = splitter
        self.opaque: FaultKind | None = None
        self.recognised = False
        self._connection = connection
        self._direction = direction
        self._certain = certain
        self._catalog = catalog
        self._start = bytearray()
        self._waiting: list[StreamChunk] = []
        self._unread = 0
        self._first_unread: StreamChunk | None = None

    @property
    def held(self) -> int:
        """The approximate memory use in bytes."""
        return self.stream.held + self.splitter.held + len(self._start)

    def read(self, pieces: Iterable[StreamChunk]) -> Iterator[Read]:
        """Add stream chunks; yield the items that they complete."""
        for piece in pieces:
            if piece.data is None:
                reason = f"{piece.size} bytes were not captured"
                yield self._fault(FaultKind.GAP, piece.size, piece.at, piece.packet, reason)
            if self.recognised:
                yield from self._pass_on(piece)
            else:
                self.splitter.synchronized = self.stream.has_start
                self._hold(piece)
                yield from self._recognise(final=False)

    def finish(self) -> Iterator[Read]:
        """Yield the remaining items, complete or not."""
        yield from self._recognise(final=True)
        yield from map(self._reported, self.splitter.close())
        if self.opaque and self._first_unread:
            first, size = self._first_unread, self._unread
            self._first_unread, self._unread = None, 0
            yield self._fault(self.opaque, size, first.at, first.packet, f"{size} bytes: {_REASONS[self.opaque]}")

    def _hold(self, piece: StreamChunk) -> None:
        """Buffer a chunk until the stream is recognized: few bytes, and one chunk for each run of missing bytes."""
        if piece.data is not None:
            self._start += piece.data
        elif self._waiting and self._waiting[-1].data is None:
            piece = piece._replace(size=piece.size + self._waiting.pop().size)
        self._waiting.append(piece)

    def _recognise(self, *, final: bool) -> Iterator[Read]:
        """Recognize the stream when enough bytes are available, and process the buffered chunks."""
        if self.recognised or (len(self._start) < _ENOUGH and not final):
            return
        self.recognised = True
        if is_tls(self._start):
            self.opaque = FaultKind.TLS
        elif not self._certain and not self._looks_like_kafka():
            self.opaque = FaultKind.UNRECOGNISED
        waiting, self._waiting, self._start = self._waiting, [], bytearray()
        for piece in waiting:
            yield from self._pass_on(piece)

    def _looks_like_kafka(self) -> bool:
        """Return whether an unknown stream starts with a request, or contains one if its start is missing."""
        if self._direction != REQUEST:
            return True
        return looks_like_sized_request(self._start, self._catalog) or (
            not self.splitter.synchronized and RequestFinder(self._catalog).search(self._start, 0) >= 0
        )

    def _pass_on(self, piece: StreamChunk) -> Iterator[Read]:
        if self.opaque is None:
            yield from map(self._reported, self.splitter.feed(piece))
        elif piece.data is not None:
            self._unread += piece.size
            self._first_unread = self._first_unread or piece._replace(data=b"")

    def _reported(self, found: Frame | Skipped) -> Read:
        if isinstance(found, Frame):
            return found
        reason = f"{found.size} bytes that are not a frame of Kafka, or cannot be recognised as one"
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
