"""The server side of a connection, without input or output: received bytes to events, and responses to bytes.

``receive_data`` buffers received bytes, ``next_event`` returns the next event from them, and ``send_response`` returns
bytes to send. Either side may violate the protocol. ``LocalProtocolError`` or ``RemoteProtocolError`` is then raised,
and the state permanently becomes ERROR. A request that cannot be decoded or a response that cannot be encoded does not
break the connection.

The server states and their possible events. Anything else is a protocol error::

    state        event                                             next state
    -----------  ------------------------------------------------  ----------
    OPEN         receive a request                                 OPEN
    OPEN         receive a SaslHandshake of version 0              HANDSHAKE
    OPEN         send the response to the oldest request           OPEN
    HANDSHAKE    send the response to an earlier request           HANDSHAKE
    HANDSHAKE    send the response to the SaslHandshake            TOKENS
    TOKENS       receive a token                                   TOKENS
    TOKENS       send the response to a token                      TOKENS
    TOKENS       end_tokens, at the end of the SASL exchange       OPEN
    any          the end of the client's bytes, between frames     HALF_CLOSED, or CLOSED without unanswered requests
    HALF_CLOSED  send the response to the oldest request           HALF_CLOSED, or CLOSED after the last response
    any          close                                             CLOSED
    any          a protocol error of either side                   ERROR

ERROR has no next state, even after ``close``. While a SaslHandshake or a token has no response, the meaning of the next
frame is unknown, and ``next_event`` returns ``PAUSED``. Kafka does this in
``org.apache.kafka.common.network.KafkaChannel``. The SASL tokens are defined in KIP-43.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions
from kafka_msgs.message import Request, Response
from kafka_msgs.wire.connection_base import Connection, ConnectionState
from kafka_msgs.wire.error_responses import error_response
from kafka_msgs.wire.events import (
    NEED_DATA,
    PAUSED,
    ConnectionClosed,
    NeedData,
    RequestReceived,
    ServerEvent,
    TokenReceived,
    TokensPending,
)
from kafka_msgs.wire.framing import MAX_FRAME_SIZE, join_frames
from kafka_msgs.wire.headers import looks_like_request, read_correlation_id, read_request_prefix
from kafka_msgs.wire.negotiation import response_version
from kafka_msgs.wire.payloads import encode_response, payload_needs_response

__all__ = ["ServerConnection"]

_OPEN: Final = ConnectionState.OPEN
_HANDSHAKE: Final = ConnectionState.HANDSHAKE
_TOKENS: Final = ConnectionState.TOKENS
_HALF_CLOSED: Final = ConnectionState.HALF_CLOSED
_CLOSED: Final = ConnectionState.CLOSED
_SHORTEST_REQUEST: Final = 8


class ServerConnection(Connection):
    """The server side of a connection from a client.

    ``max_frame_size`` is the maximum request size in bytes, like a broker's ``socket.request.max.bytes``. ``catalog``
    contains the request and response classes (default: the release's), and ``options`` are for decoding requests.

    A server can detect the end of a SASL exchange, and then calls ``end_tokens``. A proxy cannot. With
    ``guess_tokens``, the first frame that looks like a request ends the tokens, and tokens need no response.
    """

    __slots__ = ("_guess_tokens", "_options", "_tokens_waiting", "_waiting")

    def __init__(
        self,
        *,
        max_frame_size: int = MAX_FRAME_SIZE,
        catalog: MessageCatalog | None = None,
        options: CodecOptions = DEFAULT_OPTIONS,
        guess_tokens: bool = False,
    ) -> None:
        super().__init__(max_frame_size=max_frame_size, catalog=catalog)
        self._options = options
        self._guess_tokens = guess_tokens
        self._tokens_waiting = 0
        self._waiting: deque[RequestReceived] = deque()

    @property
    def in_flight(self) -> int:
        """The number of requests that await a response."""
        return len(self._waiting)

    @property
    def oldest(self) -> RequestReceived | None:
        """The next request that requires a response, or None."""
        return self._waiting[0] if self._waiting else None

    def next_event(self) -> ServerEvent | NeedData | TokensPending:
        """Return the next event, or ``NEED_DATA``, or ``PAUSED`` if the server must respond first.

        Raises ``RemoteProtocolError``, now and in each later call.
        """
        if self._state is _HANDSHAKE or (self._state is _TOKENS and self._tokens_waiting and not self._guess_tokens):
            return PAUSED
        payload = self._next_payload()
        if payload is None:
            return self._end() if self._ended or self._state is _CLOSED else NEED_DATA
        if self._state is _TOKENS:
            if not (self._guess_tokens and looks_like_request(payload, catalog=self._catalog)):
                self._tokens_waiting += 1
                return TokenReceived(None, payload)
            self.end_tokens()
        return self._request(payload)

    def send_response(
        self, request: RequestReceived, response: Response, *, options: CodecOptions = DEFAULT_OPTIONS
    ) -> bytes:
        """Return the bytes of the response to a request, to be sent before the bytes of later calls.

        Responses must be sent in the order of the requests, so ``request`` must be ``oldest``. The response has the
        version of the request. An ApiVersions request of an unknown version has a response of version 0 (KIP-511).
        Raises ``LocalProtocolError``, including for the response of another API. The following errors change nothing,
        and the connection stays usable: ``EncodeError`` and ``UnsupportedVersionError``.
        """
        self._check_turn(request)
        if response.INFO.api_key != request.api_key:
            self._fail_local(f"{response.INFO.name} does not answer a request with the api key {request.api_key}")
        version = response_version(request.api_key, request.version, self._catalog)
        payload = encode_response(response, version, correlation_id=request.correlation_id, options=options)
        return self._answered(payload)

    def send_error(
        self,
        request: RequestReceived,
        error_code: int,
        *,
        error_message: str | None = None,
        throttle_time_ms: int = 0,
    ) -> bytes:
        """Return the bytes of the response that reports the failure of the whole request; see ``error_response``.

        Raises ``LocalProtocolError``, and the errors of ``RequestReceived.message``. For an undecodable request no
        response is possible: close the connection, as brokers do. ``unsupported_api_versions`` builds the response to
        an ApiVersions request of an unknown version.
        """
        self._check_turn(request)
        message: Request[Response] = request.message()
        response = error_response(
            message,
            error_code,
            request.version,
            error_message=error_message,
            throttle_time_ms=throttle_time_ms,
            catalog=self._catalog,
        )
        return self.send_response(request, response)

    def send_payload(self, payload: Buffer) -> bytes:
        """Return the frame of an already encoded response, for example one that a proxy forwards.

        It responds to ``oldest`` and must have its correlation id. Raises ``LocalProtocolError``. A payload that is too
        short for a response raises ``TruncatedError`` and changes nothing.
        """
        self._check_open()
        number = read_correlation_id(payload)
        if self.oldest is None or number != self.oldest.correlation_id:
            self._fail_local(f"the request {number} cannot be answered now: {self._turn()}")
        return self._answered(payload)

    def send_token(self, token: Buffer) -> bytes:
        """Return the bytes of the response to a SASL token. Raises ``LocalProtocolError``."""
        if self._state is not _TOKENS or not self._tokens_waiting:
            self._fail_local("an answer to no token")
        self._tokens_waiting -= 1
        return join_frames(token)

    def end_tokens(self) -> None:
        """End the SASL exchange: requests follow. A waiting token receives no response.

        Raises ``LocalProtocolError`` outside the state TOKENS.
        """
        if self._state is not _TOKENS:
            self._fail_local("there is no SASL exchange to end")
        self._tokens_waiting = 0
        self._state = _OPEN

    def close(self) -> tuple[RequestReceived, ...]:
        """Close this side of the connection; return the unanswered requests. An ERROR state remains."""
        unanswered = tuple(self._waiting)
        self._waiting.clear()
        self._tokens_waiting = 0
        self._close()
        return unanswered

    def _request(self, payload: bytes) -> RequestReceived:
        if len(payload) < _SHORTEST_REQUEST:
            self._fail_remote(f"a request of {len(payload)} bytes, its header alone needs {_SHORTEST_REQUEST}")
        api_key, version, number = read_request_prefix(payload)
        needs = api_key != ApiKey.PRODUCE or payload_needs_response(payload, self._catalog)
        request = RequestReceived(api_key, version, number, payload, needs, self._catalog, self._options)
        if needs:
            self._waiting.append(request)
        if _is_handshake(request):
            self._state = _HANDSHAKE
        return request

    def _check_open(self) -> None:
        if self._error is not None or self._state is _CLOSED:
            self._fail_local("a response cannot be sent")

    def _check_turn(self, request: RequestReceived) -> None:
        self._check_open()
        if self.oldest is not request:
            self._fail_local(f"the request {request.correlation_id} cannot be answered now: {self._turn()}")

    def _turn(self) -> str:
        return "no request waits" if self.oldest is None else f"{self.oldest.correlation_id} is the oldest"

    def _answered(self, payload: Buffer) -> bytes:
        frame = join_frames(payload)
        if _is_handshake(self._waiting.popleft()):
            self._state = _TOKENS
        elif self._state is _HALF_CLOSED and not self._waiting:
            self._state = _CLOSED
        return frame

    def _end(self) -> ConnectionClosed:
        self._state = _HALF_CLOSED if self._waiting else _CLOSED
        return ConnectionClosed()


def _is_handshake(request: RequestReceived) -> bool:
    return request.api_key == ApiKey.SASL_HANDSHAKE and request.version == 0
