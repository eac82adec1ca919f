"""Fault effects on requests and responses. Each effect is a value.

``begin`` runs before the handler of a request. Effects on the response run after it: the request takes effect, but the
client does not receive the correct response.
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
    "ResponseEffect",
    "SwapResponses",
    "TrickleResponse",
    "TruncateResponse",
    "WrongCorrelationId",
    "WrongFrameSize",
]

_SIZE: Final = 4
_NUMBER: Final = 8
"""The ends of the frame size and of the correlation id, in bytes from the start of a response frame."""


class Effect(ABC):
    """An effect on a request or its response."""

    @abstractmethod
    def begin(self, call: ServerCall[Any]) -> bool:
        """Apply the effect to a call. Return whether the handler of the request is skipped, at least for now."""


@frozen
class Fail(Effect):
    """Respond with an error code, without handling the request."""

    error: ErrorCode
    message: str | None = None

    def begin(self, call: ServerCall[Any]) -> bool:
        call.fail(self.error, self.message)
        return True


@frozen
class Delay(Effect):
    """Handle the request ``ms`` milliseconds later."""

    ms: int = field(validator=int_range(0))

    def begin(self, call: ServerCall[Any]) -> bool:
        call.cluster.call_later(self.ms, lambda: call.cluster.run_handler(call))
        return True


@frozen
class NeverRespond(Effect):
    """Never respond. The connection stays open."""

    def begin(self, call: ServerCall[Any]) -> bool:
        return True


@frozen
class Disconnect(Effect):
    """Close the connection without handling the request: cleanly, or with a reset."""

    reset: bool = True

    def begin(self, call: ServerCall[Any]) -> bool:
        call.disconnect(reset=self.reset)
        return True


class ResponseEffect(Effect):
    """An effect on the bytes of the response."""

    def begin(self, call: ServerCall[Any]) -> bool:
        call.mangle = self.damage
        return False

    @abstractmethod
    def damage(self, frame: bytes) -> MangledResponse:
        """Return the bytes to send instead of the response frame."""


@frozen
class DropResponse(ResponseEffect):
    """Handle the request, then close the connection instead of responding: cleanly, or with a reset."""

    reset: bool = False

    def damage(self, frame: bytes) -> MangledResponse:
        return MangledResponse(pieces=(), closes=True, resets=self.reset)


@frozen
class TruncateResponse(ResponseEffect):
    """Send only the first ``size`` bytes of the frame, including its four length bytes, and close the connection.

    A reset may overtake the bytes, so that the client does not receive them.
    """

    size: int = field(validator=int_range(0))
    reset: bool = False

    def damage(self, frame: bytes) -> MangledResponse:
        return MangledResponse(pieces=(frame[: self.size],), closes=True, resets=self.reset)


@frozen
class WrongFrameSize(ResponseEffect):
    """Send a frame length that is wrong by ``difference`` bytes."""

    difference: int

    def damage(self, frame: bytes) -> MangledResponse:
        size = max(0, int.from_bytes(frame[:_SIZE], "big") + self.difference)
        return MangledResponse(pieces=(size.to_bytes(_SIZE, "big") + frame[_SIZE:],))


@frozen
class WrongCorrelationId(ResponseEffect):
    """Respond with the correlation id of another request: the correct one plus ``difference``."""

    difference: int = 1

    def damage(self, frame: bytes) -> MangledResponse:
        number = (int.from_bytes(_number(frame), "big") + self.difference) % 2**32
        return MangledResponse(pieces=(_numbered(frame, number.to_bytes(_NUMBER - _SIZE, "big")),))


@frozen
class SwapResponses(ResponseEffect):
    """Hold the response back until the next one of the connection, then send both with their correlation ids swapped.

    A client with at most one in-flight request waits until its request timeout.
    """

    def damage(self, frame: bytes) -> MangledResponse:
        def swapped(following: bytes) -> MangledResponse:
            return MangledResponse(pieces=(_numbered(frame, _number(following)), _numbered(following, _number(frame))))

        return MangledResponse(pieces=(), then=swapped)


@frozen
class TrickleResponse(ResponseEffect):
    """Send the response slowly: ``size`` bytes every ``every_ms`` milliseconds."""

    size: int = field(validator=int_range(1))
    every_ms: int = field(validator=int_range(1))

    def damage(self, frame: bytes) -> MangledResponse:
        pieces = tuple(frame[start : start + self.size] for start in range(0, len(frame), self.size))
        return MangledResponse(pieces=pieces, interval_ms=self.every_ms)


def _number(frame: bytes) -> bytes:
    return frame[_SIZE:_NUMBER]


def _numbered(frame: bytes, number: bytes) -> bytes:
    return frame[:_SIZE] + number + frame[_NUMBER:]
