"""Matching of requests and responses on one connection.

A broker responds to the requests of a connection in order, and each response has the correlation id of its request.
Once a request has a response, earlier requests receive none. A Produce request with acks=0 has no response. After a
SaslHandshake of version 0, both sides send SASL tokens without a header (KIP-43). A Kafka client tracks the same order
in ``org.apache.kafka.clients.InFlightRequests``. This module implements these rules and does no input or output.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from attrs import frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.codec import Buffer
from kafka_msgs.validators import check_int
from kafka_msgs.wire.headers import RequestPrefix, looks_like_request, read_correlation_id, read_request_prefix
from kafka_msgs.wire.payloads import payload_needs_response

__all__ = [
    "Correlation",
    "MatchedPair",
    "OrphanResponse",
    "Outcome",
    "UnansweredRequest",
]

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")

_CORRELATION_ID_BYTES: Final = 4


@frozen
class MatchedPair(Generic[Q, A]):
    """A question and its answer. ``prefix`` is the start of the request. It is None for a SASL token."""

    question: Q
    answer: A
    prefix: RequestPrefix | None


@frozen
class UnansweredRequest(Generic[Q]):
    """A question without an answer: the broker sends none, or it has answered a later question."""

    question: Q
    prefix: RequestPrefix | None


@frozen
class OrphanResponse(Generic[A]):
    """An answer without a question. ``correlation_id`` is None if the answer is too short to contain one."""

    answer: A
    correlation_id: int | None


Outcome: TypeAlias = MatchedPair[Q, A] | UnansweredRequest[Q] | OrphanResponse[A]


class _Waiting(NamedTuple, Generic[T]):
    """An item that waits for the other direction. ``prefix`` is None for tokens and answers."""

    item: T
    size: int
    number: int | None
    prefix: RequestPrefix | None = None


class _Queue(Generic[T]):
    """The waiting items of one direction, oldest first. ``numbers`` counts their correlation ids."""

    def __init__(self) -> None:
        self.held = 0
        self.numbers: Counter[int] = Counter()
        self._waiting: deque[_Waiting[T]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[_Waiting[T]]:
        return iter(self._waiting)

    @property
    def first(self) -> _Waiting[T]:
        return self._waiting[0]

    def add(self, waiting: _Waiting[T]) -> None:
        self._waiting.append(waiting)
        self.held += waiting.size
        if waiting.number is not None:
            self.numbers[waiting.number] += 1

    def take(self) -> _Waiting[T]:
        waiting = self._waiting.popleft()
        self.held -= waiting.size
        if waiting.number is not None:
            self.numbers[waiting.number] -= 1
            if not self.numbers[waiting.number]:
                del self.numbers[waiting.number]
        return waiting


class Correlation(Generic[Q, A]):
    """The questions and answers of a connection that await each other.

    The two directions may be added in any order relative to each other. A question or an answer is a value of the
    caller, for example a frame and the time of its capture. At most ``limit`` frames of each direction wait, and at
    most ``limit_bytes`` bytes of both directions together. Above a limit the oldest frames are dropped. A proxy that
    must not lose a request stops reading requests while ``len(correlation)`` is at the limit. Raises ``OptionError``
    for a limit that is not an integer.
    """

    def __init__(
        self, *, limit: int = 1000, limit_bytes: int = 128 * 2**20, catalog: MessageCatalog | None = None
    ) -> None:
        check_int("Correlation", "limit", limit)
        check_int("Correlation", "limit_bytes", limit_bytes)
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._catalog = catalog
        self._questions: _Queue[Q] = _Queue()
        self._answers: _Queue[A] = _Queue()
        self._tokens = False

    def __len__(self) -> int:
        """Return the number of questions that await their answers."""
        return len(self._questions)

    @property
    def waiting(self) -> int:
        """The number of waiting frames in both directions."""
        return len(self._questions) + len(self._answers)

    @property
    def held(self) -> int:
        """The total size of the waiting payloads in bytes."""
        return self._questions.held + self._answers.held

    @property
    def asked(self) -> int:
        """The total size of the waiting questions' payloads in bytes."""
        return self._questions.held

    @property
    def tokens(self) -> bool:
        """Whether frames without a header may follow, after a SaslHandshake of version 0."""
        return self._tokens

    def expected(self) -> Collection[int]:
        """Return the correlation ids of the waiting questions."""
        return self._questions.numbers.keys()

    def request_of(self, correlation_id: int) -> RequestPrefix | None:
        """Return the start of the first waiting request with a correlation id, or None."""
        if correlation_id not in self._questions.numbers:
            return None
        return next(each.prefix for each in self._questions if each.number == correlation_id)

    def add_request(self, payload: Buffer, question: Q, *, whole: bool = True) -> list[Outcome[Q, A]]:
        """Add the next request; return the resulting outcomes in order.

        ``whole`` is False if ``payload`` is only the beginning of the request. Raises ``TruncatedError`` for a payload
        that is too short for a request and is not a token.
        """
        if self._tokens and whole and not looks_like_request(payload, catalog=self._catalog):
            self._questions.add(_Waiting(question, len(payload), None))
            return self._settle(None)
        prefix = read_request_prefix(payload)
        self._tokens |= prefix.api_key == ApiKey.SASL_HANDSHAKE and prefix.version == 0
        if whole and not payload_needs_response(payload, self._catalog):
            return [UnansweredRequest(question, prefix)]
        self._questions.add(_Waiting(question, len(payload), prefix.correlation_id, prefix))
        return self._settle(prefix.correlation_id)

    def add_response(self, payload: Buffer, answer: A) -> list[Outcome[Q, A]]:
        """Add the next response; return the resulting outcomes in order."""
        number = read_correlation_id(payload) if len(payload) >= _CORRELATION_ID_BYTES else None
        self._answers.add(_Waiting(answer, len(payload), number))
        return self._settle(number)

    def close(self) -> list[Outcome[Q, A]]:
        """End the connection; return an outcome for each waiting question and answer."""
        return self._give_up(len(self._questions), len(self._answers))

    def _settle(self, number: int | None) -> list[Outcome[Q, A]]:
        """Match the pairs that the latest item with this correlation id completes. No other new pairs are possible."""
        found: list[Outcome[Q, A]] = []
        if self._answers and self._first_is_token():
            found += self._settle_tokens()
        elif number is not None:
            found += self._pair(number)
        while self._too_many(self._questions):
            found += self._give_up(1, 0)
        while self._too_many(self._answers):
            found += self._give_up(0, 1)
        return found

    def _settle_tokens(self) -> Iterator[Outcome[Q, A]]:
        """Match tokens with answers in order. The answer to a request after the tokens may already wait."""
        while self._answers and self._first_is_token():
            yield MatchedPair(self._questions.take().item, self._answers.take().item, None)
            if not self._first_is_token():
                yield from self._pair_any()

    def _pair_any(self) -> Iterator[Outcome[Q, A]]:
        numbers = {each.number for each in takewhile(_has_header, self._questions)}
        for each in tuple(self._answers):
            if each.number is not None and each.number in numbers:
                yield from self._pair(each.number)

    def _pair(self, number: int) -> list[Outcome[Q, A]]:
        """Match the first question and the first answer with this number, unless a token precedes the question."""
        if number not in self._questions.numbers or number not in self._answers.numbers:
            return []
        asked = _place(takewhile(_has_header, self._questions), number)
        if asked is None:
            return []
        found = self._give_up(asked, _place(self._answers, number) or 0)
        question, answer = self._questions.take(), self._answers.take()
        return [*found, MatchedPair(question.item, answer.item, question.prefix)]

    def _give_up(self, questions: int, answers: int) -> list[Outcome[Q, A]]:
        taken = [self._questions.take() for _ in range(questions)]
        left = [self._answers.take() for _ in range(answers)]
        return [
            *(UnansweredRequest(each.item, each.prefix) for each in taken),
            *(OrphanResponse(each.item, each.number) for each in left),
        ]

    def _first_is_token(self) -> bool:
        return bool(self._questions) and not _has_header(self._questions.first)

    def _too_many(self, waiting: _Queue[Q] | _Queue[A]) -> bool:
        return len(waiting) > self._limit or (len(waiting) > 1 and self.held > self._limit_bytes)


def _has_header(question: _Waiting[Any]) -> bool:
    return question.prefix is not None


def _place(waiting: Iterable[_Waiting[Any]], number: int) -> int | None:
    return next((place for place, each in enumerate(waiting) if each.number == number), None)
