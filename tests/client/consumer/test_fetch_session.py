"""Fetch sessions: full requests, incremental requests, and errors (KIP-227)."""

from __future__ import annotations

from uuid import UUID

from kafka_msgs.client.consumer.fetch_session import FetchSession, SessionRequest
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic

T, U = UUID(int=1), UUID(int=2)


def at(number: int, offset: int) -> FetchPartition:
    """Return a partition to fetch."""
    return FetchPartition(partition=number, fetch_offset=offset)


def test_the_first_request_is_full_and_later_ones_name_changes() -> None:
    session = FetchSession()
    first = session.build({(T, 0): at(0, 5), (T, 1): at(1, 5), (U, 0): at(0, 1)})
    assert first == SessionRequest(
        0, 0,
        (FetchTopic(topic_id=T, partitions=(at(0, 5), at(1, 5))), FetchTopic(topic_id=U, partitions=(at(0, 1),))),
        (),
    )  # fmt: skip
    session.handle_response(77)
    second = session.build({(T, 0): at(0, 9), (T, 1): at(1, 5)})
    assert second == SessionRequest(
        77, 1, (FetchTopic(topic_id=T, partitions=(at(0, 9),)),), (ForgottenTopic(topic_id=U, partitions=(0,)),)
    )
    session.handle_response(77)
    assert session.build({(T, 0): at(0, 9), (T, 1): at(1, 5)}) == SessionRequest(77, 2, (), ())
    assert session.includes((T, 1)) == at(1, 5)
    assert session.includes((U, 0)) is None


def test_topics_without_ids_are_named() -> None:
    session = FetchSession()
    assert session.build({("t", 3): at(3, 0)}).topics == (FetchTopic(topic="t", partitions=(at(3, 0),)),)
    session.handle_response(1)
    assert session.build({}).forgotten == (ForgottenTopic(topic="t", partitions=(3,)),)


def test_a_broker_without_sessions_gets_full_requests() -> None:
    session = FetchSession()
    for _ in range(3):
        request = session.build({(T, 0): at(0, 5)})
        assert (request.session_id, request.session_epoch, len(request.topics)) == (0, 0, 1)
        session.handle_response(0)


def test_after_a_lost_answer_the_session_is_replaced_and_after_a_lost_session_forgotten() -> None:
    session = FetchSession(77, 5)
    session.handle_error()
    request = session.build({(T, 0): at(0, 5)})
    assert (request.session_id, request.session_epoch, len(request.topics)) == (77, 0, 1)
    session.handle_error(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    assert session.build({}).session_id == 77
    session.handle_error(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert session.build({})[:2] == (0, 0)


def test_epochs_begin_again_at_one() -> None:
    session = FetchSession(77, 2**31 - 1)
    session.handle_response(77)
    assert session.epoch == 1


def test_the_last_request_closes_the_session() -> None:
    session = FetchSession()
    assert session.close() is None
    session.handle_response(77)
    assert session.close() == SessionRequest(77, -1, (), ())
    assert session.close() is None
