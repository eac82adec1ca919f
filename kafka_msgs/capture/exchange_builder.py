"""Exchanges built from the frames of a connection, and faults for all other frames.

``kafka_msgs.wire.correlation`` matches responses to requests. This module turns its outcomes into exchanges and faults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, TypeAlias

from kafka_msgs.capture.connections import CapturedConnection
from kafka_msgs.capture.exchanges import CapturedPayload, Exchange
from kafka_msgs.capture.faults import REQUEST, RESPONSE, CaptureFault, Direction, FaultKind
from kafka_msgs.capture.resync import Frame
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.errors import KafkaMsgsError, TruncatedError
from kafka_msgs.wire import (
    SIZE_BYTES,
    Correlation,
    MatchedPair,
    Outcome,
    RequestPrefix,
    UnansweredRequest,
    decode_response,
    read_correlation_id,
    read_request_prefix,
)

__all__ = ["ExchangeBuilder", "Item"]

Item: TypeAlias = Exchange | CaptureFault

_FRAME_BYTES: Final = 600
"""The approximate size in bytes of a waiting frame, without its payload."""


class ExchangeBuilder:
    """A builder that pairs the requests and responses of a connection.

    The oldest waiting frames are dropped above ``limit`` bytes, and above ``frames`` frames in each direction.
    """

    def __init__(
        self, connection: CapturedConnection, limit: int, catalog: MessageCatalog | None, *, frames: int = 1000
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._waiting: Correlation[Frame, Frame] = Correlation(limit=frames, limit_bytes=limit, catalog=catalog)

    @property
    def held(self) -> int:
        """The approximate memory use of the waiting frames in bytes."""
        return self._waiting.held + self._waiting.waiting * _FRAME_BYTES

    @property
    def unanswered(self) -> tuple[int, int]:
        """The number of requests that await a response, and the total size of their payloads in bytes."""
        return len(self._waiting), self._waiting.asked

    @property
    def tokens(self) -> bool:
        """Whether frames without a header may follow."""
        return self._waiting.tokens

    def expected(self) -> Collection[int]:
        """Return the correlation ids of the requests that await a response."""
        return self._waiting.expected()

    def request_of(self, correlation_id: int) -> RequestPrefix | None:
        """Return the start of the first waiting request with a correlation id, or None."""
        return self._waiting.request_of(correlation_id)

    def decodes(self, payload: bytes) -> bool:
        """Return whether a payload decodes completely as the response to a waiting request."""
        request = self.request_of(read_correlation_id(payload))
        if request is None:
            return False
        try:
            decode_response(payload, request.api_key, request.version, catalog=self._catalog, refuse_trailing=True)
        except KafkaMsgsError:
            return False
        return True

    def add_request(self, frame: Frame) -> Iterator[Item]:
        """Add the next request; yield the resulting exchanges and faults."""
        try:
            outcomes = self._waiting.add_request(frame.data, frame, whole=not frame.missing)
        except TruncatedError:
            yield self._unrecognised(frame, REQUEST)
            return
        yield from map(self._item, outcomes)

    def add_response(self, frame: Frame) -> Iterator[Item]:
        """Add the next response; yield the resulting exchanges and faults."""
        yield from map(self._item, self._waiting.add_response(frame.data, frame))

    def exchange_of(self, request: Frame, response: Frame | None) -> Exchange:
        """Return the exchange of a request and a response that do not wait for each other."""
        return self._exchange(request, read_request_prefix(request.data), response)

    def close(self) -> Iterator[Item]:
        """Yield a fault or an exchange for each frame that is still waiting."""
        yield from map(self._item, self._waiting.close())

    def _item(self, outcome: Outcome[Frame, Frame]) -> Item:
        if isinstance(outcome, MatchedPair):
            if outcome.prefix is None:
                return self._token(outcome.question, outcome.answer)
            return self._exchange(outcome.question, outcome.prefix, outcome.answer)
        if isinstance(outcome, UnansweredRequest):
            if outcome.prefix is None:
                return self._token(outcome.question, None)
            return self._exchange(outcome.question, outcome.prefix, None)
        if outcome.correlation_id is None:
            return self._unrecognised(outcome.answer, RESPONSE)
        return self._orphan(outcome.answer, outcome.correlation_id)

    def _orphan(self, frame: Frame, number: int) -> CaptureFault:
        reason = f"a response of {frame.size} bytes with the correlation id {number}, which no request had"
        return self._fault(FaultKind.ORPHAN, reason, frame, RESPONSE)

    def _token(self, asked: Frame, answer: Frame | None) -> CaptureFault:
        answered = "unanswered" if answer is None else f"answered with {answer.size} bytes"
        reason = f"a token of {asked.size} bytes, {answered}"
        return self._fault(FaultKind.SASL, reason, asked, REQUEST, also=0 if answer is None else _captured(answer))

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

    def _exchange(self, request: Frame, prefix: RequestPrefix, response: Frame | None) -> Exchange:
        return Exchange(
            connection=self._connection,
            api_key=prefix.api_key,
            version=prefix.version,
            correlation_id=prefix.correlation_id,
            request=_sent(request),
            response=response and _sent(response),
            catalog=self._catalog,
        )


def _sent(frame: Frame) -> CapturedPayload:
    return CapturedPayload(
        payload=frame.data, size=frame.size, missing=frame.missing, time_us=frame.at, packet=frame.packet
    )


def _captured(frame: Frame) -> int:
    return SIZE_BYTES + frame.size - frame.missing
