"""Payloads of frames: header and message together, both ways."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Final, NamedTuple

from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions, codec_for
from kafka_msgs.codec.options import as_bytes
from kafka_msgs.errors import DecodeError, TruncatedError
from kafka_msgs.lookup import message_class
from kafka_msgs.message import Message
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.wire.headers import request_header_version, response_header_version

__all__ = ["Request", "Response", "decode_request", "decode_response", "encode_request", "encode_response"]

_API_VERSIONS: Final = 18


class Request(NamedTuple):
    """A request's header and message; the version is ``header.request_api_version``."""

    header: RequestHeader
    message: Message


class Response(NamedTuple):
    """A response's header and message, and the version at which the message was written."""

    header: ResponseHeader
    message: Message
    version: int


def decode_request(payload: Buffer, *, options: CodecOptions = DEFAULT_OPTIONS) -> Request:
    """Return the request in the payload of a frame.

    Raises ``UnknownMessageError``, ``UnsupportedVersionError`` and ``DecodeError``.
    """
    data = as_bytes(payload)
    if len(data) < 4:
        reason = f"api key and version need 4 bytes, {len(data)} left"
        raise TruncatedError(message="RequestHeader", version=None, path="", offset=0, reason=reason)
    api_key, version = struct.unpack_from(">hh", data)
    cls = message_class(api_key, "request")
    header, offset = RequestHeader.read(data, request_header_version(api_key, version))
    return Request(header, codec_for(cls, version, options).decode(data, offset))


def encode_request(message: Message, version: int, *, correlation_id: int, client_id: str | None = None) -> bytes:
    """Return the payload of a frame: the header that the request needs, and the request.

    Raises ``UnsupportedVersionError`` and ``EncodeError``.
    """
    api_key = message.INFO.api_key or 0
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    return header.encode(request_header_version(api_key, version)) + message.encode(version)


def decode_response(
    payload: Buffer, api_key: int, version: int, *, options: CodecOptions = DEFAULT_OPTIONS
) -> Response:
    """Return the response in the payload of a frame; ``api_key`` and ``version`` are those of its request.

    A broker that lacks the version of an ApiVersions request answers in version 0, so that is tried too. Raises
    ``UnknownMessageError``, ``UnsupportedVersionError`` and ``DecodeError``, which is about the version asked for.
    """
    data = as_bytes(payload)
    cls = message_class(api_key, "response")
    header, offset = ResponseHeader.read(data, response_header_version(api_key, version))
    try:
        return Response(header, codec_for(cls, version, options).decode(data, offset), version)
    except DecodeError:
        if api_key == _API_VERSIONS and version != 0:
            with suppress(DecodeError):
                return Response(header, codec_for(cls, 0, options).decode(data, offset), 0)
        raise


def encode_response(message: Message, version: int, *, correlation_id: int) -> bytes:
    """Return the payload of a frame: the header that the response needs, and the response.

    Raises ``UnsupportedVersionError`` and ``EncodeError``.
    """
    header = ResponseHeader(correlation_id=correlation_id)
    header_version = response_header_version(message.INFO.api_key or 0, version)
    return header.encode(header_version) + message.encode(version)
