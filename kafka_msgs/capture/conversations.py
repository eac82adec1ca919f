"""One captured TCP connection: its two streams, their frames, and the resulting exchanges.

This module determines which end is the client, and in which order the two directions are read. It does no input or
output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import field, frozen

from kafka_msgs.capture.connections import CapturedConnection, Endpoint
from kafka_msgs.capture.direction_reader import DirectionReader, Read
from kafka_msgs.capture.exchange_builder import ExchangeBuilder, Item
from kafka_msgs.capture.faults import REQUEST, RESPONSE, CaptureFault, FaultKind
from kafka_msgs.capture.frame_finders import (
    LEAST_REQUEST,
    LEAST_RESPONSE,
    RequestFinder,
    ResponseFinder,
    looks_like_sized_request,
)
from kafka_msgs.capture.resync import ResyncSplitter
from kafka_msgs.capture.tcp_segments import TcpSegment
from kafka_msgs.capture.tcp_streams import TcpStream
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.validators import int_range
from kafka_msgs.wire import MAX_FRAME_SIZE

__all__ = ["CaptureLimits", "Conversation"]

_AWAITED: Final = 2**17
"""The number of bytes that a stream without a SYN buffers before its first byte is taken as its start."""
_CONVERSATION_BYTES: Final = 5000
"""The approximate size in bytes of an empty conversation."""


@frozen(kw_only=True)
class CaptureLimits:
    """Memory limits of a capture. Data above a limit is dropped and reported.

    ``frame``: maximum frame size in bytes, by default the limit of a broker. ``reordered``: buffered bytes of a stream
    while earlier bytes are missing. ``waiting``: bytes of a connection's frames that await frames of the other
    direction. ``held``: bytes of all connections together, including their objects. ``connections``: the maximum number
    of tracked connections.

    In addition, all connections together use at most ``base`` bytes plus ``ratio`` times the bytes read from the file.
    Many small waiting frames use more memory than they used in the file. Raises ``OptionError``.
    """

    frame: int = field(default=MAX_FRAME_SIZE, validator=int_range())
    reordered: int = field(default=16 * 2**20, validator=int_range())
    waiting: int = field(default=128 * 2**20, validator=int_range())
    held: int = field(default=512 * 2**20, validator=int_range())
    connections: int = field(default=10_000, validator=int_range(1))
    base: int = field(default=4 * 2**20, validator=int_range())
    ratio: int = field(default=2, validator=int_range())

    def allowed(self, read: int) -> int:
        """Return the maximum memory of all connections in bytes, after ``read`` bytes of the file."""
        return min(self.held, self.base + self.ratio * read)


class Conversation:
    """The frames of one connection between two ends.

    ``server`` is the broker's end if it is known, or None. With ``certain`` the connection is assumed to use the Kafka
    protocol, and its first bytes are not examined.
    """

    def __init__(
        self,
        number: int,
        ends: tuple[Endpoint, Endpoint],
        server: Endpoint | None,
        limits: CaptureLimits,
        *,
        certain: bool,
        catalog: MessageCatalog | None,
    ) -> None:
        self._number = number
        self._limits = limits
        self._certain = certain
        self._catalog = catalog
        self._server = server
        self._streams = {end: TcpStream(limits.reordered) for end in ends}
        self._dialogue: _KafkaConversation | None = None
        self._ended = False

    @property
    def held(self) -> int:
        """The approximate memory use of the conversation in bytes."""
        held = self._dialogue.held if self._dialogue else sum(stream.held for stream in self._streams.values())
        return _CONVERSATION_BYTES + held

    def starts_anew(self, segment: TcpSegment) -> bool:
        """Open the stream of a SYN. Return True if the SYN belongs to a later connection between the same ends.

        The SYN of a server acknowledges the SYN of the client, so it opens the client's stream as well.
        """
        if not segment.syn:
            return False
        if not self._streams[segment.source].open(segment.seq + 1):
            return True
        if segment.ack is not None and not self._streams[segment.target].opened:
            self._streams[segment.target].open(segment.ack)
        if self._server is None:
            self._server = segment.target if segment.ack is None else segment.source
        return False

    def receive(self, segment: TcpSegment, at: int, packet: int) -> Iterator[Item]:
        """Add the next segment, and yield the items that it completes."""
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
        if self._dialogue and not self._ended and all(each.complete for each in self._streams.values()):
            self._ended = True
            yield from self._dialogue.close()

    def close(self) -> Iterator[Item]:
        """Yield the remaining items, complete or not."""
        for stream in self._streams.values():
            if not stream.opened:
                stream.open_here()
        yield from self._known_dialogue().close()

    def _advance(self) -> Iterator[Item]:
        if all(stream.held <= _AWAITED for stream in self._streams.values()):
            if self._server is None or not self._streams[self._client()].opened:
                return
        else:
            self._open_all()
        yield from self._known_dialogue().advance()

    def _open_all(self) -> None:
        for stream in self._streams.values():
            if not stream.opened and stream.held:
                stream.open_here()

    def _client(self) -> Endpoint:
        return next(end for end in self._streams if end != self._server)

    def _known_dialogue(self) -> _KafkaConversation:
        """Return the conversation after determining its client and its broker."""
        if self._dialogue is None:
            self._server = self._server or self._guess()
            client = self._client()
            connection = CapturedConnection(self._number, client, self._server)
            streams = self._streams[client], self._streams[self._server]
            self._dialogue = _KafkaConversation(
                connection, *streams, self._limits, certain=self._certain, catalog=self._catalog
            )
        return self._dialogue

    def _guess(self) -> Endpoint:
        """Return the client's end: the end whose first bytes are a request.

        If neither or both are requests, the client is the end with the higher port.
        """
        asking = [
            end
            for end, stream in self._streams.items()
            if looks_like_sized_request(stream.first_bytes(), self._catalog)
        ]
        client = asking[0] if len(asking) == 1 else max(self._streams, key=lambda end: end.port)
        return next(end for end in self._streams if end != client)


class _KafkaConversation:
    """A conversation with a known client."""

    def __init__(
        self,
        connection: CapturedConnection,
        asking: TcpStream,
        answering: TcpStream,
        limits: CaptureLimits,
        *,
        certain: bool,
        catalog: MessageCatalog | None,
    ) -> None:
        self._exchanges = ExchangeBuilder(connection, limits.waiting, catalog)
        asked = ResyncSplitter(RequestFinder(catalog), least=LEAST_REQUEST, most=limits.frame)
        finder = ResponseFinder(self._exchanges.expected, self._exchanges.decodes)
        answered = ResyncSplitter(finder, least=LEAST_RESPONSE, most=limits.frame)
        self._requests = DirectionReader(connection, REQUEST, asking, asked, certain=certain, catalog=catalog)
        self._responses = DirectionReader(connection, RESPONSE, answering, answered, certain=certain, catalog=catalog)

    @property
    def held(self) -> int:
        return self._requests.held + self._responses.held + self._exchanges.held

    def advance(self) -> Iterator[Item]:
        """Read the available bytes.

        Requests come first: their API keys and versions are needed to read the responses.
        """
        yield from self._asked(self._requests.read(self._requests.stream.take()))
        if self._requests.recognised:
            self._responses.opaque = self._responses.opaque or self._requests.opaque
            yield from self._answered(self._responses.read(self._responses.stream.take()))

    def close(self) -> Iterator[Item]:
        """Read all remaining bytes."""
        yield from self._asked(self._requests.read(self._requests.stream.flush()))
        yield from self._asked(self._requests.finish())
        self._responses.opaque = self._responses.opaque or self._requests.opaque
        yield from self._answered(self._responses.read(self._responses.stream.flush()))
        yield from self._answered(self._responses.finish())
        yield from self._exchanges.close()

    def _asked(self, found: Iterable[Read]) -> Iterator[Item]:
        for each in found:
            if isinstance(each, CaptureFault):
                yield each
                continue
            yield from self._exchanges.add_request(each)
            if self._exchanges.tokens:
                self._requests.splitter.least = self._responses.splitter.least = 0

    def _answered(self, found: Iterable[Read]) -> Iterator[Item]:
        for each in found:
            if isinstance(each, CaptureFault):
                yield each
            else:
                yield from self._exchanges.add_response(each)
