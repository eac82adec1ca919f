"""Headers of requests and responses: which header version belongs to which message, and how to read a header.

A flexible request has header version 2, any other request has 1. A flexible response has header version 1, any other
response has 0 (KIP-482). The tables below are the exceptions. They are facts of the protocol and have no other place in
the project. In Kafka, the generated class ``org.apache.kafka.common.message.ApiMessageType`` has the same rules.
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
"""An api that Kafka 4.0 removed."""

_REQUEST_EXCEPTIONS: Final = {(_CONTROLLED_SHUTDOWN, 0): 0}
"""ControlledShutdown version 0 has a header without client id."""

_RESPONSE_EXCEPTIONS: Final[dict[int, int]] = {ApiKey.API_VERSIONS: 0}
"""The header of an ApiVersions response is always version 0: the client does not yet know the broker (KIP-511)."""

_PREFIX: Final = Struct(">hhi")
_CORRELATION_ID: Final = Struct(">i")
_CLIENT_ID_LENGTH: Final = Struct(">h")
_LONGEST_CLIENT_ID: Final = 1024
_OLDEST_WITH_CLIENT_ID: Final = 1


class RequestPrefix(NamedTuple):
    """The eight bytes at the start of every request, for every api and version."""

    api_key: int
    version: int
    correlation_id: int


def read_request_prefix(payload: Buffer) -> RequestPrefix:
    """Return the first eight bytes of the payload of a request; raises ``TruncatedError``."""
    if len(payload) < _PREFIX.size:
        reason = f"api key, version and correlation id need {_PREFIX.size} bytes, {len(payload)} left"
        raise TruncatedError(message="RequestHeader", version=None, path="", offset=0, reason=reason)
    return RequestPrefix._make(_PREFIX.unpack_from(payload))


def read_correlation_id(payload: Buffer) -> int:
    """Return the correlation id that the payload of a response starts with; raises ``TruncatedError``."""
    if len(payload) < _CORRELATION_ID.size:
        reason = f"the correlation id needs {_CORRELATION_ID.size} bytes, {len(payload)} left"
        raise TruncatedError(message="ResponseHeader", version=None, path="", offset=0, reason=reason)
    number: int = _CORRELATION_ID.unpack_from(payload)[0]
    return number


def read_request_header(
    payload: Buffer, *, catalog: MessageCatalog | None = None, options: CodecOptions = DEFAULT_OPTIONS
) -> RequestHeader:
    """Return the header of a request, also of an api or a version that the catalog lacks.

    Such a header is read as the flexible versions of its api suggest, and where that fails, or the api is unknown, as
    header version 1: every later version starts with the same bytes (KIP-482). So a server can answer
    UNSUPPORTED_VERSION, and a proxy can pass on what it does not know. Raises ``DecodeError``.
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
    """Whether the beginning of a frame of ``size`` bytes is the header of a request of a version that is known.

    Nothing else distinguishes a request from other bytes, such as SASL tokens. The api must have the version, and the
    client id must fit into the frame.
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
    """Return the header at the start of a request, and the offset after it; raises ``DecodeError``.

    Header version 0 is only the prefix. Current definitions do not have it any more.
    """
    if version:
        return RequestHeader.read(data, version, options=options)
    api_key, api_version, number = read_request_prefix(data)
    header = RequestHeader(
        request_api_key=api_key, request_api_version=api_version, correlation_id=number, client_id=None
    )
    return header, _PREFIX.size


def encode_request_header(header: RequestHeader, version: int, options: CodecOptions) -> bytes:
    """Return the bytes of a request's header; raises ``EncodeError``."""
    if version:
        return header.encode(version, options=options)
    whole = header.encode(_OLDEST_WITH_CLIENT_ID, options=options)
    return whole[: _PREFIX.size]


def header_version(cls: type[Request[Response] | Response], version: int) -> int:
    """Return the version of the header in front of a request or response of this class at ``version``.

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
    """Return the version of the header of a request. The request may be of a version that the catalog does not have.

    Raises ``UnknownMessageError`` for an api key that the catalog does not have.
    """
    exception = _REQUEST_EXCEPTIONS.get((api_key, version))
    if exception is not None:
        return exception
    return header_version((catalog or release_catalog()).message_class(api_key, "request", version), version)


def response_header_version(api_key: int, version: int, catalog: MessageCatalog | None = None) -> int:
    """Return the version of the header of a response; raises ``UnknownMessageError``."""
    return header_version((catalog or release_catalog()).message_class(api_key, "response", version), version)
