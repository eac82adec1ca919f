"""Which header version goes with which message version.

A flexible request has header version 2, any other 1; a flexible response has 1, any other 0. The exceptions are the
tables below: they are facts of the protocol and exist nowhere else in the project.
"""

from __future__ import annotations

from typing import Final

from kafka_msgs.lookup import message_class

__all__ = ["request_header_version", "response_header_version"]

_REQUEST_EXCEPTIONS: Final = {(7, 0): 0}
"""ControlledShutdown version 0 has a header without client id."""

_RESPONSE_EXCEPTIONS: Final = {18: 0}
"""ApiVersions responses: the client does not yet know what the broker speaks, so their header never changes."""


def request_header_version(api_key: int, version: int) -> int:
    """Return the version of the header of a request, also of versions newer than those known here.

    Raises ``UnknownMessageError`` for an api key that the release does not have.
    """
    exception = _REQUEST_EXCEPTIONS.get((api_key, version))
    if exception is not None:
        return exception
    return 2 if version in message_class(api_key, "request").INFO.flexible else 1


def response_header_version(api_key: int, version: int) -> int:
    """Return the version of the header of a response; raises ``UnknownMessageError``."""
    exception = _RESPONSE_EXCEPTIONS.get(api_key)
    if exception is not None:
        return exception
    return 1 if version in message_class(api_key, "response").INFO.flexible else 0
