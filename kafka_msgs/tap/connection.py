"""One proxied connection: the bytes to forward in each direction, and the observed exchanges.

This module does no input or output. The bytes of each direction are received into its ``FrameForwarder``, and forwarded
as views of that buffer. They are unchanged, except in responses with broker addresses, and in ApiVersions responses if
versions are capped. Only such a response is held until it is complete. Bytes that are not a frame, or cannot be
decoded, are forwarded unchanged.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from attrs import evolve, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.capture.connections import CapturedConnection
from kafka_msgs.capture.exchange_builder import ExchangeBuilder, Item
from kafka_msgs.capture.faults import REQUEST, RESPONSE, CaptureFault, Direction, FaultKind
from kafka_msgs.capture.resync import Frame
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import Buffer, CodecOptions
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Response
from kafka_msgs.messages.api_versions_response import ApiVersionsResponse
from kafka_msgs.tap.address_rewriting import ADDRESS_FIELDS, Translate, address_fields, rewrite_addresses
from kafka_msgs.tap.frame_forwarder import HEAD_BYTES, ForwardMode, FrameForwarder
from kafka_msgs.wire import MAX_FRAME_SIZE, cap_api_versions, decode_response, read_correlation_id

__all__ = ["ForwardResult", "TapConfig", "TapConnection"]

_AS_IT_IS: Final = CodecOptions(memoryview_records=True, utf8_errors="surrogateescape")
_WAITING: Final = 128 * 2**20
_IN_FLIGHT: Final = 1_000
_REQUESTS_AT_ONCE: Final = 2**15
_WAITING_FRAMES: Final = 4_096
"""More than the in-flight limit plus the small requests of one read, so that no waiting frame is dropped."""


@frozen(kw_only=True)
class TapConfig:
    """The changes and limits of a proxy.

    ``translate`` maps the address of a broker to the proxy's address for it. ``cap_versions`` removes APIs and versions
    that the catalog lacks from ApiVersions responses. ``frame_limit`` is the maximum size in bytes of a buffered frame;
    from a larger frame on, a direction is forwarded without being parsed. ``in_flight`` limits the bytes of in-flight
    requests; above it, or with 1,000 in-flight requests, ``TapConnection.full`` is True. Without ``exchanges``, no
    exchanges and faults are reported, and unchanged responses are not buffered.
    """

    translate: Translate
    cap_versions: bool = False
    frame_limit: int = MAX_FRAME_SIZE
    in_flight: int = 16 * 2**20
    catalog: MessageCatalog | None = None
    exchanges: bool = True


class ForwardResult(NamedTuple):
    """The pieces to forward in order, valid until the next bytes are received, and the new items."""

    pieces: list[Buffer]
    items: list[Item]


class TapConnection:
    """The two directions of one connection between a client and a broker.

    Receive client bytes into ``requests.get_buffer()`` and pass their number to ``client_sent``; forward the bytes that
    it returns. ``responses`` and ``broker_sent`` are the same for broker bytes. ``at`` is the time in microseconds
    since the epoch.
    """

    def __init__(self, connection: CapturedConnection, rules: TapConfig) -> None:
        self.connection = connection
        self.requests = FrameForwarder(rules.frame_limit, at_once=_REQUESTS_AT_ONCE, ends=self._asked)
        self.responses = FrameForwarder(rules.frame_limit, begins=self._answer_begins, ends=self._answered)
        self._rules = rules
        self._exchanges = ExchangeBuilder(connection, _WAITING, rules.catalog, frames=_WAITING_FRAMES)
        self._changing: tuple[int, int] | None = None
        self._at = 0
        self._observed: list[Item] = []

    @property
    def full(self) -> bool:
        """Whether reading requests should pause until responses have arrived.

        This is False if a direction is forwarded without being parsed, because responses are then no longer observed.
        """
        if self.requests.error or self.responses.error:
            return False
        count, size = self._exchanges.unanswered
        return count >= _IN_FLIGHT or size > self._rules.in_flight

    def client_sent(self, count: int, at: int) -> ForwardResult:
        """Process the next client bytes; return the bytes to forward to the broker, and the new items."""
        return self._received(self.requests, REQUEST, count, at)

    def broker_sent(self, count: int, at: int) -> ForwardResult:
        """Process the next broker bytes; return the bytes to forward to the client, and the new items."""
        return self._received(self.responses, RESPONSE, count, at)

    def close(self, at: int) -> list[Item]:
        """Return faults for incomplete frames and unanswered requests at the end of the connection."""
        self._observed += self._exchanges.close()
        for inflow, direction in ((self.requests, REQUEST), (self.responses, RESPONSE)):
            if inflow.incomplete:
                reason = f"the connection ended after {inflow.incomplete} bytes of a frame"
                self._observed.append(self._fault(FaultKind.GAP, reason, inflow.incomplete, direction, at))
        return self._known()

    def _received(self, inflow: FrameForwarder, direction: Direction, count: int, at: int) -> ForwardResult:
        self._at = at
        readable = inflow.error is None
        pieces = inflow.buffer_updated(count)
        if readable and inflow.error is not None:
            reason = f"{inflow.error}; from here on, the bytes of this direction are passed on unread"
            self._observed.append(self._fault(FaultKind.UNRECOGNISED, reason, 0, direction, at))
        return ForwardResult(pieces, self._known())

    def _known(self) -> list[Item]:
        observed, self._observed = self._observed, []
        return observed if self._rules.exchanges else []

    def _asked(self, payload: bytes, size: int) -> None:
        self._observed += self._exchanges.add_request(self._frame(payload, size))

    def _answer_begins(self, head: bytes) -> ForwardMode:
        """Hold a response that may require changes."""
        asked = self._exchanges.request_of(read_correlation_id(head)) if len(head) == HEAD_BYTES else None
        if asked is not None and self._changes(asked.api_key, asked.version):
            self._changing = asked.api_key, asked.version
            return ForwardMode.BUFFER
        return ForwardMode.STREAM_AND_COPY if self._rules.exchanges else ForwardMode.STREAM

    def _answered(self, payload: bytes, size: int) -> Buffer | None:
        self._observed += self._exchanges.add_response(self._frame(payload, size))
        changing, self._changing = self._changing, None
        return None if changing is None else self._changed(*changing, payload)

    def _changes(self, api_key: int, version: int) -> bool:
        return bool(self._names_of(api_key, version)) or self._caps(api_key)

    def _caps(self, api_key: int) -> bool:
        return self._rules.cap_versions and api_key == ApiKey.API_VERSIONS

    def _changed(self, api_key: int, version: int, payload: bytes) -> bytes | None:
        """Return the changed response for the client, or None if the response stays unchanged."""
        try:
            frame = decode_response(payload, api_key, version, catalog=self._rules.catalog, options=_AS_IT_IS)
            message = self._ours(frame.message, self._names_of(api_key, version))
            return None if message is frame.message else evolve(frame, message=message).encode()
        except KafkaMsgsError:
            return None

    def _ours(self, message: Response, names: tuple[str, ...]) -> Response:
        if isinstance(message, ApiVersionsResponse):
            return cap_api_versions(message, catalog=self._rules.catalog)
        return rewrite_addresses(message, names, self._rules.translate)

    def _names_of(self, api_key: int, version: int) -> tuple[str, ...]:
        if api_key not in ADDRESS_FIELDS:
            return ()
        cls = (self._rules.catalog or release_catalog()).find(api_key, "response", version)
        return () if cls is None else address_fields(cls, version)

    def _frame(self, payload: bytes, size: int) -> Frame:
        return Frame(size=size, data=payload, missing=size - len(payload), at=self._at, packet=0)

    def _fault(self, kind: FaultKind, reason: str, size: int, direction: Direction, at: int) -> CaptureFault:
        return CaptureFault(kind=kind, reason=reason, size=size, at=at, connection=self.connection, direction=direction)
