"""One connection through a proxy: which bytes go on to the client, and which exchanges were seen.

This module does no input or output. Bytes of the client go on as they came: a proxy sends them first, and then gives
them to ``client_sent``. Bytes of the broker go through ``broker_sent``, which returns what the client gets: the same
bytes, except for responses with the addresses of brokers, and except for ApiVersions responses if versions are capped.
What is not a frame, or cannot be decoded, goes on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import evolve, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.capture.connections import Connection
from kafka_msgs.capture.exchange_builder import ExchangeBuilder, Item
from kafka_msgs.capture.exchanges import Exchange
from kafka_msgs.capture.faults import REQUEST, RESPONSE, CaptureFault, Direction, FaultKind
from kafka_msgs.capture.resync import Frame
from kafka_msgs.codec import Buffer, CodecOptions
from kafka_msgs.errors import FrameSizeError, KafkaMsgsError
from kafka_msgs.lookup import MessageCatalog, release_catalog
from kafka_msgs.message import Response
from kafka_msgs.messages.api_versions_response import ApiVersionsResponse
from kafka_msgs.tap.addresses import Translate, address_fields, translate_addresses
from kafka_msgs.wire import MAX_FRAME_SIZE, SIZE_BYTES, FrameSplitter, cap_api_versions, decode_response, join_frames

__all__ = ["TapConnection", "TapRules"]

_AS_IT_IS: Final = CodecOptions(memoryview_records=True, utf8_errors="surrogateescape")
_WAITING: Final = 128 * 2**20
_SMALL: Final = 2**12
_SHARED: Final = 2**16


@frozen(kw_only=True)
class TapRules:
    """What a proxy changes, and how much it keeps.

    ``translate`` gives the address of the proxy that stands for the address of a broker. ``cap_versions`` leaves out of
    ApiVersions responses what the catalog lacks. ``frame_limit`` is the size in bytes of the largest frame that is
    kept; a connection with a larger one goes on unchanged and unread. ``in_flight`` limits the bytes of requests that
    wait for their responses; above it, ``TapConnection.full`` is true.
    """

    translate: Translate
    cap_versions: bool = False
    frame_limit: int = MAX_FRAME_SIZE
    in_flight: int = 16 * 2**20
    catalog: MessageCatalog | None = None


class TapConnection:
    """The two directions of one connection between a client and a broker."""

    def __init__(self, connection: Connection, rules: TapRules) -> None:
        self.connection = connection
        self._rules = rules
        self._exchanges = ExchangeBuilder(connection, _WAITING, rules.catalog)
        self._requests = _Frames(rules.frame_limit)
        self._responses = _Pieces(rules.frame_limit)
        self._names: dict[tuple[int, int], tuple[str, ...]] = {}

    @property
    def full(self) -> bool:
        """Whether no more requests should be read until responses have come."""
        return self._exchanges.held > self._rules.in_flight

    def client_sent(self, data: bytes, at: int) -> list[Item]:
        """Take the next bytes of the client, which were sent on; return what is known with them.

        ``at`` is the time in microseconds since the epoch.
        """
        found: list[Item] = []
        for payload in self._requests.take(data):
            found += self._exchanges.ask(_frame(payload, at))
        return [*found, *self._unread(self._requests, REQUEST, at)]

    def broker_sent(self, data: bytes, at: int) -> tuple[list[Buffer], list[Item]]:
        """Take the next bytes of the broker; return the pieces that the client gets now, and what is known with them.

        Bytes of a response go on when all of it is there. They are the pieces that came, unless something is changed.
        """
        found: list[Item] = []
        changed = False
        ours: list[bytes] = []
        for payload in self._responses.take(data):
            items = list(self._exchanges.answer(_frame(payload, at)))
            ours.append(self._for_client(items, payload))
            changed |= ours[-1] is not payload
            found += items
        complete, unread = self._responses.pieces()
        out: list[Buffer] = [join_frames(*ours)] if changed else complete
        return [*out, *unread], [*found, *self._unread(self._responses, RESPONSE, at)]

    def close(self, at: int) -> list[Item]:
        """Return what was not complete, or not answered, when the connection ended."""
        found = list(self._exchanges.close())
        for frames, direction in ((self._requests, REQUEST), (self._responses, RESPONSE)):
            if frames.held:
                reason = f"the connection ended after {frames.held} bytes of a frame"
                found.append(self._fault(FaultKind.GAP, reason, frames.held, direction, at))
        return found

    def _for_client(self, items: list[Item], payload: bytes) -> bytes:
        """What the client gets of a response: the very payload, if nothing in it has to change."""
        for item in items:
            if isinstance(item, Exchange) and item.response is not None and item.response.payload is payload:
                return self._changed(item.api_key, item.version, payload)
        return payload

    def _changed(self, api_key: int, version: int, payload: bytes) -> bytes:
        names = self._names_of(api_key, version)
        caps = self._rules.cap_versions and api_key == ApiKey.API_VERSIONS
        if not names and not caps:
            return payload
        try:
            frame = decode_response(payload, api_key, version, catalog=self._rules.catalog, options=_AS_IT_IS)
            message = self._ours(frame.message, names)
            return payload if message is frame.message else evolve(frame, message=message).encode()
        except KafkaMsgsError:
            return payload

    def _ours(self, message: Response, names: tuple[str, ...]) -> Response:
        if isinstance(message, ApiVersionsResponse):
            return cap_api_versions(message, catalog=self._rules.catalog)
        return translate_addresses(message, names, self._rules.translate)

    def _names_of(self, api_key: int, version: int) -> tuple[str, ...]:
        key = api_key, version
        if key not in self._names:
            cls = (self._rules.catalog or release_catalog()).find(api_key, "response", version)
            self._names[key] = () if cls is None else address_fields(cls, version)
        return self._names[key]

    def _unread(self, frames: _Frames, direction: Direction, at: int) -> Iterator[CaptureFault]:
        """A fault at the moment when a direction stops to be frames."""
        if frames.error is not None and not frames.reported:
            frames.reported = True
            reason = f"{frames.error}; from here on, the bytes of this direction are passed on unread"
            yield self._fault(FaultKind.UNRECOGNISED, reason, 0, direction, at)

    def _fault(self, kind: FaultKind, reason: str, size: int, direction: Direction, at: int) -> CaptureFault:
        return CaptureFault(kind=kind, reason=reason, size=size, at=at, connection=self.connection, direction=direction)


class _Frames:
    """One direction as payloads, until something is not a frame; from there on as bytes that are not looked at."""

    def __init__(self, limit: int) -> None:
        self.error: FrameSizeError | None = None
        self.reported = False
        self._splitter = FrameSplitter(limit=limit)

    @property
    def held(self) -> int:
        """How many bytes of an incomplete frame are kept."""
        return 0 if self.error else self._splitter.held

    def take(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes, yield the payloads that are complete."""
        if self.error is None:
            try:
                yield from self._splitter.feed(data)
            except FrameSizeError as error:
                self.error = error


