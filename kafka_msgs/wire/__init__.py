"""Requests and responses on a connection: a header, then the message.

This package does no input or output. Functions take bytes and return values. ``framing`` cuts the bytes of a connection
into payloads. ``payloads`` decodes a payload to a frame (header and message together) and encodes it again. ``headers``
has the rules for header versions. It also reads a header whose message is unknown. ``correlation`` finds the response
to each request. ``error_responses`` makes the response to a request that failed. ``negotiation`` limits the versions
that a proxy offers. The source is the Kafka protocol guide, sections "Network" and "Request and Response Headers".
"""

from kafka_msgs.wire.correlation import Answered, Correlation, Outcome, Unanswered, Unasked, request_needs_response
from kafka_msgs.wire.error_responses import error_response
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
from kafka_msgs.wire.negotiation import cap_api_versions
from kafka_msgs.wire.payloads import (
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

__all__ = [
    "MAX_FRAME_SIZE",
    "SIZE_BYTES",
    "Answered",
    "Correlation",
    "FrameSplitter",
    "Outcome",
    "RequestFrame",
    "RequestPrefix",
    "ResponseFrame",
    "Unanswered",
    "Unasked",
    "cap_api_versions",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "error_response",
    "header_version",
    "join_frames",
    "looks_like_request",
    "read_correlation_id",
    "read_frame_size",
    "read_request_header",
    "read_request_prefix",
    "request_header_version",
    "request_needs_response",
    "response_header_version",
]
