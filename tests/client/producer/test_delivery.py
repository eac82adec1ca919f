"""Producer failures on an in-memory cluster: each record is written once and in order, or fails with an error."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, DeadlineError
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.init_producer_id_response import InitProducerIdResponse
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.messages.produce_response import ProduceResponse
from kafka_msgs.records import read_batches
from tests.support.produce_cluster import SMALL, Fault, Lost, ProduceCluster, Refused, Unheard, error_of, offsets

VALUES = [b"%04d" % number for number in range(300)]


def test_records_of_one_partition_stay_in_order_and_know_their_offsets() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    records = cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES
    assert offsets(records) == list(range(300))
    assert len(cluster.requests(ProduceRequest)) > 10


FAULTS: list[Fault] = [
    Lost(),
    Unheard(),
    Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER),
    Refused(ErrorCode.NOT_ENOUGH_REPLICAS),
    Refused(ErrorCode.REQUEST_TIMED_OUT),
    Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    Refused(ErrorCode.UNKNOWN_PRODUCER_ID),
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_after_a_fault_each_record_is_there_once_and_in_order(fault: Fault) -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    cluster.faults.extend([None, fault, None, fault])
    records = cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES
    assert offsets(records) == list(range(300))


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_first_batch_that_is_refused_does_not_lose_its_place(fault: Fault) -> None:
    cluster = ProduceCluster()
    cluster.logs[1].takes_any_first = True
    producer = cluster.producer(**SMALL)
    cluster.faults.append(fault)
    records = cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES
    assert offsets(records) == list(range(300))


@pytest.mark.parametrize("seed", range(40))
def test_any_mixture_of_faults_loses_and_repeats_nothing(seed: int) -> None:
    random = Random(seed)
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    cluster.faults.extend(random.choice([None, *FAULTS[:6]]) for _ in range(60))
    records = []
    for value in VALUES:
        records.append(cluster.add_one(producer, value, partition=random.randrange(3)))
        if random.random() < 0.02:
            moved = random.randrange(3)
            cluster.leaders[moved] = 1 + cluster.leaders[moved] % 3  # type: ignore[operator]
        if random.random() < 0.05:
            cluster.network.pass_time(random.random())
    cluster.flush(producer)
    for number, log in cluster.logs.items():
        sent = [value for value, (batch, _) in zip(VALUES, records, strict=True) if batch.partition == number]
        assert log.values == sent
    assert all(error_of(record) is None for record in records)


def test_a_broker_that_died_is_left_for_the_new_leader() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    records = cluster.add(producer, VALUES[:100], partition=1)
    cluster.flush(producer)
    cluster.network.stop(cluster.brokers[2])
    records += cluster.add(producer, VALUES[100:200], partition=1)
    cluster.network.pass_time(3)
    cluster.leaders[1] = 3
    records += cluster.add(producer, VALUES[200:], partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES
    assert offsets(records) == list(range(300))


def test_a_partition_without_a_leader_waits_for_one() -> None:
    cluster = ProduceCluster()
    cluster.leaders[1] = None
    producer = cluster.producer(**SMALL)
    records = cluster.add(producer, VALUES[:50], partition=1)
    cluster.network.pass_time(5)
    assert cluster.logs[1].values == []
    cluster.leaders[1] = 3
    cluster.flush(producer)
    assert offsets(records) == list(range(50))


def test_at_the_delivery_timeout_records_are_given_up() -> None:
    cluster = ProduceCluster()
    cluster.leaders[1] = None
    producer = cluster.producer(**SMALL, delivery_timeout=10.0)
    lost = cluster.add(producer, VALUES[:50], partition=1)
    kept = cluster.add(producer, VALUES[50:100], partition=2)
    start = cluster.network.now()
    cluster.flush(producer)
    assert 9 < cluster.network.now() - start < 12
    assert all(isinstance(error_of(record), DeadlineError) for record in lost)
    assert offsets(kept) == list(range(50))
    assert producer.accumulator.reserved == 0


def test_after_lost_records_the_others_go_on_with_a_new_epoch() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL, delivery_timeout=10.0, request_timeout=4.0)
    cluster.flush(producer)
    cluster.add(producer, VALUES[:20], partition=1)
    cluster.flush(producer)
    cluster.faults.extend([Lost()] * 400)
    lost = cluster.add(producer, VALUES[20:40], partition=1)
    cluster.network.pass_time(15)
    assert all(isinstance(error_of(record), DeadlineError) for record in lost)
    cluster.faults.clear()
    records = cluster.add(producer, VALUES[40:60], partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES[:20] + VALUES[40:60]
    assert offsets(records) == list(range(20, 40))
    epochs = {epoch for epoch, _ in cluster.logs[1].last.values()}
    assert epochs == {1}


def test_a_broker_that_forgot_the_producer_gets_the_records_under_a_new_epoch() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    cluster.add(producer, VALUES[:20], partition=1)
    cluster.flush(producer)
    cluster.logs[1].last.clear()
    cluster.logs[1].start = 20
    records = cluster.add(producer, VALUES[20:60], partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES[:60]
    assert offsets(records) == list(range(20, 60))


def test_an_error_that_stays_fails_only_its_own_batch() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=0.0)
    cluster.add(producer, VALUES[:1], partition=0)
    cluster.flush(producer)
    cluster.faults.append(Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message="not allowed"))
    (bad,) = cluster.add(producer, VALUES[1:2], partition=0)
    cluster.flush(producer)
    good = cluster.add(producer, VALUES[2:4], partition=0)
    cluster.flush(producer)
    error = error_of(bad)
    assert isinstance(error, BrokerError)
    assert (error.error, error.message, error.subject) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "not allowed",
        ("t", 0),
    )
    assert offsets(good) == [1, 2]
    assert cluster.logs[0].values == [VALUES[0], *VALUES[2:4]]


def test_one_partition_of_a_request_may_fail_alone() -> None:
    cluster = ProduceCluster()
    cluster.leaders = dict.fromkeys(range(3), 1)
    producer = cluster.producer(linger=0.01)
    cluster.faults.append(Refused(ErrorCode.INVALID_RECORD, partition=1))
    records = [cluster.add_one(producer, VALUES[number], partition=number) for number in range(3)]
    cluster.flush(producer)
    assert len(cluster.requests(ProduceRequest)) == 1
    assert [type(error_of(record)) for record in records] == [type(None), BrokerError, type(None)]


def test_a_batch_that_the_broker_finds_too_large_is_split() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=0.5)
    cluster.faults.extend([Refused(ErrorCode.MESSAGE_TOO_LARGE), Refused(ErrorCode.MESSAGE_TOO_LARGE)])
    records = cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES
    assert offsets(records) == list(range(300))
    assert len(cluster.requests(ProduceRequest)) > 3


def test_a_single_record_that_is_too_large_for_the_broker_is_an_error() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=0.0)
    cluster.faults.append(Refused(ErrorCode.MESSAGE_TOO_LARGE))
    (record,) = cluster.add(producer, VALUES[:1], partition=1)
    cluster.flush(producer)
    error = error_of(record)
    assert isinstance(error, BrokerError)
    assert error.error == ErrorCode.MESSAGE_TOO_LARGE


def test_a_broker_without_an_answer_is_left_after_the_request_timeout() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL, request_timeout=3.0)
    silent = cluster.brokers[2]
    handle = silent.handle
    silent.handle = lambda request: None if isinstance(request, ProduceRequest) else handle(request)
    records = cluster.add(producer, VALUES[:20], partition=1)
    cluster.network.pass_time(2.9)
    connections = cluster.network.connections
    cluster.network.pass_time(2)
    assert cluster.network.connections > connections
    silent.handle = handle
    cluster.flush(producer)
    assert offsets(records) == list(range(20))


def test_at_most_the_allowed_number_of_requests_is_in_flight() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL, max_in_flight=2)
    cluster.add(producer, VALUES[:1], partition=1)
    cluster.flush(producer)
    before = len(cluster.requests(ProduceRequest))
    broker = cluster.brokers[2]
    broker.handle = lambda request: None
    cluster.add(producer, VALUES, partition=1)
    cluster.network.pass_time(1)
    assert len(cluster.requests(ProduceRequest)) - before == 2


def test_a_producer_that_gets_no_id_gives_up_its_records_and_stays_refused() -> None:
    cluster = ProduceCluster()
    refused = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    cluster.answers["InitProducerIdRequest"] = deque([refused] * 3)
    producer = cluster.producer(linger=0.0)
    records = cluster.add(producer, VALUES[:20], partition=1)
    cluster.flush(producer)
    assert {getattr(error_of(record), "error", None) for record in records} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert len(cluster.requests(InitProducerIdRequest)) == 1
    with pytest.raises(BrokerError):
        cluster.add(producer, VALUES[:1], partition=1)
    assert cluster.requests(ProduceRequest) == []


def test_without_idempotence_batches_carry_no_producer() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL, idempotence=False)
    cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES
    assert cluster.requests(InitProducerIdRequest) == []
    (batch,) = read_batches(cluster.requests(ProduceRequest)[0].topic_data[0].partition_data[0].records)
    assert batch.producer_id == -1  # type: ignore[union-attr]


def test_with_acks_0_nothing_is_waited_for_and_offsets_are_unknown() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL, acks=0)
    records = cluster.add(producer, VALUES[:30], partition=1)
    cluster.flush(producer)
    assert offsets(records) == [-1] * 30
    cluster.network.pass_time(1)
    assert cluster.logs[1].values == VALUES[:30]
    assert {request.acks for request in cluster.requests(ProduceRequest)} == {0}


@pytest.mark.parametrize("newest", [3, 7, 9, 12, 13])
def test_every_version_of_the_request_carries_records(newest: int) -> None:
    cluster = ProduceCluster(produce=(3, newest))
    producer = cluster.producer(**SMALL)
    records = cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert offsets(records) == list(range(300))
    assert cluster.versions(ProduceRequest) == {newest}


def test_a_broker_that_asks_for_time_gets_it() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    cluster.add(producer, VALUES[:1], partition=1)
    cluster.flush(producer)
    cluster.answers["ProduceRequest"] = deque([ProduceResponse(throttle_time_ms=5000)])
    start = cluster.network.now()
    records = cluster.add(producer, VALUES[1:2], partition=1)
    cluster.flush(producer)
    assert cluster.network.now() - start >= 5
    assert offsets(records) == [1]


def test_a_session_that_ends_soon_is_renewed_before_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=0.0)
    cluster.add(producer, VALUES[:1], partition=1)
    cluster.flush(producer)
    core = producer._core
    asked: list[int] = []
    link_of = core.link

    def link(node: int, **options: Any) -> Any:
        asked.append(node)
        for each in core.directory._links.values():
            each.reauthenticate_at = None
        return link_of(node, **options)

    monkeypatch.setattr(core, "link", link)
    cluster.add(producer, VALUES[1:2], partition=1)
    cluster.flush(producer)
    assert asked == []
    for each in core.directory._links.values():
        each.reauthenticate_at = cluster.network.now()
    records = cluster.add(producer, VALUES[2:3], partition=1)
    cluster.flush(producer)
    assert asked == [2]
    assert offsets(records) == [2]
