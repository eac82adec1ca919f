"""Which response answers which request: in order, by correlation id, on one connection.

Kafka answers the requests of a connection in their order, so that requests before the one just answered never will be.
Frames of the two directions may arrive in any order relative to each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sized
from typing import Final, NamedTuple, TypeAlias

from kafka_msgs.capture.connections import Connection
from kafka_msgs.capture.exchanges import Exchange, Sent
from kafka_msgs.capture.faults import REQUEST, RESPONSE, CaptureFault, Direction, FaultKind
from kafka_msgs.capture.framing import SIZE_BYTES, Frame
from kafka_msgs.capture.protocol import (
    CORRELATION,
    HEAD,
    LEAST_REQUEST,
    LEAST_RESPONSE,
    RequestHead,
    looks_like_request,
)
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.wire import decode_request, decode_response

__all__ = ["Item", "Matcher"]

Item: TypeAlias = Exchange | CaptureFault

_PRODUCE: Final = 0
_SASL_HANDSHAKE: Final = 17
_VIEWS: Final = CodecOptions(memoryview_records=True)
_MOST_WAITING: Final = 1000
"""Frames of a direction that are kept while those of the other are missing."""


class _Asked(NamedTuple):
    """A request that waits; ``head`` is None for a token, which has no header."""

    frame: Frame
    head: RequestHead | None


class Matcher:
    """The requests and responses of a connection that wait for each other.

    ``held`` is the bytes of their payloads; beyond ``limit`` of them the oldest ones wait no longer.
    """

    def __init__(self, connection: Connection, limit: int) -> None:
        self.held = 0
        self._limit = limit
        self.tokens = False
        """Whether frames without a header may follow: a handshake of version 0 has been seen."""
        self._connection = connection
        self._requests: deque[_Asked] = deque()
        self._responses: deque[Frame] = deque()

    def waiting(self) -> list[int]:
        """Return the correlation ids that responses are waited for with."""
        return [asked.head.correlation_id for asked in self._requests if asked.head]

    def decodes(self, payload: bytes) -> bool:
        """Whether a payload is the response to a request that waits."""
        if len(payload) < LEAST_RESPONSE:
            return False
        head = next((each.head for each in self._requests if each.head and _answers(payload, each.head)), None)
        try:
            return head is not None and bool(decode_response(payload, head.api_key, head.version))
        except KafkaMsgsError:
            return False

    def ask(self, frame: Frame) -> Iterator[Item]:
        """Take the next request; yield what is settled with it."""
        if self.tokens and not frame.missing and not looks_like_request(frame.data):
            self._wait(_Asked(frame, None))
        elif len(frame.data) < LEAST_REQUEST:
            yield self._unrecognised(frame, REQUEST)
        else:
            head = RequestHead(*HEAD.unpack_from(frame.data))
            self.tokens |= head.api_key == _SASL_HANDSHAKE and head.version == 0
            asked = _Asked(frame, head)
            if _expects_none(frame, head):
                yield self._exchange(asked, head, None)
                return
            self._wait(asked)
        yield from self._match()

    def answer(self, frame: Frame) -> Iterator[Item]:
        """Take the next response; yield what is settled with it."""
        self._responses.append(frame)
        self.held += len(frame.data)
        yield from self._match()

    def close(self) -> Iterator[Item]:
        """Yield what has found no partner."""
        while self._requests:
            yield self._unanswered()
        while self._responses:
            yield self._orphan()

    def _wait(self, asked: _Asked) -> None:
        self._requests.append(asked)
        self.held += len(asked.frame.data)

    def _match(self) -> Iterator[Item]:
        while self._requests and self._responses:
            if self._requests[0].head is None:
                yield self._token()
                continue
            pair = self._first_pair()
            if pair is None:
                break
            for _ in range(pair[0]):
                yield self._unanswered()
            for _ in range(pair[1]):
                yield self._orphan()
            asked, response = self._requests.popleft(), self._take_response()
            self.held -= len(asked.frame.data)
            assert asked.head is not None
            yield self._exchange(asked, asked.head, response)
        while self._too_many(self._requests):
            yield self._unanswered()
        while self._too_many(self._responses):
            yield self._orphan()

    def _too_many(self, waiting: Sized) -> bool:
        return len(waiting) > _MOST_WAITING or (len(waiting) > 1 and self.held > self._limit)

    def _first_pair(self) -> tuple[int, int] | None:
        """Return the places of the first response that has a request, and of its request: request, then response."""
        places: dict[int, int] = {}
        for place, asked in enumerate(self._requests):
            if asked.head is None:
                break
            places.setdefault(asked.head.correlation_id, place)
        for place, frame in enumerate(self._responses):
            if (
                len(frame.data) >= LEAST_RESPONSE
                and (found := places.get(CORRELATION.unpack_from(frame.data)[0])) is not None
            ):
                return found, place
        return None

    def _take_response(self) -> Frame:
        frame = self._responses.popleft()
        self.held -= len(frame.data)
        return frame

    def _unanswered(self) -> Item:
        asked = self._requests.popleft()
        self.held -= len(asked.frame.data)
        if asked.head is None:
            return self._fault(FaultKind.SASL, f"a token of {asked.frame.size} bytes, unanswered", asked.frame, REQUEST)
        return self._exchange(asked, asked.head, None)

    def _orphan(self) -> CaptureFault:
        frame = self._take_response()
        if len(frame.data) < LEAST_RESPONSE:
            return self._unrecognised(frame, RESPONSE)
        (number,) = CORRELATION.unpack_from(frame.data)
        reason = f"a response of {frame.size} bytes with the correlation id {number}, which no request had"
        return self._fault(FaultKind.ORPHAN, reason, frame, RESPONSE)

    def _token(self) -> CaptureFault:
        asked, answer = self._requests.popleft().frame, self._take_response()
        self.held -= len(asked.data)
        reason = f"a token of {asked.size} bytes, answered with {answer.size} bytes"
        return self._fault(FaultKind.SASL, reason, asked, REQUEST, also=_captured(answer))

    def _unrecognised(self, frame: Frame, direction: Direction) -> CaptureFault:
        captured = "" if not frame.missing else f", of which {len(frame.data)} were captured"
        reason = f"a {direction} of {frame.size} bytes{captured}: too few for its header"
        return self._fault(FaultKind.UNRECOGNISED, reason, frame, direction)

    def _fault(
        self, kind: FaultKind, reason: str, frame: Frame, direction: Direction, *, also: int = 0
    ) -> CaptureFault:
        return CaptureFault(
            kind=kind,
            reason=reason,
            size=_captured(frame) + also,
            at=frame.at,
            packet=frame.packet,
            connection=self._connection,
            direction=direction,
        )

    def _exchange(self, asked: _Asked, head: RequestHead, response: Frame | None) -> Exchange:
        return Exchange(
            connection=self._connection,
            api_key=head.api_key,
            version=head.version,
            correlation_id=head.correlation_id,
            request=_sent(asked.frame),
            response=response and _sent(response),
        )


def _sent(frame: Frame) -> Sent:
    return Sent(payload=frame.data, size=frame.size, missing=frame.missing, at=frame.at, packet=frame.packet)


def _captured(frame: Frame) -> int:
    return SIZE_BYTES + frame.size - frame.missing


def _expects_none(frame: Frame, head: RequestHead) -> bool:
    """Whether a request is a Produce that no broker acknowledges."""
    if head.api_key != _PRODUCE or frame.missing:
        return False
    try:
        message = decode_request(frame.data, options=_VIEWS).message
    except KafkaMsgsError:
        return False
    return isinstance(message, ProduceRequest) and message.acks == 0


def _answers(payload: bytes, head: RequestHead) -> bool:
    return CORRELATION.unpack_from(payload) == (head.correlation_id,)
