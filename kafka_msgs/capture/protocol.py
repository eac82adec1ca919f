"""What a frame of Kafka looks like: the few bytes that tell a request, and those that tell the response to one.

Owns the finders that ``framing`` searches with, and what is known of a request before its message is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache
from struct import Struct
from typing import Final, NamedTuple

from kafka_msgs.capture.framing import SIZE_BYTES
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.lookup import message_class
from kafka_msgs.versions import VersionRange
from kafka_msgs.wire import decode_request

__all__ = [
    "CORRELATION",
    "HEAD",
    "LEAST_REQUEST",
    "LEAST_RESPONSE",
    "RequestFinder",
    "RequestHead",
    "ResponseFinder",
    "api_name",
    "is_tls",
    "looks_like_request",
    "looks_like_sized_request",
]

LEAST_REQUEST: Final = 8
LEAST_RESPONSE: Final = 4

_TLS: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")
"""The type of a TLS record and its version; as a size of Kafka it would be more than 320 MB."""
_CANDIDATE: Final = re.compile(rb"(?!\x00\x00\x00[\x00-\x07])[\x00-\x06].{3}\x00[\x00-\x7f]\x00[\x00-\x7f]", re.DOTALL)
"""A size from 8 bytes to 112 MB, an api key and a version below 128."""
_CLIENT_ID: Final = Struct(">h")
_LONGEST_CLIENT_ID: Final = 1024
_MOST_SEARCHED: Final = 100
CORRELATION: Final = Struct(">i")


class RequestHead(NamedTuple):
    """The eight bytes that all requests start with."""

    api_key: int
    version: int
    correlation_id: int


HEAD: Final = Struct(">hhi")


@cache
def _versions(api_key: int) -> VersionRange | None:
    try:
        return message_class(api_key, "request").INFO.versions
    except KafkaMsgsError:
        return None


@cache
def api_name(api_key: int) -> str | None:
    """Return the name of an api, such as ``"Fetch"``, or None where the release has none with this key."""
    try:
        return message_class(api_key, "request").INFO.name.removesuffix("Request")
    except KafkaMsgsError:
        return None


def is_tls(data: bytes) -> bool:
    """Whether bytes start as a TLS record does."""
    return _TLS.match(data) is not None


def looks_like_request(payload: bytes | bytearray, size: int | None = None) -> bool:
    """Whether the beginning of a frame of ``size`` bytes is the header of a request of a version known here."""
    size = len(payload) if size is None else size
    if len(payload) < LEAST_REQUEST or size < LEAST_REQUEST:
        return False
    api_key, version, _ = HEAD.unpack_from(payload)
    versions = _versions(api_key)
    if versions is None or version not in versions:
        return False
    if len(payload) < LEAST_REQUEST + _CLIENT_ID.size:
        return False
    length: int = _CLIENT_ID.unpack_from(payload, LEAST_REQUEST)[0]
    return -1 <= length <= min(_LONGEST_CLIENT_ID, size - LEAST_REQUEST - _CLIENT_ID.size)


def looks_like_sized_request(data: bytes) -> bool:
    """Whether bytes start with the size of a request and its header."""
    size = int.from_bytes(data[:SIZE_BYTES], "big", signed=True)
    return looks_like_request(data[SIZE_BYTES : RequestFinder.margin], size)


class RequestFinder:
    """Finds requests: a known api, a version that it has, a client id that fits."""

    margin = SIZE_BYTES + LEAST_REQUEST + _CLIENT_ID.size

    def search(self, buffer: bytearray, start: int) -> int:
        """Return the first place from ``start`` on that looks like a request with its size, or -1."""
        while (match := _CANDIDATE.search(buffer, start)) and match.start() + self.margin <= len(buffer):
            place = match.start()
            size = int.from_bytes(buffer[place : place + SIZE_BYTES], "big")
            if looks_like_request(buffer[place + SIZE_BYTES : place + self.margin], size):
                return place
            start = place + 1
        return -1

    def confirms(self, payload: bytes) -> bool:
        """Whether the request can be decoded whole."""
        try:
            decode_request(payload, refuse_trailing=True)
        except KafkaMsgsError:
            return False
        return True


class ResponseFinder:
    """Finds responses: those that carry a correlation id that is waited for.

    ``waiting`` returns these ids; ``decodes`` whether a payload is the response to the request with its id.
    """

    margin = SIZE_BYTES + LEAST_RESPONSE

    def __init__(self, waiting: Callable[[], Collection[int]], decodes: Callable[[bytes], bool]) -> None:
        self._waiting = waiting
        self.confirms = decodes

    def search(self, buffer: bytearray, start: int) -> int:
        """Return the first place from ``start`` on that looks like a response with its size, or -1."""
        ids = [re.escape(CORRELATION.pack(each)) for each in list(self._waiting())[:_MOST_SEARCHED]]
        if not ids:
            return -1
        match = re.compile(rb"[\x00-\x06].{3}(?:" + b"|".join(ids) + b")", re.DOTALL).search(buffer, start)
        return match.start() if match else -1
