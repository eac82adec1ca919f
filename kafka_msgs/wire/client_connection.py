"""The client side of a connection, without input or output: requests to bytes, and received bytes to events.

``receive_data`` buffers received bytes, ``next_event`` returns the next event from them, and ``send`` returns bytes to
send. Either side may violate the protocol. ``LocalProtocolError`` or ``RemoteProtocolError`` is then raised, and the
state permanently becomes ERROR. A request that cannot be encoded or a response that cannot be decoded does not break
the connection.

The client states and their possible events. Anything else is a protocol error::

    state      event                                        next state
    ---------  -------------------------------------------  ----------
    OPEN       send a request                               OPEN
    OPEN       send a SaslHandshake of version 0            HANDSHAKE
    OPEN       receive the oldest awaited response          OPEN
    HANDSHAKE  receive an earlier response                  HANDSHAKE
    HANDSHAKE  receive the response of the SaslHandshake    TOKENS
    TOKENS     send a token                                 TOKENS
    TOKENS     receive the response to a token              TOKENS
    TOKENS     send a request, which ends the SASL tokens   OPEN
    any        the end of the connection, between frames    CLOSED
    any        close                                        CLOSED
    any        a protocol error of either side              ERROR

ERROR has no next state, even after ``close``. A broker responds to the requests of a connection in order, so only the
oldest request is awaited. A Produce with ``acks=0`` has no response. The model is
``org.apache.kafka.clients.NetworkClient``; the SASL tokens are defined in KIP-43.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import Any, Final

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions
from kafka_msgs.errors import FrameSizeError
from kafka_msgs.message import Request
from kafka_msgs.wire.connection_base import Connection, ConnectionState
from kafka_msgs.wire.events import (
    NEED_DATA,
    ClientEvent,
    ConnectionClosed,
    NeedData,
    NoResponse,
    ResponseReceived,
    TokenReceived,
)
from kafka_msgs.wire.framing import MAX_FRAME_SIZE, join_frames
from kafka_msgs.wire.headers import read_request_prefix
from kafka_msgs.wire.payloads import payload_needs_response, request_needs_response
from kafka_msgs.wire.request_codec import RequestCodec, SentRequest

__all__ = ["ClientConnection"]

_OPEN: Final = ConnectionState.OPEN
_TOKENS: Final = ConnectionState.TOKENS
_START: Final = Struct(">ihhi")
"""Frame size, API key, version and correlation id: the start of every request."""
_CORRELATION_ID: Final = Struct(">i")
_LARGEST_ID: Final = 2**31 - 1


class ClientConnection(Connection):
    """The client side of a connection to a broker.

    ``client_id`` is sent in the header of each request. ``max_frame_size`` is the maximum frame size in bytes, for
    requests and responses. ``catalog`` contains the response classes (default: the response class of each request
    class).
    """

    __slots__ = ("_client_id", "_exchanges", "_number", "_ready", "_waiting")

    def __init__(
        self,
        *,
        client_id: str | None = None,
        max_frame_size: int = MAX_FRAME_SIZE,
        catalog: MessageCatalog | None = None,
    ) -> None:
        super().__init__(max_frame_size=max_frame_size, catalog=catalog)
        self._client_id = client_id
        self._number = 0
        self._exchanges: dict[tuple[Any, ...], RequestCodec] = {}
        # Correlation id, opaque and codec of in-flight requests, oldest first. A token has no codec.
        self._waiting: deque[tuple[int, Any, SentRequest | None]] = deque()
        self._ready: deque[NoResponse] = deque()

    @property
    def in_flight(self) -> int:
        """The number of requests and tokens that await a response."""
        return len(self._waiting)

    def send(
        self, request: Request[Any], version: int, *, opaque: object = None, options: CodecOptions = DEFAULT_OPTIONS
    ) -> bytes:
        """Return the bytes of a request, to be sent before the bytes of later calls. Its event will have ``opaque``.

        ``options`` are the codec options for the request and its response. Raises ``LocalProtocolError`` if the state
        does not allow a request. The following errors change nothing, and the connection stays usable: ``EncodeError``,
        ``UnsupportedVersionError``, ``UnknownMessageError`` if the response class is missing, and ``FrameSizeError``
        for a request above the limit.
        """
        if self._state is not _OPEN and self._state is not _TOKENS:
            self._fail_local("a request cannot be sent")
        key = (request.__class__, version) if options is DEFAULT_OPTIONS else (request.__class__, version, options)
        exchange = self._exchanges.get(key) or self._learn(key, request.__class__, version, options)
        body = exchange.encode(request)
        size = exchange.header_size + len(body)
        if size > self._max_frame_size:
            raise FrameSizeError(size=size, limit=self._max_frame_size)
        number = self._number = (self._number + 1) & _LARGEST_ID
        self._ask(number, opaque, exchange, needs_response=not exchange.is_produce or request_needs_response(request))
        return b"".join((_START.pack(size, exchange.api_key, version, number), exchange.rest, body))

    def send_payload(self, payload: Buffer, *, opaque: object = None, options: CodecOptions = DEFAULT_OPTIONS) -> bytes:
        """Return the frame of an already encoded request, for example one that a proxy forwards.

        The payload is unchanged, so its response has the same correlation id. The API and the version may be unknown.
        ``options`` are for decoding the response. Raises ``LocalProtocolError``. The following errors change nothing:
        ``TruncatedError`` for a payload that is too short for a request, and ``FrameSizeError``.
        """
        if self._state is not _OPEN and self._state is not _TOKENS:
            self._fail_local("a request cannot be sent")
        prefix = read_request_prefix(payload)
        frame = join_frames(payload, limit=self._max_frame_size)
        asked = SentRequest(prefix.api_key, prefix.version, options, self._catalog)
        needs_response = prefix.api_key != ApiKey.PRODUCE or payload_needs_response(payload, self._catalog)
        self._ask(prefix.correlation_id, opaque, asked, needs_response=needs_response)
        return frame

    def send_token(self, token: Buffer, *, opaque: object = None) -> bytes:
        """Return the bytes of a SASL token, which is sent without a header after a SaslHandshake of version 0 (KIP-43).

        Its event will have ``opaque``. A token followed by a request has no response, like the last token of GSSAPI.
        Raises ``LocalProtocolError`` and ``FrameSizeError``.
        """
        if self._state is not _TOKENS:
            self._fail_local("a token without a header follows only the response of a SaslHandshake of version 0")
        frame = join_frames(token, limit=self._max_frame_size)
        self._waiting.append((0, opaque, None))
        return frame

    def next_event(self) -> ClientEvent | NeedData:
        """Return the next event, or ``NEED_DATA``. Raises ``RemoteProtocolError``, now and in each later call."""
        if self._ready:
            return self._ready.popleft()
        payload = self._next_payload()
        if payload is None:
            return self._end() if self._ended or self._state is ConnectionState.CLOSED else NEED_DATA
        if not self._waiting:
            self._fail_remote("a response to no request")
        number, opaque, asked = self._waiting[0]
        if asked is None:
            self._waiting.popleft()
            return TokenReceived(opaque, payload)
        if len(payload) < _CORRELATION_ID.size:
            self._fail_remote(
                f"a response of {len(payload)} bytes, its correlation id alone needs {_CORRELATION_ID.size}"
            )
        (found,) = _CORRELATION_ID.unpack_from(payload)
        if found != number:
            self._fail_remote(f"the response has the correlation id {found}, the oldest request has {number}")
        self._waiting.popleft()
        if asked.is_handshake:
            self._state = _TOKENS
        return ResponseReceived(opaque, asked.api_key, asked.version, number, payload, asked)

    def close(self) -> tuple[NoResponse, ...]:
        """Close this side of the connection; return all unanswered requests in order. An ERROR state remains."""
        self._abandon(expected=False)
        unanswered = tuple(self._ready)
        self._ready.clear()
        self._close()
        return unanswered

    def _learn(
        self, key: tuple[Any, ...], request: type[Request[Any]], version: int, options: CodecOptions
    ) -> RequestCodec:
        made = self._exchanges[key] = RequestCodec.of(request, version, self._client_id, options, self._catalog)
        return made

    def _ask(self, number: int, opaque: object, asked: SentRequest, *, needs_response: bool) -> None:
        if self._state is _TOKENS:
            self._abandon(expected=True)
            self._state = _OPEN
        if needs_response:
            self._waiting.append((number, opaque, asked))
        else:
            self._ready.append(NoResponse(opaque, expected=True))
        if asked.is_handshake:
            self._state = ConnectionState.HANDSHAKE

    def _abandon(self, *, expected: bool) -> None:
        """Mark all in-flight requests as unanswered."""
        self._ready.extend(NoResponse(opaque, expected) for _, opaque, _ in self._waiting)
        self._waiting.clear()

    def _end(self) -> ClientEvent:
        """Return the next event after the last frame of an ended connection."""
        self._abandon(expected=False)
        if self._ready:
            return self._ready.popleft()
        self._state = ConnectionState.CLOSED
        return ConnectionClosed()
