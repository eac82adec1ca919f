"""Lossless decoding and encoding of frame payloads: header and message together.

A decoded frame contains everything: its header with unknown tags, the message, its version, and the trailing bytes. It
also contains the payload, which ``encode`` returns, because Kafka's encoding is not canonical: different bytes can have
equal values. For example, a varint may be longer than necessary, a tag may hold a default, and a null array may have
any negative length. A new or changed frame is encoded from its values.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeVar

from attrs import field, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions, codec_for
from kafka_msgs.codec.options import buffer_bytes
from kafka_msgs.errors import DecodeError, EncodeError, KafkaMsgsError, TrailingDataError, UnsupportedVersionError
from kafka_msgs.message import Message, Request, Response
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.wire.headers import (
    decode_request_header,
    encode_request_header,
    header_version,
    read_request_prefix,
)
from kafka_msgs.wire.negotiation import FALLBACK

__all__ = [
    "RequestFrame",
    "ResponseFrame",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "payload_needs_response",
    "request_needs_response",
]

_F = TypeVar("_F", bound="_Frame")

_VIEWS: Final = CodecOptions(memoryview_records=True, utf8_errors="surrogateescape")


@frozen(kw_only=True)
class _Frame:
    """The common base of requests and responses.

    ``trailing`` contains the bytes after the message. ``options`` are the decoding options, which are used again when a
    frame is encoded from its values.
    """

    message: Message
    trailing: bytes = b""
    options: CodecOptions = field(default=DEFAULT_OPTIONS, eq=False, repr=False)
    _received: bytes | None = field(default=None, init=False, eq=False, repr=False)

    def _body(self, version: int) -> bytes:
        return self.message.encode(version, options=self.options) + self.trailing


@frozen(kw_only=True)
class RequestFrame(_Frame):
    """A request on a connection. ``header`` contains its API key, version, correlation id and client id.

    ``attrs.evolve`` returns a changed frame, without the original payload bytes.
    """

    header: RequestHeader
    message: Request[Response]

    @property
    def version(self) -> int:
        """The version of the message and of its response."""
        return self.header.request_api_version

    def encode(self) -> bytes:
        """Return the payload. For a decoded frame, it is identical to the original payload.

        Raises ``UnsupportedVersionError`` and ``EncodeError`` for a new or changed frame.
        """
        if self._received is not None:
            return self._received
        _check_kind(self.message, Request, self.version)
        version = header_version(type(self.message), self.version)
        return encode_request_header(self.header, version, self.options) + self._body(self.version)


@frozen(kw_only=True)
class ResponseFrame(_Frame):
    """A response on a connection, and the version of its message.

    The version is the version of the request, unless it is an ApiVersions request whose version the broker does not
    support. ``attrs.evolve`` returns a changed frame, without the original payload bytes.
    """

    header: ResponseHeader
    message: Response
    version: int

    def encode(self) -> bytes:
        """Return the payload. For a decoded frame, it is identical to the original payload.

        Raises ``UnsupportedVersionError`` and ``EncodeError`` for a new or changed frame.
        """
        if self._received is not None:
            return self._received
        _check_kind(self.message, Response, self.version)
        version = header_version(type(self.message), self.version)
        return self.header.encode(version, options=self.options) + self._body(self.version)


def decode_request(
    payload: Buffer,
    *,
    catalog: MessageCatalog | None = None,
    options: CodecOptions = DEFAULT_OPTIONS,
    refuse_trailing: bool = False,
) -> RequestFrame:
    """Return the request in a frame payload, decoded with the classes of ``catalog`` (default: the release's).

    Trailing bytes are retained, because brokers accept them. With ``refuse_trailing`` they raise ``TrailingDataError``.
    Raises ``UnknownMessageError``, ``UnsupportedVersionError`` (``read_request_header`` can still read the header) and
    ``DecodeError``.
    """
    data = buffer_bytes(payload)
    api_key, version, _ = read_request_prefix(data)
    cls = (catalog or release_catalog()).message_class(api_key, "request", version)
    codec = codec_for(cls, version, options)
    header, offset = decode_request_header(data, header_version(cls, version), options)
    message, end = codec.read(data, offset)
    trailing = _trailing(data, end, cls, version, refuse=refuse_trailing)
    return _received(RequestFrame(header=header, message=message, trailing=trailing, options=options), data)


def encode_request(
    message: Request[Response],
    version: int,
    *,
    correlation_id: int,
    client_id: str | None = None,
    options: CodecOptions = DEFAULT_OPTIONS,
) -> bytes:
    """Return a frame payload: the header that the request requires, and the request.

    Raises ``UnsupportedVersionError`` and ``EncodeError``, including for a message that is not a request.
    """
    _check_kind(message, Request, version)
    header = RequestHeader(
        request_api_key=message.INFO.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return RequestFrame(header=header, message=message, options=options).encode()


def decode_response(
    payload: Buffer,
    api_key: int,
    version: int,
    *,
    catalog: MessageCatalog | None = None,
    options: CodecOptions = DEFAULT_OPTIONS,
    refuse_trailing: bool = False,
) -> ResponseFrame:
    """Return the response in a frame payload; ``api_key`` and ``version`` are taken from its request.

    ``catalog`` and ``refuse_trailing`` are the same as for ``decode_request``. A broker that does not support the
    version of an ApiVersions request responds with version 0 (KIP-511). An ApiVersions response that cannot be read at
    the request version is therefore also read at version 0. Raises ``UnknownMessageError``, ``UnsupportedVersionError``
    and ``DecodeError``, which refer to the request version.
    """
    data = buffer_bytes(payload)
    classes = catalog or release_catalog()
    try:
        return _response(data, classes, api_key, version, options, refuse_trailing)
    except (DecodeError, UnsupportedVersionError):
        if api_key == ApiKey.API_VERSIONS and version != FALLBACK:
            with suppress(DecodeError, UnsupportedVersionError):
                return _response(data, classes, api_key, FALLBACK, options, refuse_trailing=True)
        raise


def encode_response(
    message: Response, version: int, *, correlation_id: int, options: CodecOptions = DEFAULT_OPTIONS
) -> bytes:
    """Return a frame payload: the header that the response requires, and the response.

    Raises ``UnsupportedVersionError`` and ``EncodeError``, including for a message that is not a response.
    """
    header = ResponseHeader(correlation_id=correlation_id)
    return ResponseFrame(header=header, message=message, version=version, options=options).encode()


def _response(
    data: bytes, classes: MessageCatalog, api_key: int, version: int, options: CodecOptions, refuse_trailing: bool
) -> ResponseFrame:
    cls = classes.message_class(api_key, "response", version)
    codec = codec_for(cls, version, options)
    header, offset = ResponseHeader.read(data, header_version(cls, version), options=options)
    message, end = codec.read(data, offset)
    trailing = _trailing(data, end, cls, version, refuse=refuse_trailing)
    frame = ResponseFrame(header=header, message=message, version=version, trailing=trailing, options=options)
    return _received(frame, data)


def _trailing(data: bytes, end: int, cls: type[Message], version: int, *, refuse: bool) -> bytes:
    left = len(data) - end
    if left and refuse:
        reason = f"{left} bytes left over"
        raise TrailingDataError(message=cls.INFO.name, version=version, path="", offset=end, reason=reason)
    return data[end:] if left else b""


def _received(frame: _F, data: bytes) -> _F:
    object.__setattr__(frame, "_received", data)
    return frame


def _check_kind(message: Message, base: type[Message], version: int) -> None:
    """Refuse arguments that a type checker refuses: a response instead of a request, or data without an API key."""
    if not isinstance(message, base):
        reason = f"a message of type {message.INFO.kind} cannot be sent as a {base.__name__.lower()}"
        raise EncodeError(message=message.INFO.name, version=version, path="", value=message, reason=reason)


def request_needs_response(request: Message) -> bool:
    """Return whether a broker responds to this request: always, except for a Produce with ``acks=0``."""
    info = request.INFO
    return not (info.kind == "request" and info.api_key == ApiKey.PRODUCE and getattr(request, "acks", None) == 0)


def payload_needs_response(payload: Buffer, catalog: MessageCatalog | None = None) -> bool:
    """Return whether a broker responds to the request in this payload.

    Only a Produce is decoded. An undecodable Produce is assumed to have a response. Raises ``TruncatedError`` for a
    payload that is too short for a request.
    """
    if read_request_prefix(payload).api_key != ApiKey.PRODUCE:
        return True
    try:
        return request_needs_response(decode_request(payload, catalog=catalog, options=_VIEWS).message)
    except KafkaMsgsError:
        return True
