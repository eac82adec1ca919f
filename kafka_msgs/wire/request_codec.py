"""The codec of a sent request: it decodes the response, and encodes further requests of the same class and version.

A connection creates a ``RequestCodec`` for each class and version that it sends, and caches it. Sending a request then
requires one lookup, and the constant bytes of its header are built once. A request that was encoded elsewhere is only a
``SentRequest``, because its API and version may be unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import field, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import CodecOptions, codec_for
from kafka_msgs.errors import DecodeError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.wire.headers import encode_request_header, header_version
from kafka_msgs.wire.payloads import ResponseFrame, decode_response

__all__ = ["RequestCodec", "SentRequest"]

_PREFIX_BYTES: Final = 8
_NO_TAGS: Final = 0


@frozen(eq=False)
class SentRequest:
    """The API and version of a request, and the decoder of its response.

    ``catalog`` is None for the release's catalog.
    """

    api_key: int
    version: int
    options: CodecOptions = field(repr=False)
    catalog: MessageCatalog | None = field(repr=False)
    is_handshake: bool = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        handshake = self.api_key == ApiKey.SASL_HANDSHAKE and self.version == 0
        object.__setattr__(self, "is_handshake", handshake)

    def frame(self, payload: bytes) -> ResponseFrame:
        """Return the decoded response.

        Raises ``DecodeError``, and ``UnknownMessageError`` or ``UnsupportedVersionError`` if the API or version is
        unknown.
        """
        return decode_response(payload, self.api_key, self.version, catalog=self.catalog, options=self.options)

    def message(self, payload: bytes) -> Response:
        """Return the message of the response. Trailing bytes are ignored. Raises the errors of ``frame``."""
        return self.frame(payload).message


@frozen(eq=False)
class RequestCodec(SentRequest):
    """A request class at a version, and its response. ``rest`` is the header after the correlation id."""

    rest: bytes = field(repr=False)
    encode: Callable[[Any], bytes] = field(repr=False)
    _decode: Callable[[bytes, int], Response] = field(repr=False)
    _response_header: int = field(repr=False)
    header_size: int = field(init=False, repr=False)
    is_produce: bool = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        object.__setattr__(self, "header_size", _PREFIX_BYTES + len(self.rest))
        object.__setattr__(self, "is_produce", self.api_key == ApiKey.PRODUCE)

    @classmethod
    def of(
        cls,
        request: type[Request[Response]],
        version: int,
        client_id: str | None,
        options: CodecOptions,
        catalog: MessageCatalog | None,
    ) -> RequestCodec:
        """Return the codec of a class at a version.

        Raises ``UnsupportedVersionError`` if the request or the response does not have the version,
        ``UnknownMessageError`` or ``UnknownNameError`` if the response class is missing, and ``EncodeError`` for a
        client id that does not fit its field.
        """
        key = request.INFO.api_key
        encode = codec_for(request, version, options).encode
        response: type[Response]
        response = catalog.message_class(key, "response", version) if catalog else request.response_class()
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=0, client_id=client_id)
        return cls(
            key,
            version,
            options,
            MessageCatalog.of([response], fallback=catalog or release_catalog()),
            encode_request_header(header, header_version(request, version), options)[_PREFIX_BYTES:],
            encode,
            codec_for(response, version, options).decode,
            header_version(response, version),
        )

    def message(self, payload: bytes) -> Response:
        """Return the message of the response. Ordinary responses are decoded without building a frame."""
        try:
            return self._decode(payload, self._message_start(payload))
        except DecodeError:
            return self.frame(payload).message

    def _message_start(self, payload: bytes) -> int:
        if not self._response_header:
            return 4
        if len(payload) > 4 and payload[4] == _NO_TAGS:
            return 5
        return ResponseHeader.read(payload, self._response_header, options=self.options)[1]
