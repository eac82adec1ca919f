"""The client logs retried errors, once for each state, and the error at the deadline has them as its cause."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs.client import TopicPartition
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.sequences import SequenceManager
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, DeadlineError
from kafka_msgs.messages.fetch_response import FetchResponse
from kafka_msgs.messages.heartbeat_response import HeartbeatResponse
from kafka_msgs.messages.init_producer_id_response import InitProducerIdResponse
from kafka_msgs.messages.metadata_response import MetadataResponse
from tests.support.simulated_groups import GroupCluster, User

T0 = TopicPartition("t", 0)
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.fixture
def cluster() -> GroupCluster:
    """A cluster with records in one partition."""
    found = GroupCluster({"t": 1})
    found.produce("t", 0, [b"1", b"2"])
    return found


def reader(cluster: GroupCluster) -> User:
    """Return a consumer of the partition."""
    user = User(cluster, group_id=None)
    user.core.set_partitions([T0])
    return user


def answering(cluster: GroupCluster, api: str, change: Callable[[Any, Any], Any]) -> None:
    """Replace the responses of one API. ``change`` receives the request and the original response."""

    def override(node: int, request: Any) -> Any:
        if request.INFO.name != f"{api}Request":
            return None
        return change(request, lambda: getattr(cluster, f"on_{api}")(node, request))

    cluster.override = override


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings so far, and clear them."""
    found = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    "code", [UNKNOWN, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR]
)
def test_an_error_of_a_fetch_is_logged_once_and_passes(
    cluster: GroupCluster, caplog: pytest.LogCaptureFixture, code: ErrorCode
) -> None:
    answering(cluster, "Fetch", lambda request, answer: FetchResponse(error_code=code))
    user = reader(cluster)
    assert user.poll(10.0) == []
    (warning,) = warnings(caplog)
    assert f"{code.name} ({code.value})" in warning
    user.poll(120.0)
    assert len(warnings(caplog)) == 2
    cluster.override = None
    assert user.values(2) == [b"1", b"2"]


def failing(cluster: GroupCluster, code: ErrorCode) -> None:
    """Respond to fetches with an error for each partition."""

    def change(request: Any, answer: Callable[[], Any]) -> Any:
        answered: Any = cluster._fetch(request)[0]
        failed = (
            evolve(topic, partitions=tuple(_failed(each, code) for each in topic.partitions))
            for topic in answered.responses
        )
        return FetchResponse(responses=tuple(failed))

    answering(cluster, "Fetch", change)


def _failed(data: Any, code: ErrorCode) -> Any:
    return evolve(data, error_code=code, records=None)


def test_an_unknown_error_of_a_partition_is_logged_and_retried_as_in_kafka(
    cluster: GroupCluster, caplog: pytest.LogCaptureFixture
) -> None:
    failing(cluster, UNKNOWN)
    user = reader(cluster)
    assert user.poll(10.0) == []
    (warning,) = warnings(caplog)
    assert "UNKNOWN_SERVER_ERROR (-1) for t-0" in warning
    cluster.override = None
    assert user.values(2) == [b"1", b"2"]


@pytest.mark.parametrize(
    "code", [ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_REQUEST, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
)
def test_other_errors_of_a_partition_are_raised_as_in_kafka(cluster: GroupCluster, code: ErrorCode) -> None:
    failing(cluster, code)
    with pytest.raises(BrokerError, match=code.name):
        reader(cluster).poll(10.0)


def test_a_leader_that_moves_is_no_warning_unless_it_lasts(
    cluster: GroupCluster, caplog: pytest.LogCaptureFixture
) -> None:
    failing(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    user = reader(cluster)
    user.poll(0.2)
    assert not warnings(caplog)
    user.poll(20.0)
    assert len(warnings(caplog)) == 1


def test_an_automatic_commit_that_fails_is_logged(
    cluster: GroupCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = User(cluster, auto_commit=True, auto_commit_interval=1.0)
    user.core.subscribe(["t"])
    assert user.values(2) == [b"1", b"2"]
    cluster.committed.clear()
    monkeypatch.setattr(cluster.group("g"), "may_commit", lambda request: ErrorCode.GROUP_AUTHORIZATION_FAILED)
    user.poll(10.0)
    (warning,) = warnings(caplog)
    assert "GROUP_AUTHORIZATION_FAILED" in warning


def test_a_membership_that_is_lost_is_logged(cluster: GroupCluster, caplog: pytest.LogCaptureFixture) -> None:
    user = User(cluster)
    user.core.subscribe(["t"])
    assert user.values(2) == [b"1", b"2"]
    lost = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    answering(cluster, "Heartbeat", lambda request, answer: lost)
    user.poll(10.0)
    (warning,) = warnings(caplog)
    assert "UNKNOWN_MEMBER_ID" in warning


def test_metadata_that_is_refused_is_logged_and_the_cause_at_the_deadline(
    cluster: GroupCluster, caplog: pytest.LogCaptureFixture
) -> None:
    answering(cluster, "Metadata", lambda request, answer: MetadataResponse(error_code=UNKNOWN))
    core = cluster.core()
    with pytest.raises(DeadlineError, match="UNKNOWN_SERVER_ERROR"):
        cluster.network.run(core.refresh(("t",), deadline=core.deadline(5.0)))
    assert len(warnings(caplog)) == 1


def test_a_refused_producer_id_is_the_cause_at_the_deadline(cluster: GroupCluster) -> None:
    refused = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def override(node: int, request: Any) -> Any:
        return refused if request.INFO.name == "InitProducerIdRequest" else None

    cluster.override = override
    config = ProducerConfig(delivery_timeout=5.0, request_timeout=1.0)
    with pytest.raises(DeadlineError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        cluster.network.run(SequenceManager(transactional=False).init_producer_id(cluster.core(), config))


def test_a_failure_is_a_warning_again_after_a_minute_or_when_it_has_passed(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    retries = RetryLog(logging.getLogger("kafka_msgs.client.test"), lambda: now)
    for _ in range(100):
        retries.failed("key", DeadlineError(waiting_for="an answer"))
    assert len(warnings(caplog)) == 1
    now = 60.0
    retries.failed("key", DeadlineError(waiting_for="an answer"))
    retries.passed("key")
    retries.failed("key", DeadlineError(waiting_for="an answer"))
    assert len(warnings(caplog)) == 2


def test_expected_failures_warn_at_the_fifth_however_far_apart(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    retries = RetryLog(logging.getLogger("kafka_msgs.client.test"), lambda: now)
    warned = []
    for number in range(1, 7):
        retries.failed("key", DeadlineError(waiting_for="an answer"), expected=True)
        warned += [number] if warnings(caplog) else []
        caplog.clear()
        now += 45.0
    assert warned[0] == 5
