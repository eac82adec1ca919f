"""The events of ``ClientConnection`` and ``ServerConnection``. All of them are immutable."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.codec import CodecOptions
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.wire.headers import read_request_header
from kafka_msgs.wire.payloads import RequestFrame, ResponseFrame, decode_request
from kafka_msgs.wire.request_codec import SentRequest

__all__ = [
    "NEED_DATA",
    "PAUSED",
    "ClientEvent",
    "ConnectionClosed",
    "NeedData",
    "NoResponse",
    "RequestReceived",
    "ResponseReceived",
    "ServerEvent",
    "TokenReceived",
    "TokensPending",
]


class NeedData(Enum):
    """No further event until ``receive_data`` receives more bytes."""

    NEED_DATA = "NEED_DATA"


class TokensPending(Enum):
    """The next frame is ambiguous until the server has responded to the received frames (SASL, KIP-43)."""

    PAUSED = "PAUSED"


NEED_DATA: Final = NeedData.NEED_DATA
"""The only value of ``NeedData``."""

PAUSED: Final = TokensPending.PAUSED
"""The only value of ``TokensPending``."""


@frozen
class ResponseReceived:
    """The response to a request. It is decoded lazily when ``message`` or ``frame`` is called.

    ``opaque`` is the value passed with the request. ``api_key`` and ``version`` are taken from the request, and
    ``payload`` contains the bytes of the frame: the response header, then the message.
    """

    opaque: Any
    api_key: int
    version: int
    correlation_id: int
    payload: bytes = field(repr=False)
    _asked: SentRequest = field(repr=False, eq=False)

    def message(self) -> Response:
        """Return the decoded response. Trailing bytes are ignored, as in Kafka's clients.

        A broker that does not support the version of an ApiVersions request responds with version 0 and the error code
        UNSUPPORTED_VERSION (KIP-511). The response of version 0 is then returned. An undecodable response does not
        break the connection. Raises ``DecodeError``. For a request that was sent as a payload it also raises
        ``UnknownMessageError`` and ``UnsupportedVersionError``.
        """
        return self._asked.message(self.payload)

    def frame(self) -> ResponseFrame:
        """Return the decoded response with its header, its version, and the trailing bytes.

        Raises the errors of ``message``.
        """
        return self._asked.frame(self.payload)


@frozen
class RequestReceived:
    """A request from a client. It is decoded lazily when ``message``, ``frame`` or ``header`` is called.

    ``payload`` contains the bytes of the frame: the request header, then the message. The API or the version may be
    unknown. ``needs_response`` is False only for a Produce with ``acks=0``.
    """

    api_key: int
    version: int
    correlation_id: int
    payload: bytes = field(repr=False)
    needs_response: bool
    _catalog: MessageCatalog | None = field(repr=False, eq=False)
    _options: CodecOptions = field(repr=False, eq=False)

    def message(self) -> Request[Response]:
        """Return the decoded request. Trailing bytes are ignored, as in Kafka's brokers.

        An undecodable request does not break the connection. Raises ``UnknownMessageError``,
        ``UnsupportedVersionError`` and ``DecodeError``.
        """
        return self.frame().message

    def frame(self) -> RequestFrame:
        """Return the decoded request with its header and the trailing bytes. Raises the errors of ``message``."""
        return decode_request(self.payload, catalog=self._catalog, options=self._options)

    def header(self) -> RequestHeader:
        """Return the header, even for an unknown API or version. Raises ``DecodeError``."""
        return read_request_header(self.payload, catalog=self._catalog, options=self._options)


@frozen
class TokenReceived:
    """A SASL token without a header, after a SaslHandshake of version 0 (KIP-43).

    On a client, ``opaque`` is the value passed with the client token to which this token responds. On a server it is
    None.
    """

    opaque: Any
    token: bytes = field(repr=False)


@frozen
class NoResponse:
    """A request or token without a response. ``opaque`` is the value passed with it.

    ``expected`` is True for requests that never have a response: a Produce with ``acks=0``, or the last token of a SASL
    exchange. They are reported immediately after sending. ``expected`` is False if the connection ended before the
    response.
    """

    opaque: Any
    expected: bool


@frozen
class ConnectionClosed:
    """The end of the connection: the last event, after the other side's last byte or after ``close``."""


ClientEvent: TypeAlias = ResponseReceived | TokenReceived | NoResponse | ConnectionClosed
"""The events that ``ClientConnection.next_event`` returns, besides ``NEED_DATA``."""

ServerEvent: TypeAlias = RequestReceived | TokenReceived | ConnectionClosed
"""The events that ``ServerConnection.next_event`` returns, besides ``NEED_DATA`` and ``PAUSED``."""
