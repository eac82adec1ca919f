"""One TCP connection of a capture: its two streams, their frames, and the exchanges that they make.

Owns which end is the client, and in which order the two directions are read. No input or output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen

from kafka_msgs.capture.connections import Connection, Endpoint
from kafka_msgs.capture.faults import REQUEST, RESPONSE, CaptureFault, FaultKind
from kafka_msgs.capture.framing import Framer
from kafka_msgs.capture.matching import Item, Matcher
from kafka_msgs.capture.protocol import (
    LEAST_REQUEST,
    LEAST_RESPONSE,
    RequestFinder,
    ResponseFinder,
    looks_like_sized_request,
)
from kafka_msgs.capture.segments import Segment
from kafka_msgs.capture.sides import Read, Side
from kafka_msgs.capture.streams import Stream

__all__ = ["Conversation", "Limits"]

_AWAITED: Final = 2**16
"""Bytes of a stream without a SYN that are held before it is taken to start where it does."""


@frozen(kw_only=True)
class Limits:
    """How much memory a capture may take; what is beyond is given up, and told.

    ``frame``: bytes of the largest frame, by default what brokers accept. ``reordered``: bytes of a stream that are
    held while earlier ones are missing. ``waiting``: bytes of the frames of a connection that wait for those of the
    other direction. ``held``: bytes of all connections together. ``connections``: how many are known at a time.
    """

    frame: int = 100 * 2**20
    reordered: int = 16 * 2**20
    waiting: int = 128 * 2**20
    held: int = 512 * 2**20
    connections: int = 10_000


class Conversation:
    """What goes over one connection between two ends.

    ``server`` is the end that is known to be the broker, or None. ``certain`` says that the connection is one of
    Kafka's, whatever its first bytes look like.
    """

    def __init__(
        self, number: int, ends: tuple[Endpoint, Endpoint], server: Endpoint | None, limits: Limits, *, certain: bool
    ) -> None:
        self._number = number
        self._limits = limits
        self._certain = certain
        self._server = server
        self._streams = {end: Stream(limits.reordered) for end in ends}
        self._talk: _Talk | None = None
        self._ended = False

    @property
    def held(self) -> int:
        """About how many bytes of memory the conversation takes."""
        return self._talk.held if self._talk else sum(stream.held for stream in self._streams.values())

    def starts_anew(self, segment: Segment) -> bool:
        """Open the stream of a SYN; True where the SYN is that of a later connection between the same ends."""
        if not segment.syn:
            return False
        if not self._streams[segment.source].open(segment.seq + 1):
            return True
        if self._server is None:
            self._server = segment.target if segment.ack is None else segment.source
        return False

    def receive(self, segment: Segment, at: int, packet: int) -> Iterator[Item]:
        """Take the next segment; yield what is complete with it."""
        stream = self._streams[segment.source]
        seq = segment.seq + segment.syn
        if (segment.data or segment.missing) and not stream.add(seq, segment.data, segment.missing, at, packet):
            reason = f"{segment.source} > {segment.target}: a sequence number out of reach"
            yield CaptureFault(kind=FaultKind.PACKET, reason=reason, size=len(segment.data), at=at, packet=packet)
        if segment.ack is not None:
            self._streams[segment.target].acknowledge(segment.ack)
        if segment.fin:
            stream.end(seq + len(segment.data) + segment.missing, at, packet)
        yield from self._advance()
        if self._talk and not self._ended and all(each.complete for each in self._streams.values()):
            self._ended = True
            yield from self._talk.close()

    def close(self) -> Iterator[Item]:
        """Yield what is left, complete or not."""
        for stream in self._streams.values():
            if not stream.opened:
                stream.open_here()
        yield from self._talking().close()

    def _advance(self) -> Iterator[Item]:
        if all(stream.held <= _AWAITED for stream in self._streams.values()):
            if self._server is None or not self._streams[self._client()].opened:
                return
        else:
            self._open_all()
        yield from self._talking().advance()

    def _open_all(self) -> None:
        for stream in self._streams.values():
            if not stream.opened and stream.held:
                stream.open_here()

    def _client(self) -> Endpoint:
        return next(end for end in self._streams if end != self._server)

    def _talking(self) -> _Talk:
        """The conversation as one of a client and a broker, whichever they are."""
        if self._talk is None:
            self._server = self._server or self._guess()
            client = self._client()
            connection = Connection(self._number, client, self._server)
            self._talk = _Talk(
                connection, self._streams[client], self._streams[self._server], self._limits, certain=self._certain
            )
        return self._talk

    def _guess(self) -> Endpoint:
        """Take for the client whose first bytes are a request; where none or both are, who has the higher port."""
        asking = [end for end, stream in self._streams.items() if looks_like_sized_request(stream.first_bytes())]
        client = asking[0] if len(asking) == 1 else max(self._streams, key=lambda end: end.port)
        return next(end for end in self._streams if end != client)


class _Talk:
    """A conversation of which it is known who asks and who answers."""

    def __init__(
        self, connection: Connection, asking: Stream, answering: Stream, limits: Limits, *, certain: bool
    ) -> None:
        self._matcher = Matcher(connection, limits.waiting)
        finder = ResponseFinder(self._matcher.waiting, self._matcher.decodes)
        asked = Framer(RequestFinder(), least=LEAST_REQUEST, most=limits.frame)
        answered = Framer(finder, least=LEAST_RESPONSE, most=limits.frame)
        self._request = Side(connection, REQUEST, asking, asked, certain=certain)
        self._response = Side(connection, RESPONSE, answering, answered, certain=certain)

    @property
    def held(self) -> int:
        return self._request.held + self._response.held + self._matcher.held

    def advance(self) -> Iterator[Item]:
        """Read what can be read, the requests first: they tell how to read the responses."""
        yield from self._asked(self._request.read(self._request.stream.take()))
        if self._request.judged:
            self._response.opaque = self._response.opaque or self._request.opaque
            yield from self._answered(self._response.read(self._response.stream.take()))

    def close(self) -> Iterator[Item]:
        """Read all that is left."""
        yield from self._asked(self._request.read(self._request.stream.flush()))
        yield from self._asked(self._request.finish())
        self._response.opaque = self._response.opaque or self._request.opaque
        yield from self._answered(self._response.read(self._response.stream.flush()))
        yield from self._answered(self._response.finish())
        yield from self._matcher.close()

    def _asked(self, found: Iterable[Read]) -> Iterator[Item]:
        for each in found:
            if isinstance(each, CaptureFault):
                yield each
                continue
            yield from self._matcher.ask(each)
            if self._matcher.tokens:
                self._request.framer.least = self._response.framer.least = 0

    def _answered(self, found: Iterable[Read]) -> Iterator[Item]:
        for each in found:
            if isinstance(each, CaptureFault):
                yield each
            else:
                yield from self._matcher.answer(each)
