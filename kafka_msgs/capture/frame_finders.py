"""Recognition of Kafka frames among other bytes: the finders for ``resync``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from struct import Struct
from typing import Final

from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.wire import SIZE_BYTES, decode_request, looks_like_request, read_frame_size

__all__ = [
    "LEAST_REQUEST",
    "LEAST_RESPONSE",
    "RequestFinder",
    "ResponseFinder",
    "is_tls",
    "looks_like_sized_request",
]

LEAST_REQUEST: Final = 8
"""The minimum request size: API key, version, correlation id."""
LEAST_RESPONSE: Final = 4
"""The minimum response size: the correlation id."""

_TLS: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")
"""The type and version of a TLS record; as a Kafka frame size it would exceed 320 MB."""
_REQUEST: Final = re.compile(rb"(?!\x00\x00\x00[\x00-\x07])[\x00-\x06].{3}\x00[\x00-\x7f]\x00[\x00-\x7f]", re.DOTALL)
"""A size from 8 bytes to 112 MB, and an API key and a version below 128."""
_RESPONSE: Final = re.compile(rb"(?=(?!\x00\x00\x00[\x00-\x03])[\x00-\x06].{7})", re.DOTALL)
"""A size from 4 bytes to 112 MB, and a correlation id; zero-width, so that every position is checked."""
_CLIENT_ID_LENGTH: Final = 2
_INT32: Final = Struct(">i")


def is_tls(data: bytes | bytearray) -> bool:
    """Return whether bytes start like a TLS record."""
    return _TLS.match(data) is not None


def looks_like_sized_request(data: bytes | bytearray, catalog: MessageCatalog | None = None) -> bool:
    """Return whether bytes start with the size of a request and its header."""
    size = int.from_bytes(data[:SIZE_BYTES], "big", signed=True)
    return looks_like_request(data[SIZE_BYTES : RequestFinder.margin], size, catalog)


class RequestFinder:
    """A finder of requests: a known API, a supported version, and a client id that fits."""

    margin = SIZE_BYTES + LEAST_REQUEST + _CLIENT_ID_LENGTH

    def __init__(self, catalog: MessageCatalog | None = None) -> None:
        self._catalog = catalog

    def search(self, buffer: bytearray, start: int) -> int:
        """Return the first position from ``start`` on that looks like a request with its size, or -1."""
        while (match := _REQUEST.search(buffer, start)) and match.start() + self.margin <= len(buffer):
            place = match.start()
            size = read_frame_size(buffer, place)
            if looks_like_request(buffer[place + SIZE_BYTES : place + self.margin], size, self._catalog):
                return place
            start = place + 1
        return -1

    def confirms(self, payload: bytes) -> bool:
        """Return whether the whole request can be decoded."""
        try:
            decode_request(payload, catalog=self._catalog, refuse_trailing=True)
        except KafkaMsgsError:
            return False
        return True


class ResponseFinder:
    """A finder of responses with an expected correlation id.

    ``expected`` returns these ids; ``decodes`` returns whether a payload is the response to the request with its id.
    """

    margin = SIZE_BYTES + LEAST_RESPONSE

    def __init__(self, expected: Callable[[], Collection[int]], decodes: Callable[[bytes], bool]) -> None:
        self._expected = expected
        self.confirms = decodes

    def search(self, buffer: bytearray, start: int) -> int:
        """Return the first position from ``start`` on that looks like a response with its size, or -1."""
        expected = self._expected()
        if not expected:
            return -1
        for match in _RESPONSE.finditer(buffer, start):
            place = match.start()
            if _INT32.unpack_from(buffer, place + SIZE_BYTES)[0] in expected:
                return place
        return -1
