"""Effects of faults on requests and on their answers. Each is a value: what it does, and with which numbers.

``begin`` comes before the handler of a request. What is done to an answer comes after it, so the request is done, but
the client does not learn of it as it should.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

from attrs import field, frozen

from kafka_msgs.broker.server_call import MangledResponse, ServerCall
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.validators import int_range

__all__ = [
    "Delay",
    "Disconnect",
    "DropResponse",
    "Effect",
    "Fail",
    "NeverRespond",
    "SwapResponses",
    "TrickleResponse",
    "TruncateResponse",
    "WrongCorrelationId",
    "WrongFrameSize",
]

_SIZE: Final = 4
_NUMBER: Final = 8
"""The bytes of a frame before its correlation id, and with it."""


@frozen
class Fail:
    """Answer with an error code, without doing what is asked."""

    error: ErrorCode
    message: str | None = None

    def begin(self, call: ServerCall[Any]) -> bool:
        """Answer a call. Return True: nobody else handles it."""
        call.fail(self.error, self.message)
        return True


@frozen
class Delay:
    """Handle the request ``ms`` milliseconds later."""

    ms: int = field(validator=int_range(0))

    def begin(self, call: ServerCall[Any]) -> bool:
        """Put a call off. Return True: nobody else handles it now."""
        call.cluster.call_later(self.ms, lambda: call.cluster.dispatch.run(call.cluster, call))
        return True


@frozen
class NeverRespond:
    """Never answer. The connection stays open."""

    def begin(self, call: ServerCall[Any]) -> bool:
        """Drop a call. Return True: nobody else handles it."""
        return True


@frozen
class Disconnect:
    """Close the connection without doing what is asked: in order, or with a reset."""

    reset: bool = True

    def begin(self, call: ServerCall[Any]) -> bool:
        """Close the connection of a call. Return True: nobody else handles it."""
        call.disconnect(reset=self.reset)
        return True


class _ResponseEffect(ABC):
    """An effect on the bytes of the answer."""

    def begin(self, call: ServerCall[Any]) -> bool:
        """Damage the answer of a call later. Return False: its handler is next."""
        call.mangle = self.damage
        return False

    @abstractmethod
    def damage(self, frame: bytes) -> MangledResponse:
        """Return what is sent instead of the frame of an answer."""


@frozen
class DropResponse(_ResponseEffect):
    """Do what is asked, then close the connection instead of answering: in order, or with a reset."""

    reset: bool = False

    def damage(self, frame: bytes) -> MangledResponse:
        """Return nothing, and the end of the connection."""
        return MangledResponse(pieces=(), closes=True, resets=self.reset)


@frozen
class TruncateResponse(_ResponseEffect):
    """Send only the first ``size`` bytes of the frame, its four bytes of length included, and close the connection.

    A reset may overtake the bytes, so that the client does not get them.
    """

    size: int = field(validator=int_range(0))
    reset: bool = False

    def damage(self, frame: bytes) -> MangledResponse:
        """Return the first bytes of a frame."""
        return MangledResponse(pieces=(frame[: self.size],), closes=True, resets=self.reset)


@frozen
class WrongFrameSize(_ResponseEffect):
    """State a length of the frame that is wrong by ``difference`` bytes."""

    difference: int

    def damage(self, frame: bytes) -> MangledResponse:
        """Return a frame with another length."""
        size = max(0, int.from_bytes(frame[:_SIZE], "big") + self.difference)
        return MangledResponse(pieces=(size.to_bytes(_SIZE, "big") + frame[_SIZE:],))


@frozen
class WrongCorrelationId(_ResponseEffect):
    """Answer with the correlation id of another request: the right one plus ``difference``."""

    difference: int = 1

    def damage(self, frame: bytes) -> MangledResponse:
        """Return a frame with another correlation id."""
        number = (int.from_bytes(_number(frame), "big") + self.difference) % 2**32
        return MangledResponse(pieces=(_numbered(frame, number.to_bytes(_NUMBER - _SIZE, "big")),))


@frozen
class SwapResponses(_ResponseEffect):
    """Hold the answer back until the next one of the connection. Then send both, each with the other's correlation id.

    A client that has one request under way at a time waits for its answer until it gives up.
    """

    def damage(self, frame: bytes) -> MangledResponse:
        """Return nothing yet, and what is sent instead of the next answer."""

        def swapped(following: bytes) -> MangledResponse:
            return MangledResponse(pieces=(_numbered(frame, _number(following)), _numbered(following, _number(frame))))

        return MangledResponse(pieces=(), then=swapped)


@frozen
class TrickleResponse(_ResponseEffect):
    """Send the answer slowly: ``size`` bytes every ``every_ms`` milliseconds."""

    size: int = field(validator=int_range(1))
    every_ms: int = field(validator=int_range(1))

    def damage(self, frame: bytes) -> MangledResponse:
        """Return the pieces of a frame."""
        pieces = tuple(frame[start : start + self.size] for start in range(0, len(frame), self.size))
        return MangledResponse(pieces=pieces, interval_ms=self.every_ms)


def _number(frame: bytes) -> bytes:
    return frame[_SIZE:_NUMBER]


def _numbered(frame: bytes, number: bytes) -> bytes:
    return frame[:_SIZE] + number + frame[_NUMBER:]


Effect = (
    Fail
    | Delay
    | NeverRespond
    | Disconnect
    | DropResponse
    | TruncateResponse
    | WrongFrameSize
    | WrongCorrelationId
    | SwapResponses
    | TrickleResponse
)
"""What a fault does to a request or to its answer."""
