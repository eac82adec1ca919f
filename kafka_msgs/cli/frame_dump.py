"""Annotated hex dumps of complete request and response frames: the header, then the message."""

from __future__ import annotations

from contextlib import suppress

from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.cli.render.hex_dump import Annotation, annotate, show_trailing
from kafka_msgs.errors import DecodeError
from kafka_msgs.message import Message
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.wire import decode_response, header_version, read_request_prefix

__all__ = ["request_annotations", "response_annotations"]


def request_annotations(payload: bytes, catalog: MessageCatalog) -> list[Annotation]:
    """Explain a request with its header, which identifies the request."""
    api_key, version, _ = read_request_prefix(payload)
    message = catalog.message_class(api_key, "request", version)
    return _annotations(payload, RequestHeader, header_version(message, version), message, version)


def response_annotations(payload: bytes, api_key: int, version: int, catalog: MessageCatalog) -> list[Annotation]:
    """Explain a response with its header; ``api_key`` and ``version`` come from its request."""
    message = catalog.message_class(api_key, "response", version)
    head = header_version(message, version)
    with suppress(DecodeError):  # The dump shows the position of the error, at the requested version.
        version = decode_response(payload, api_key, version, catalog=catalog).version
    return _annotations(payload, ResponseHeader, head, message, version)


def _annotations(
    payload: bytes, header: type[Message], head: int, message: type[Message], version: int
) -> list[Annotation]:
    first = annotate(header, head, payload)
    if first.error is not None:
        return [first]
    second = annotate(message, version, payload, first.end)
    return [first, show_trailing(second, payload)]
