"""What happens on a connection: the events of ``ClientConnection`` and ``ServerConnection``. All are immutable."""

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
    """There is no further event until ``receive_data`` gets more bytes."""

    NEED_DATA = "NEED_DATA"


class TokensPending(Enum):
    """The next frame cannot be understood before the server has answered what it received (SASL, KIP-43)."""

    PAUSED = "PAUSED"


NEED_DATA: Final = NeedData.NEED_DATA
"""The only value of ``NeedData``."""

PAUSED: Final = TokensPending.PAUSED
"""The only value of ``TokensPending``."""


@frozen
class ResponseReceived:
    """The response to a request. It is decoded when ``message`` or ``frame`` is called, not before.

    ``opaque`` is the value that was given with the request. ``api_key`` and ``version`` are those of the request, and
    ``payload`` has the bytes of the frame: the header of the response, then the message.
    """

    opaque: Any
    api_key: int
    version: int
    correlation_id: int
    payload: bytes = field(repr=False)
    _asked: SentRequest = field(repr=False, eq=False)

    def message(self) -> Response:
        """Return the decoded response. Bytes after it are ignored, as Kafka's clients ignore them.

        A broker that does not have the version of an ApiVersions request answers in version 0, with the error code
        UNSUPPORTED_VERSION (KIP-511). Then the response of version 0 is returned. The connection itself is not broken
        by a response that cannot be decoded. Raises ``DecodeError``. For a request that was sent as a payload it also
        raises ``UnknownMessageError`` and ``UnsupportedVersionError``.
        """
        return self._asked.message(self.payload)

    def frame(self) -> ResponseFrame:
        """Return the decoded response with its header, its version, and the bytes after it. Raises what ``message``
        raises.
        """
        return self._asked.frame(self.payload)


@frozen
class RequestReceived:
    """A request of a client. It is decoded when ``message``, ``frame`` or ``header`` is called, not before.

    ``payload`` has the bytes of the frame: the header of the request, then the message. The api or the version may be
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
        """Return the decoded request. Bytes after it are ignored, as brokers ignore them.

        Raises ``UnknownMessageError``, ``UnsupportedVersionError`` and ``DecodeError``. The connection itself is not
        broken by a request that cannot be decoded.
        """
        return self.frame().message

    def frame(self) -> RequestFrame:
        """Return the decoded request with its header and the bytes after it. Raises what ``message`` raises."""
        return decode_request(self.payload, catalog=self._catalog, options=self._options)

    def header(self) -> RequestHeader:
        """Return the header, also of an unknown api or version. Raises ``DecodeError``."""
        return read_request_header(self.payload, catalog=self._catalog, options=self._options)


@frozen
class TokenReceived:
    """A SASL token without a header, after a SaslHandshake of version 0 (KIP-43).

    ``opaque`` is the value that the client gave with the token that this one answers. It is None on a server.
    """

    opaque: Any
    token: bytes = field(repr=False)


@frozen
class NoResponse:
    """A request or token that gets no response. ``opaque`` is the value that was given with it.

    ``expected`` is True if this is as it should be: a Produce with ``acks=0``, or the last token of a SASL exchange.
    Such a request is unanswered as soon as it was sent. ``expected`` is False if the connection ended before the
    response.
    """

    opaque: Any
    expected: bool


@frozen
class ConnectionClosed:
    """The other side sends nothing more, or this side has called ``close``. No other event follows."""


ClientEvent: TypeAlias = ResponseReceived | TokenReceived | NoResponse | ConnectionClosed
"""What ``ClientConnection.next_event`` returns, besides ``NEED_DATA``."""

ServerEvent: TypeAlias = RequestReceived | TokenReceived | ConnectionClosed
"""What ``ServerConnection.next_event`` returns, besides ``NEED_DATA`` and ``PAUSED``."""
