"""Requests and responses as they travel: a header, then the message.

No input and output happens here; bytes in, values out. ``framing`` cuts connections into payloads, ``payloads`` turns
these into frames (header and message together) and back, and ``headers`` has the rules of headers, and reads one whose
message is unknown. ``correlation`` knows which response answers which request,
``error_responses`` what to answer to a request that failed, ``negotiation`` which versions a proxy may offer.
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
