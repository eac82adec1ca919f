"""Reading and changing individual fields of a payload, while all other bytes stay unchanged in their original encoding.

A proxy needs this to change an address or an id and forward everything else. Header fields are replaced in place.
Message fields are found with the message definition: ``kafka_msgs.codec.field_access`` reads and changes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from struct import Struct
from typing import Final

from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import Buffer, CodecOptions
from kafka_msgs.codec.field_access import Edit, Patch, Peek
from kafka_msgs.codec.options import buffer_bytes
from kafka_msgs.errors import EncodeError, UnknownMessageError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.wire.headers import (
    decode_request_header,
    header_version,
    read_correlation_id,
    read_request_prefix,
    request_header_version,
)

__all__ = [
    "Edit",
    "patch_request",
    "patch_response",
    "peek_request",
    "peek_response",
    "renumber_response",
    "replace_client_id",
    "replace_correlation_id",
]

_OPTIONS: Final = CodecOptions(utf8_errors="surrogateescape")
_CORRELATION_ID: Final = Struct(">i")
_CLIENT_ID_LENGTH: Final = Struct(">h")
_CLIENT_ID_AT: Final = 8
_LONGEST_CLIENT_ID: Final = 2**15 - 1


def replace_correlation_id(payload: Buffer, correlation_id: int) -> bytes:
    """Return a request payload with another correlation id. Raises ``TruncatedError``.

    A proxy needs this to send the requests of several clients on one connection.
    """
    read_request_prefix(payload)
    data = buffer_bytes(payload)
    return b"".join((data[:4], _CORRELATION_ID.pack(correlation_id), data[_CLIENT_ID_AT:]))


def renumber_response(payload: Buffer, correlation_id: int) -> bytes:
    """Return a response payload with another correlation id. Raises ``TruncatedError``."""
    read_correlation_id(payload)
    return _CORRELATION_ID.pack(correlation_id) + buffer_bytes(payload)[_CORRELATION_ID.size :]


def replace_client_id(payload: Buffer, client_id: str | None, *, catalog: MessageCatalog | None = None) -> bytes:
    """Return a request payload with another client id.

    Every header has the client id at the same position, except header version 0, which has none and is returned
    unchanged. Raises ``DecodeError``, and ``EncodeError`` for a client id of more than 32,767 bytes.
    """
    data = buffer_bytes(payload)
    api_key, version, _ = read_request_prefix(data)
    with suppress(UnknownMessageError):
        if not request_header_version(api_key, version, catalog):
            return data
    _, end = decode_request_header(data, 1, _OPTIONS)
    name = b"" if client_id is None else client_id.encode("utf-8", "surrogateescape")
    if len(name) > _LONGEST_CLIENT_ID:
        reason = f"{len(name)} bytes of UTF-8, at most {_LONGEST_CLIENT_ID} are allowed"
        raise EncodeError(message="RequestHeader", version=None, path="client_id", value=client_id, reason=reason)
    length = -1 if client_id is None else len(name)
    return b"".join((data[:_CLIENT_ID_AT], _CLIENT_ID_LENGTH.pack(length), name, data[end:]))


def patch_request(payload: Buffer, edits: Mapping[str, Edit], *, catalog: MessageCatalog | None = None) -> bytes:
    """Return a request payload with changed fields; see ``patch_response`` for ``edits`` and the errors."""
    data = buffer_bytes(payload)
    cls, version, start = _request_at(data, catalog)
    return Patch(cls, version, edits, options=_OPTIONS)(data, start)


def patch_response(
    payload: Buffer, api_key: int, version: int, edits: Mapping[str, Edit], *, catalog: MessageCatalog | None = None
) -> bytes:
    """Return a response payload with changed fields; ``api_key`` and ``version`` are taken from its request.

    ``edits`` maps paths such as ``brokers[].host`` to functions from value to value; ``kafka_msgs.Patch`` describes
    them. Edits of fields that the version does not have, or of tagged fields that the payload does not contain, are
    skipped. Edits receive text that is not UTF-8 with surrogates, which are written back as the original bytes.

    If no field changes, the original payload is returned. Bytes after the last selected field are not checked. Raises
    ``DecodeError``, ``EncodeError`` for a value that does not fit, ``UnknownMessageError``,
    ``UnsupportedVersionError``, ``UnknownColumnError`` for a path that no version of the message has, and
    ``OptionError`` for overlapping paths.
    """
    data = buffer_bytes(payload)
    cls, start = _response_at(data, api_key, version, catalog)
    return Patch(cls, version, edits, options=_OPTIONS)(data, start)


def peek_request(payload: Buffer, *paths: str, catalog: MessageCatalog | None = None) -> Request[Response]:
    """Return selected fields of a request, as a message whose remaining fields have their defaults.

    See ``kafka_msgs.Peek`` for the paths and the errors.
    """
    data = buffer_bytes(payload)
    cls, version, start = _request_at(data, catalog)
    return Peek(cls, version, *paths, options=_OPTIONS)(data, start)


def peek_response(
    payload: Buffer, api_key: int, version: int, *paths: str, catalog: MessageCatalog | None = None
) -> Response:
    """Return selected fields of a response, as a message whose remaining fields have their defaults.

    ``api_key`` and ``version`` are taken from its request. See ``kafka_msgs.Peek`` for the paths and the errors.
    """
    data = buffer_bytes(payload)
    cls, start = _response_at(data, api_key, version, catalog)
    return Peek(cls, version, *paths, options=_OPTIONS)(data, start)


def _request_at(data: bytes, catalog: MessageCatalog | None) -> tuple[type[Request[Response]], int, int]:
    """Return the class and the version of a request, and the offset of the message."""
    api_key, version, _ = read_request_prefix(data)
    cls: type[Request[Response]] = (catalog or release_catalog()).message_class(api_key, "request", version)
    return cls, version, decode_request_header(data, header_version(cls, version), _OPTIONS)[1]


def _response_at(data: bytes, api_key: int, version: int, catalog: MessageCatalog | None) -> tuple[type[Response], int]:
    """Return the class of a response, and the offset of the message."""
    cls: type[Response] = (catalog or release_catalog()).message_class(api_key, "response", version)
    return cls, ResponseHeader.read(data, header_version(cls, version), options=_OPTIONS)[1]
