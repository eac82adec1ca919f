"""Requests and responses as they travel: a header, then the message.

No input and output happens here; bytes in, values out. The int32 size in front of every frame on a connection is not
part of these payloads.
"""

from kafka_msgs.wire.headers import request_header_version, response_header_version
from kafka_msgs.wire.payloads import (
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

__all__ = [
    "Request",
    "Response",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "request_header_version",
    "response_header_version",
]
