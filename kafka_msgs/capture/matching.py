"""Which response answers which request: in order, by correlation id, on one connection.

Kafka answers the requests of a connection in their order, so that requests before the one just answered never will be.
Frames of the two directions may arrive in any order relative to each other.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator
from itertools import takewhile
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


class _Waiter(NamedTuple):
    """A frame that waits for one of the other direction.

    ``number`` is its correlation id, None where it is too short for one, or a token, which has no header. ``head`` is
    that of a request, and None for all else.
    """

    frame: Frame
    number: int | None
    head: RequestHead | None = None


class _Queue:
    """The frames of one direction that wait, the oldest first; ``numbers`` has their correlation ids."""

    def __init__(self) -> None:
        self.held = 0
        self.numbers: Counter[int] = Counter()
        self._waiters: deque[_Waiter] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[_Waiter]:
        return iter(self._waiters)

    @property
    def first(self) -> _Waiter:
        return self._waiters[0]

    def add(self, waiter: _Waiter) -> None:
        self._waiters.append(waiter)
        self.held += len(waiter.frame.data)
        if waiter.number is not None:
            self.numbers[waiter.number] += 1

    def take(self) -> _Waiter:
        waiter = self._waiters.popleft()
        self.held -= len(waiter.frame.data)
        if waiter.number is not None:
            self.numbers[waiter.number] -= 1
            if not self.numbers[waiter.number]:
                del self.numbers[waiter.number]
        return waiter


class Matcher:
    """The requests and responses of a connection that wait for each other.

    ``tokens`` says whether frames without a header may follow: a handshake of version 0 has been seen. Beyond ``limit``
    bytes of payloads the oldest frames wait no longer.
    """

    def __init__(self, connection: Connection, limit: int) -> None:
        self.tokens = False
        self._limit = limit
        self._connection = connection
        self._requests = _Queue()
        self._responses = _Queue()

    @property
    def held(self) -> int:
        """Bytes of the payloads that wait."""
        return self._requests.held + self._responses.held

    def waiting(self) -> Collection[int]:
        """Return the correlation ids that responses are waited for with."""
        return self._requests.numbers

    def decodes(self, payload: bytes) -> bool:
        """Whether a payload is the response to a request that waits."""
        number = _number(payload)
        head = next((each.head for each in self._requests if each.head and each.number == number), None)
        try:
            return head is not None and bool(decode_response(payload, head.api_key, head.version, refuse_trailing=True))
        except KafkaMsgsError:
            return False

    def ask(self, frame: Frame) -> Iterator[Item]:
        """Take the next request; yield what is settled with it."""
        if self.tokens and not frame.missing and not looks_like_request(frame.data):
            self._requests.add(_Waiter(frame, None))
        elif len(frame.data) < LEAST_REQUEST:
            yield self._unrecognised(frame, REQUEST)
        else:
            head = RequestHead(*HEAD.unpack_from(frame.data))
            self.tokens |= head.api_key == _SASL_HANDSHAKE and head.version == 0
            if _expects_none(frame, head):
                yield self._exchange(frame, head, None)
                return
            self._requests.add(_Waiter(frame, head.correlation_id, head))
        yield from self._match()

    def answer(self, frame: Frame) -> Iterator[Item]:
        """Take the next response; yield what is settled with it."""
        self._responses.add(_Waiter(frame, _number(frame.data)))
        yield from self._match()

    def close(self) -> Iterator[Item]:
        """Yield what has found no partner."""
        while self._requests:
            yield self._unanswered()
        while self._responses:
            yield self._orphan()

    def _match(self) -> Iterator[Item]:
        while self._requests and self._responses:
            if self._requests.first.head is None:
                yield self._token()
                continue
            pair = self._first_pair()
            if pair is None:
                break
            for _ in range(pair[0]):
                yield self._unanswered()
            for _ in range(pair[1]):
                yield self._orphan()
            asked, answer = self._requests.take(), self._responses.take()
            assert asked.head is not None
            yield self._exchange(asked.frame, asked.head, answer.frame)
        while self._too_many(self._requests):
            yield self._unanswered()
        while self._too_many(self._responses):
            yield self._orphan()

    def _too_many(self, waiting: _Queue) -> bool:
        return len(waiting) > _MOST_WAITING or (len(waiting) > 1 and self.held > self._limit)

    def _first_pair(self) -> tuple[int, int] | None:
        """Return the places of the first response that has a request, and of its request: request, then response."""
        if self._requests.numbers.keys().isdisjoint(self._responses.numbers.keys()):
            return None
        places: dict[int | None, int] = {}
        for place, asked in enumerate(takewhile(lambda each: each.head, self._requests)):
            places.setdefault(asked.number, place)
        for place, answer in enumerate(self._responses):
            if answer.number in places:
                return places[answer.number], place
        return None

    def _unanswered(self) -> Item:
        asked = self._requests.take()
        if asked.head is None:
            return self._fault(FaultKind.SASL, f"a token of {asked.frame.size} bytes, unanswered", asked.frame, REQUEST)
        return self._exchange(asked.frame, asked.head, None)

    def _orphan(self) -> CaptureFault:
        frame, number, _ = self._responses.take()
        if number is None:
            return self._unrecognised(frame, RESPONSE)
        reason = f"a response of {frame.size} bytes with the correlation id {number}, which no request had"
        return self._fault(FaultKind.ORPHAN, reason, frame, RESPONSE)

    def _token(self) -> CaptureFault:
        asked, answer = self._requests.take().frame, self._responses.take().frame
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

    def _exchange(self, request: Frame, head: RequestHead, response: Frame | None) -> Exchange:
        return Exchange(
            connection=self._connection,
            api_key=head.api_key,
            version=head.version,
            correlation_id=head.correlation_id,
            request=_sent(request),
            response=response and _sent(response),
        )


def _sent(frame: Frame) -> Sent:
    return Sent(payload=frame.data, size=frame.size, missing=frame.missing, at=frame.at, packet=frame.packet)


def _number(response: bytes) -> int | None:
    return CORRELATION.unpack_from(response)[0] if len(response) >= LEAST_RESPONSE else None


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