class _Pieces(_Frames):
    """The same, and the bytes as they came, which are kept until the frame that they belong to is complete."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._kept: list[Buffer] = []
        self._frames = 0

    def take(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes, yield the payloads that are complete."""
        self._keep(data)
        self._frames = 0
        for payload in super().take(data):
            self._frames += SIZE_BYTES + len(payload)
            yield payload

    def pieces(self) -> tuple[list[Buffer], list[Buffer]]:
        """Return the pieces of the frames that ``take`` yielded last, and those that are no frames; forget both.

        What is kept is the start of the next frame.
        """
        if not self._frames and self.error is None:
            return [], []
        complete, rest = _cut(self._kept, self._frames)
        self._kept, unread = (rest, []) if self.error is None else ([], rest)
        return complete, unread

    def _keep(self, data: bytes) -> None:
        """Keep the bytes that came. Small pieces share a buffer: so they take no object each."""
        last = self._kept[-1] if self._kept else None
        if isinstance(last, bytearray) and len(last) < _SHARED:
            last += data
        else:
            self._kept.append(bytearray(data) if len(data) < _SMALL else data)


def _cut(pieces: list[Buffer], size: int) -> tuple[list[Buffer], list[Buffer]]:
    """Cut pieces after ``size`` bytes, without a copy."""
    for number, piece in enumerate(pieces):
        if size < len(piece):
            view = memoryview(piece)
            first = [*pieces[:number], view[:size]] if size else pieces[:number]
            return first, [view[size:], *pieces[number + 1 :]]
        size -= len(piece)
    return pieces, []


def _frame(payload: bytes, at: int) -> Frame:
    return Frame(size=len(payload), data=payload, missing=0, at=at, packet=0)
