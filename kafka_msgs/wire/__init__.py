"""Requests and responses on a connection: a header, then the message.

This package does no input or output; its functions take bytes and return values. ``client_connection`` and
``server_connection`` are the two sides of a connection: they encode outgoing messages to bytes and turn incoming bytes
into events. ``framing`` splits the bytes of a connection into payloads. ``payloads`` decodes a payload to a frame
(header and message together) and encodes it again. ``headers`` implements the header version rules and reads headers of
unknown messages. ``correlation`` matches responses to requests on an observed connection. ``error_responses`` builds
the response to a failed request. ``negotiation`` computes the versions that a server or a proxy supports.
``payload_patch`` changes individual fields of a payload. The source is the Kafka protocol guide, sections "Network" and
"Request and Response Headers".
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes
from kafka_msgs.wire.client_connection import ClientConnection
from kafka_msgs.wire.connection_base import ConnectionState
from kafka_msgs.wire.events import (
    NEED_DATA,
    PAUSED,
    ClientEvent,
    ConnectionClosed,
    NeedData,
    NoResponse,
    RequestReceived,
    ResponseReceived,
    ServerEvent,
    TokenReceived,
    TokensPending,
)
from kafka_msgs.wire.framing import MAX_FRAME_SIZE, SIZE_BYTES, FrameSplitter, join_frames, read_frame_size
from kafka_msgs.wire.headers import (
    RequestPrefix,
    header_version,
    looks_like_request,
    read_correlation_id,
    read_request_header,
    read_request_prefix,
    request_header_version,
    response_header_version,
)
from kafka_msgs.wire.negotiation import (
    cap_api_versions,
    offered_api_versions,
    response_version,
    unsupported_api_versions,
)
from kafka_msgs.wire.payloads import (
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    payload_needs_response,
    request_needs_response,
)

if TYPE_CHECKING:
    from kafka_msgs.wire.correlation import Correlation, MatchedPair, OrphanResponse, Outcome, UnansweredRequest
    from kafka_msgs.wire.error_responses import error_response
    from kafka_msgs.wire.payload_patch import (
        Edit,
        patch_request,
        patch_response,
        peek_request,
        peek_response,
        renumber_response,
        replace_client_id,
        replace_correlation_id,
    )
    from kafka_msgs.wire.server_connection import ServerConnection
else:
    # Clients need none of these. Splicing also loads the reference interpreter.
    _LAZY = {
        "correlation": ("MatchedPair", "Correlation", "OrphanResponse", "UnansweredRequest", "Outcome"),
        "error_responses": ("error_response",),
        "server_connection": ("ServerConnection",),
        "payload_patch": (
            "Edit",
            "peek_request",
            "peek_response",
            "replace_correlation_id",
            "renumber_response",
            "replace_client_id",
            "patch_request",
            "patch_response",
        ),
    }
    __getattr__, __dir__ = lazy_module_attributes(
        __name__, {name: module for module, names in _LAZY.items() for name in names}
    )

__all__ = [
    "MAX_FRAME_SIZE",
    "NEED_DATA",
    "PAUSED",
    "SIZE_BYTES",
    "ClientConnection",
    "ClientEvent",
    "ConnectionClosed",
    "ConnectionState",
    "Correlation",
    "Edit",
    "FrameSplitter",
    "MatchedPair",
    "NeedData",
    "NoResponse",
    "OrphanResponse",
    "Outcome",
    "RequestFrame",
    "RequestPrefix",
    "RequestReceived",
    "ResponseFrame",
    "ResponseReceived",
    "ServerConnection",
    "ServerEvent",
    "TokenReceived",
    "TokensPending",
    "UnansweredRequest",
    "cap_api_versions",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "error_response",
    "header_version",
    "join_frames",
    "looks_like_request",
    "offered_api_versions",
    "patch_request",
    "patch_response",
    "payload_needs_response",
    "peek_request",
    "peek_response",
    "read_correlation_id",
    "read_frame_size",
    "read_request_header",
    "read_request_prefix",
    "renumber_response",
    "replace_client_id",
    "replace_correlation_id",
    "request_header_version",
    "request_needs_response",
    "response_header_version",
    "response_version",
    "unsupported_api_versions",
]
