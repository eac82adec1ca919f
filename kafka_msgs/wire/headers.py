"""Headers of requests and responses: the header version of each message, and reading headers.

A flexible request has header version 2, any other request has 1. A flexible response has header version 1, any other
response has 0 (KIP-482). The tables below contain the exceptions, which are facts of the protocol and occur nowhere
else in the project. In Kafka, the generated class ``org.apache.kafka.common.message.ApiMessageType`` has the same
rules.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions
from kafka_msgs.codec.options import buffer_bytes
from kafka_msgs.errors import DecodeError, TruncatedError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.request_header import RequestHeader

__all__ = [
    "RequestPrefix",
    "decode_request_header",
    "encode_request_header",
    "header_version",
    "looks_like_request",
    "read_correlation_id",
    "read_request_header",
    "read_request_prefix",
    "request_header_version",
    "response_header_version",
]

_CONTROLLED_SHUTDOWN: Final = 7
"""An API that Kafka 4.0 removed."""

_REQUEST_EXCEPTIONS: Final = {(_CONTROLLED_SHUTDOWN, 0): 0}
"""ControlledShutdown version 0 has a header without a client id."""

_RESPONSE_EXCEPTIONS: Final[dict[int, int]] = {ApiKey.API_VERSIONS: 0}
"""An ApiVersions response always has header version 0, because the client does not yet know the broker (KIP-511)."""

_PREFIX: Final = Struct(">hhi")
_CORRELATION_ID: Final = Struct(">i")
_CLIENT_ID_LENGTH: Final = Struct(">h")
_LONGEST_CLIENT_ID: Final = 1024
_OLDEST_WITH_CLIENT_ID: Final = 1


class RequestPrefix(NamedTuple):
    """The first eight bytes of every request, for every API and version."""

    api_key: int
    version: int
    correlation_id: int


def read_request_prefix(payload: Buffer) -> RequestPrefix:
    """Return the first eight bytes of a request payload. Raises ``TruncatedError``."""
    if len(payload) < _PREFIX.size:
        reason = f"api key, version and correlation id need {_PREFIX.size} bytes, {len(payload)} left"
        raise TruncatedError(message="RequestHeader", version=None, path="", offset=0, reason=reason)
    return RequestPrefix._make(_PREFIX.unpack_from(payload))


def read_correlation_id(payload: Buffer) -> int:
    """Return the correlation id at the start of a response payload. Raises ``TruncatedError``."""
    if len(payload) < _CORRELATION_ID.size:
        reason = f"the correlation id needs {_CORRELATION_ID.size} bytes, {len(payload)} left"
        raise TruncatedError(message="ResponseHeader", version=None, path="", offset=0, reason=reason)
    number: int = _CORRELATION_ID.unpack_from(payload)[0]
    return number


def read_request_header(
    payload: Buffer, *, catalog: MessageCatalog | None = None, options: CodecOptions = DEFAULT_OPTIONS
) -> RequestHeader:
    """Return the header of a request, even for an API or version that the catalog lacks.

    An unknown version is read according to the flexible versions of its API. If that fails, or the API is unknown, the
    header is read as version 1: every later version starts with the same bytes (KIP-482). A server can then respond
    with UNSUPPORTED_VERSION, and a proxy can forward unknown requests. Raises ``DecodeError``.
    """
    data = buffer_bytes(payload)
    api_key, version, _ = read_request_prefix(data)
    cls = (catalog or release_catalog()).find(api_key, "request", version)
    expected = _REQUEST_EXCEPTIONS.get((api_key, version), _OLDEST_WITH_CLIENT_ID)
    if cls is not None:
        expected = header_version(cls, version)
    try:
        return decode_request_header(data, expected, options)[0]
    except DecodeError:
        if expected <= _OLDEST_WITH_CLIENT_ID or (cls is not None and version in cls.INFO.versions):
            raise
        return decode_request_header(data, _OLDEST_WITH_CLIENT_ID, options)[0]


def looks_like_request(payload: Buffer, size: int | None = None, catalog: MessageCatalog | None = None) -> bool:
    """Return whether a frame of ``size`` bytes starts with a request header of a known version.

    Only the header distinguishes a request from other bytes, such as SASL tokens. The API must have the version, and
    the client id must fit into the frame.
    """
    size = len(payload) if size is None else size
    if len(payload) < _PREFIX.size + _CLIENT_ID_LENGTH.size:
        return False
    api_key, version, _ = read_request_prefix(payload)
    cls = (catalog or release_catalog()).find(api_key, "request", version)
    if cls is None or version not in cls.INFO.versions:
        return False
    length: int = _CLIENT_ID_LENGTH.unpack_from(payload, _PREFIX.size)[0]
    return -1 <= length <= min(_LONGEST_CLIENT_ID, size - _PREFIX.size - _CLIENT_ID_LENGTH.size)


def decode_request_header(data: bytes, version: int, options: CodecOptions) -> tuple[RequestHeader, int]:
    """Return the header at the start of a request, and the offset after it. Raises ``DecodeError``.

    Header version 0 consists only of the prefix. Current definitions no longer contain it.
    """
    if version:
        return RequestHeader.read(data, version, options=options)
    api_key, api_version, number = read_request_prefix(data)
    header = RequestHeader(
        request_api_key=api_key, request_api_version=api_version, correlation_id=number, client_id=None
    )
    return header, _PREFIX.size


def encode_request_header(header: RequestHeader, version: int, options: CodecOptions) -> bytes:
    """Return the bytes of a request header. Raises ``EncodeError``."""
    if version:
        return header.encode(version, options=options)
    whole = header.encode(_OLDEST_WITH_CLIENT_ID, options=options)
    return whole[: _PREFIX.size]


def header_version(cls: type[Request[Response] | Response], version: int) -> int:
    """Return the header version of a request or response of this class at ``version``.

    If the definition states the header version, that version is returned. For all other messages the rule and the
    exceptions above apply.
    """
    info = cls.INFO
    for versions, stated in info.header_versions:
        if version in versions:
            return stated
    flexible = version in info.flexible
    if info.kind == "response":
        return _RESPONSE_EXCEPTIONS.get(info.api_key, 1 if flexible else 0)
    return _REQUEST_EXCEPTIONS.get((info.api_key, version), 2 if flexible else 1)


def request_header_version(api_key: int, version: int, catalog: MessageCatalog | None = None) -> int:
    """Return the header version of a request. The catalog need not contain the request version.

    Raises ``UnknownMessageError`` for an API key that the catalog does not have.
    """
    exception = _REQUEST_EXCEPTIONS.get((api_key, version))
    if exception is not None:
        return exception
    return header_version((catalog or release_catalog()).message_class(api_key, "request", version), version)


def response_header_version(api_key: int, version: int, catalog: MessageCatalog | None = None) -> int:
    """Return the header version of a response. Raises ``UnknownMessageError``."""
    return header_version((catalog or release_catalog()).message_class(api_key, "response", version), version)
