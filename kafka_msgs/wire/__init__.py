"""Requests and responses as they travel: a header, then the message.

No input and output happens here; bytes in, values out. ``payloads`` has the frames: header and message together;
``headers`` the rules of headers, and how to read one whose message is unknown.
"""

from kafka_msgs.wire.headers import (
    RequestPrefix,
    read_correlation_id,
    read_request_header,
    read_request_prefix,
    request_header_version,
    response_header_version,
)
from kafka_msgs.wire.payloads import (
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

__all__ = [
    "RequestFrame",
    "RequestPrefix",
    "ResponseFrame",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "read_correlation_id",
    "read_request_header",
    "read_request_prefix",
    "request_header_version",
    "response_header_version",
]
