"""One proxied connection: the bytes to forward in each direction, and the observed exchanges.

This module does no input or output. The bytes of each direction are received into its ``FrameForwarder``, and forwarded
as views of that buffer. They are unchanged, except in responses with broker addresses, and in ApiVersions responses if
versions are capped. Only such a response is held until it is complete. Bytes that are not a frame, or cannot be
decoded, are forwarded unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Final, Literal, NamedTuple

from attrs import evolve, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.capture.connections import CapturedConnection
from kafka_msgs.capture.exchange_builder import ExchangeBuilder, Item
from kafka_msgs.capture.faults import REQUEST, RESPONSE, CaptureFault, Direction, FaultKind
from kafka_msgs.capture.resync import Frame
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Response
from kafka_msgs.messages.api_versions_response import ApiVersionsResponse
from kafka_msgs.tap.addons import Addon, CloseMode, TapExchange
from kafka_msgs.tap.address_rewriting import ADDRESS_FIELDS, Translate, address_fields, rewrite_addresses
from kafka_msgs.tap.frame_forwarder import HEAD_BYTES, ForwardMode, FrameForwarder, Pause, Piece
from kafka_msgs.wire import (
    MAX_FRAME_SIZE,
    cap_api_versions,
    decode_response,
    join_frames,
    looks_like_request,
    read_correlation_id,
)

__all__ = ["ForwardResult", "TapConfig", "TapConnection"]

_AS_IT_IS: Final = CodecOptions(memoryview_records=True, utf8_errors="surrogateescape")
_WAITING: Final = 128 * 2**20
_IN_FLIGHT: Final = 1_000
_REQUESTS_AT_ONCE: Final = 2**15
_WAITING_FRAMES: Final = 4_096
"""More than the in-flight limit plus the small requests of one read, so that no waiting frame is dropped."""
_API_KEY: Final = Struct(">h")


@frozen(kw_only=True)
class TapConfig:
    """The changes and limits of a proxy.

    ``translate`` maps the address of a broker to the proxy's address for it. ``cap_versions`` removes APIs and versions
    that the catalog lacks from ApiVersions responses. ``frame_limit`` is the maximum size in bytes of a buffered frame;
    from a larger frame on, a direction is forwarded without being parsed. ``in_flight`` limits the bytes of in-flight
    requests; above it, or with 1,000 in-flight requests, ``TapConnection.full`` is True. Without ``exchanges``, only
    faults are reported, and unchanged responses are not buffered. ``addons`` receive requests and responses, in order.
    """

    translate: Translate
    cap_versions: bool = False
    frame_limit: int = MAX_FRAME_SIZE
    in_flight: int = 16 * 2**20
    catalog: MessageCatalog | None = None
    exchanges: bool = True
    addons: tuple[Addon, ...] = ()


class ForwardResult(NamedTuple):
    """The pieces to forward in order, valid until the next bytes are received, and the new items.

    ``answers`` are pieces for the sender: responses of addons. ``close`` is set if an addon ends the connection.
    """

    pieces: list[Piece]
    items: list[Item]
    answers: Sequence[Piece] = ()
    close: CloseMode = "open"

    @property
    def data(self) -> bytes:
        """A copy of the bytes of all pieces, without pauses."""
        return b"".join(piece for piece in self.pieces if not isinstance(piece, Pause))


class TapConnection:
    """The two directions of one connection between a client and a broker.

    Receive client bytes into ``requests.get_buffer()`` and pass their number to ``client_sent``; forward the bytes that
    it returns. ``responses`` and ``broker_sent`` are the same for broker bytes. ``at`` is the time in microseconds
    since the epoch.
    """

    def __init__(self, connection: CapturedConnection, rules: TapConfig) -> None:
        self.connection = connection
        begins = self._request_begins if rules.addons else None
        self.requests = FrameForwarder(rules.frame_limit, at_once=_REQUESTS_AT_ONCE, begins=begins, ends=self._asked)
        self.responses = FrameForwarder(rules.frame_limit, begins=self._answer_begins, ends=self._answered)
        self._rules = rules
        self._exchanges = ExchangeBuilder(connection, _WAITING, rules.catalog, frames=_WAITING_FRAMES)
        self._changing: tuple[int, int] | None = None
        self._at = 0
        self._observed: list[Item] = []
        self._hooked: dict[int, TapExchange] = {}
        self._answers: deque[tuple[int, tuple[Piece, ...]]] = deque()
        self._due: list[Piece] = []
        self._responses = 0
        self._close: CloseMode = "open"
        for addon in rules.addons:
            self._call(addon, "connected", connection)

    @property
    def held(self) -> int:
        """The approximate memory use in bytes."""
        return self.requests.held + self.responses.held + self._exchanges.held

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
            inflow.release()
        for addon in self._rules.addons:
            self._call(addon, "closed", self.connection)
        self._hooked.clear()
        return self._known()

    def _received(self, inflow: FrameForwarder, direction: Direction, count: int, at: int) -> ForwardResult:
        self._at = at
        readable = inflow.error is None
        pieces = inflow.buffer_updated(count)
        if readable and inflow.error is not None:
            reason = f"{inflow.error}; from here on, the bytes of this direction are passed on unread"
            self._observed.append(self._fault(FaultKind.UNRECOGNISED, reason, 0, direction, at))
        due, self._due = self._due, []
        return ForwardResult(pieces, self._known(), due, self._close)

    def _known(self) -> list[Item]:
        observed, self._observed = self._observed, []
        if self._rules.exchanges:
            return observed
        return [item for item in observed if isinstance(item, CaptureFault) and item.kind is FaultKind.PROXY]

    def _request_begins(self, head: bytes) -> ForwardMode:
        """Hold a request that an addon wants to receive."""
        wanted = len(head) == HEAD_BYTES and self._wanted("request", _API_KEY.unpack_from(head)[0])
        return ForwardMode.BUFFER if wanted else ForwardMode.STREAM_AND_COPY

    def _asked(self, payload: bytes, size: int) -> tuple[Piece, ...] | None:
        exchange = self._hooked_exchange(payload) if self._rules.addons else None
        if exchange is None:
            self._observed += self._exchanges.add_request(self._frame(payload, size))
            return None
        self._run_hooks("request", exchange)
        outcome = exchange.take_outcome()
        self._close = outcome.close
        if outcome.pieces == ():
            self._answered_by_addon(exchange, outcome.answer)
            return outcome.pieces
        if self._wanted("response", exchange.api_key):
            self._hooked[exchange.correlation_id] = exchange
        payload = exchange.request_payload
        self._observed += self._exchanges.add_request(self._frame(payload, len(payload)))
        return outcome.pieces

    def _hooked_exchange(self, payload: bytes) -> TapExchange | None:
        """Return the exchange for the addons that want a request or its response, or None without such addons."""
        if not looks_like_request(payload, catalog=self._rules.catalog):
            return None
        api_key = _API_KEY.unpack_from(payload)[0]
        if not (self._wanted("request", api_key) or self._wanted("response", api_key)):
            return None
        return TapExchange(self.connection, payload, self._rules.catalog)

    def _wanted(self, hook: Literal["request", "response"], api_key: int) -> bool:
        return any(addon.wants(hook, api_key) for addon in self._rules.addons)

    def _run_hooks(self, hook: Literal["request", "response"], exchange: TapExchange) -> None:
        for addon in self._rules.addons:
            if addon.wants(hook, exchange.api_key) and not exchange.dropped:
                before = exchange.snapshot()
                if not self._call(addon, hook, exchange):
                    exchange.restore(before)

    def _call(self, addon: Addon, hook: str, argument: TapExchange | CapturedConnection) -> bool:
        """Call a hook, and return whether it succeeded. Its errors are reported, because addons are users' code."""
        try:
            getattr(addon, hook)(argument)
        except Exception as error:
            reason = f"the hook {hook} of the addon {type(addon).__name__} failed: {type(error).__name__}: {error}"
            self._observed.append(self._fault(FaultKind.PROXY, reason, 0, None, self._at))
            return False
        return True

    def _answered_by_addon(self, exchange: TapExchange, answer: tuple[Piece, ...]) -> None:
        """Send the response of an addon after the responses to all earlier requests."""
        request = self._frame(exchange.request_payload, len(exchange.request_payload))
        payload = exchange.response_payload
        response = None if payload is None else self._frame(payload, len(payload))
        self._observed.append(self._exchanges.exchange_of(request, response))
        waiting = self._exchanges.unanswered[0]
        if not waiting:
            self._due += answer
        elif answer:
            self._answers.append((self._responses + waiting, answer))

    def _answer_begins(self, head: bytes) -> ForwardMode:
        """Hold a response that may require changes."""
        asked = self._exchanges.request_of(read_correlation_id(head)) if len(head) == HEAD_BYTES else None
        if asked is not None and self._changes(asked.api_key, asked.version):
            self._changing = asked.api_key, asked.version
            return ForwardMode.BUFFER
        if asked is not None and asked.correlation_id in self._hooked:
            return ForwardMode.BUFFER
        return ForwardMode.STREAM_AND_COPY if self._rules.exchanges else ForwardMode.STREAM

    def _answered(self, payload: bytes, size: int) -> tuple[Piece, ...] | None:
        self._observed += self._exchanges.add_response(self._frame(payload, size))
        changing, self._changing = self._changing, None
        changed = None if changing is None else self._changed(*changing, payload)
        pieces: tuple[Piece, ...] | None = None if changed is None else (join_frames(changed),)
        if self._rules.addons:
            pieces = self._hooked_response(payload if changed is None else changed, pieces)
            self._insert_answers()
        return pieces

    def _hooked_response(self, payload: bytes, pieces: tuple[Piece, ...] | None) -> tuple[Piece, ...] | None:
        exchange = self._hooked.pop(read_correlation_id(payload), None) if len(payload) >= HEAD_BYTES else None
        if exchange is None:
            return pieces
        exchange.receive_response(payload)
        self._run_hooks("response", exchange)
        outcome = exchange.take_outcome()
        self._close = outcome.close
        return pieces if outcome.pieces is None else outcome.pieces

    def _insert_answers(self) -> None:
        """Insert the responses of addons whose turn has come."""
        self._responses += 1
        while self._answers and (self._answers[0][0] <= self._responses or not self._exchanges.unanswered[0]):
            self.responses.insertions += self._answers.popleft()[1]

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

    def _fault(self, kind: FaultKind, reason: str, size: int, direction: Direction | None, at: int) -> CaptureFault:
        return CaptureFault(kind=kind, reason=reason, size=size, at=at, connection=self.connection, direction=direction)
