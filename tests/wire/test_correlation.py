"""Matching of responses to requests: in order, by number, with missing responses and with SASL tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs import MetadataRequest, OffsetFetchRequest, ProduceRequest, SaslHandshakeRequest, iter_message_classes
from kafka_msgs.errors import TruncatedError
from kafka_msgs.wire import (
    Correlation,
    MatchedPair,
    OrphanResponse,
    Outcome,
    RequestPrefix,
    UnansweredRequest,
    encode_request,
    request_needs_response,
)


def request(number: int) -> bytes:
    return encode_request(MetadataRequest(), 9, correlation_id=number)


def response(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True) + b"body"


def prefix(number: int) -> RequestPrefix:
    return RequestPrefix(3, 9, number)


def answered(number: int) -> MatchedPair[str, str]:
    return MatchedPair(f"q{number}", f"a{number}", prefix(number))


def unanswered(number: int) -> UnansweredRequest[str]:
    return UnansweredRequest(f"q{number}", prefix(number))


def told(steps: str, correlation: Correlation[str, str] | None = None) -> list[Outcome[str, str]]:
    """Return the outcomes of requests and responses such as ``q1 a1``, and of the end."""
    made = correlation if correlation is not None else Correlation[str, str]()
    found: list[Outcome[str, str]] = []
    for step in steps.split():
        number = int(step[1:])
        if step[0] == "q":
            found += made.add_request(request(number), step)
        else:
            found += made.add_response(response(number), step)
    return found + made.close()


def test_answers_in_order() -> None:
    assert told("q1 a1 q2 q3 a2 a3") == [answered(1), answered(2), answered(3)]


def test_an_answer_may_be_seen_before_its_question() -> None:
    assert told("a1 a2 q1 q2") == [answered(1), answered(2)]


def test_questions_in_front_of_the_one_that_was_answered_are_not_answered() -> None:
    assert told("q1 q2 q3 a3") == [unanswered(1), unanswered(2), answered(3)]
    assert told("a9 a1 q1") == [OrphanResponse("a9", 9), answered(1)]


def test_numbers_that_are_used_again() -> None:
    assert told("q1 q1 a1 a1") == [answered(1), answered(1)]


def test_what_has_no_partner_at_the_end() -> None:
    assert told("q1 a2") == [unanswered(1), OrphanResponse("a2", 2)]


def test_an_answer_too_short_for_a_number() -> None:
    correlation: Correlation[str, str] = Correlation()
    assert correlation.add_response(b"\0\0\0", "short") == []
    assert correlation.close() == [OrphanResponse("short", None)]


def test_a_question_too_short_for_a_header() -> None:
    with pytest.raises(TruncatedError):
        Correlation[str, str]().add_request(bytes(7), "short")


def test_a_produce_without_acks_is_not_waited_for() -> None:
    correlation: Correlation[str, str] = Correlation()
    silent = encode_request(ProduceRequest(acks=0), 9, correlation_id=1, client_id="c")
    loud = encode_request(ProduceRequest(acks=1), 9, correlation_id=2)
    assert correlation.add_request(silent, "silent") == [UnansweredRequest("silent", RequestPrefix(0, 9, 1))]
    assert correlation.add_request(loud, "loud") == []
    assert len(correlation) == 1
    assert correlation.add_request(silent, "cut", whole=False) == [], "acks may be among what is missing"
    assert correlation.add_response(response(2), "answer") == [MatchedPair("loud", "answer", RequestPrefix(0, 9, 2))]


def test_which_requests_need_a_response() -> None:
    for cls in iter_message_classes():
        if cls.INFO.kind == "request":
            assert request_needs_response(cls()) == (cls is not ProduceRequest), "acks is 0 by default"
    assert [request_needs_response(ProduceRequest(acks=acks)) for acks in (-1, 0, 1)] == [True, False, True]


# SASL tokens, KIP-43


HANDSHAKE = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1)
TOKEN = b"\0user\0secret"


def test_tokens_after_a_handshake_of_version_0() -> None:
    correlation: Correlation[str, str] = Correlation()
    assert not correlation.tokens
    assert correlation.add_request(HANDSHAKE, "handshake") == []
    assert correlation.tokens
    assert correlation.add_response(response(1), "mechanisms") == [
        MatchedPair("handshake", "mechanisms", RequestPrefix(17, 0, 1))
    ]
    assert correlation.add_request(TOKEN, "token") == []
    assert correlation.add_response(b"", "done") == [MatchedPair("token", "done", None)]
    assert correlation.add_request(request(2), "q2") == []
    assert correlation.add_response(response(2), "a2") == [answered(2)]


def test_a_token_is_not_recognized_before_the_handshake_or_after_version_1() -> None:
    later = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, correlation_id=1)
    correlation: Correlation[str, str] = Correlation()
    correlation.add_request(later, "handshake")
    assert not correlation.tokens
    correlation.add_request(TOKEN, "token")
    assert correlation.close()[1] == UnansweredRequest("token", RequestPrefix(0x75, 0x7365, 0x72007365))


def test_a_request_behind_a_token_waits_for_the_answer_to_the_token() -> None:
    correlation: Correlation[str, str] = Correlation()
    correlation.add_request(HANDSHAKE, "handshake")
    correlation.add_response(response(1), "mechanisms")
    correlation.add_request(TOKEN, "token")
    assert correlation.add_request(request(2), "q2") == []
    assert correlation.add_response(response(5), "first") == [MatchedPair("token", "first", None)]
    assert correlation.add_response(response(2), "a2") == [answered(2)]


def test_what_came_before_an_unanswered_token_is_paired_when_the_token_is() -> None:
    correlation: Correlation[str, str] = Correlation()
    correlation.add_request(HANDSHAKE, "handshake")
    for number, item in ((1, "mechanisms"), (7, "token answer"), (2, "a2"), (3, "a3")):
        correlation.add_response(response(number), item)
    assert correlation.add_request(TOKEN, "token") == [MatchedPair("token", "token answer", None)]
    assert correlation.add_request(request(2), "q2") == [answered(2)]
    assert correlation.add_request(request(3), "q3") == [answered(3)]


# Bounds


def test_the_oldest_are_given_up_beyond_the_limit() -> None:
    correlation: Correlation[str, str] = Correlation(limit=2)
    assert told("q1 q2 q3 a3", correlation) == [unanswered(1), unanswered(2), answered(3)]
    assert told("a1 a2 a3 q3", Correlation(limit=2)) == [OrphanResponse("a1", 1), OrphanResponse("a2", 2), answered(3)]


def test_the_oldest_are_given_up_beyond_bytes_but_never_the_last() -> None:
    size = len(request(1))
    correlation: Correlation[str, str] = Correlation(limit_bytes=2 * size)
    assert [correlation.add_request(request(number), f"q{number}") for number in (1, 2, 3)] == [[], [], [unanswered(1)]]
    assert correlation.held == 2 * size
    tiny: Correlation[str, str] = Correlation(limit_bytes=1)
    assert tiny.add_request(request(1), "q1") == []
    assert tiny.add_response(response(1), "a1") == [answered(1)]
    assert (tiny.held, tiny.waiting) == (0, 0)


def test_what_is_expected() -> None:
    correlation: Correlation[str, str] = Correlation()
    correlation.add_request(request(4), "q4")
    correlation.add_request(encode_request(OffsetFetchRequest(), 2, correlation_id=5), "q5")
    assert set(correlation.expected()) == {4, 5}
    assert correlation.request_of(5) == RequestPrefix(9, 2, 5)
    assert correlation.request_of(6) is None
    assert (len(correlation), correlation.waiting) == (2, 2)


@given(
    answers=st.lists(st.booleans(), min_size=1, max_size=30),
    data=st.data(),
)
def test_any_interleaving_of_the_directions_gives_the_same_pairs(answers: list[bool], data: st.DataObject) -> None:
    """Each direction keeps its order; their interleaving must not matter."""
    numbers = [n for n, answer in enumerate(answers) if answer]
    asked, replied, steps = list(range(len(answers))), list(numbers), []
    while asked or replied:
        if asked and (not replied or data.draw(st.booleans())):
            steps.append(f"q{asked.pop(0)}")
        else:
            steps.append(f"a{replied.pop(0)}")
    found = told(" ".join(steps))
    assert [each for each in found if isinstance(each, MatchedPair)] == [answered(number) for number in numbers]
    assert {each.question for each in found if isinstance(each, UnansweredRequest)} == {
        f"q{number}" for number in range(len(answers)) if number not in numbers
    }
    assert not [each for each in found if isinstance(each, OrphanResponse)]
