"""What a producer does when things go wrong, on a cluster in memory: each record once, in order, or an error."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import pytest

from kafka_msgs.client.producer.batch import ProducerBatch
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, DeadlineError, ProducerClosedError, RecordWriteError
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.messages.produce_response import ProduceResponse
from kafka_msgs.records import Compression, read_batches
from tests.support.produce_cluster import Fault, Lost, ProduceCluster, Refused, Unheard

VALUES = [b"%04d" % number for number in range(300)]
SMALL = {"batch_size": 200, "linger": 0.0}
"""About ten records for each batch."""


def offsets(records: list[tuple[ProducerBatch, int]]) -> list[int]:
    """Return the offsets of records, which must all be delivered."""
    found = [batch.place_of(index) for batch, index in records]
    return [batch.metadata(index, 0).offset for batch, index in found]


def error_of(record: tuple[ProducerBatch, int]) -> Exception | None:
    """Return why a record was given up."""
    batch, index = record
    return batch.place_of(index)[0].error


def test_records_of_one_partition_stay_in_order_and_know_their_offsets() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    records = cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES
    assert offsets(records) == list(range(300))
    assert len(cluster.requests(ProduceRequest)) > 10


def test_records_without_a_key_fill_batches_of_all_partitions() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    cluster.add(producer, VALUES)
    cluster.flush(producer)
    assert sorted(map(bytes, filter(None, cluster.values()))) == VALUES
    assert all(len(log.values) > 30 for log in cluster.logs.values())


def test_records_with_a_key_stay_together() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    for number, value in enumerate(VALUES):
        cluster.add_one(producer, value, key=b"%d" % (number % 5))
    cluster.flush(producer)
    for number in range(5):
        wanted = VALUES[number::5]
        assert [[each for each in log.values if each in wanted] for log in cluster.logs.values()].count(wanted) == 1


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


@pytest.mark.parametrize("codec", Compression)
def test_batches_have_the_codec_that_was_asked_for(codec: Compression) -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=0.01, compression=codec.name.lower())
    cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    (request,) = cluster.requests(ProduceRequest)
    (batch,) = read_batches(request.topic_data[0].partition_data[0].records)
    assert batch.codec == codec
    assert cluster.logs[1].values == VALUES


@pytest.mark.parametrize("newest", [3, 7, 9, 12, 13])
def test_every_version_of_the_request_carries_records(newest: int) -> None:
    cluster = ProduceCluster(produce=(3, newest))
    producer = cluster.producer(**SMALL)
    records = cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    assert offsets(records) == list(range(300))
    assert cluster.versions(ProduceRequest) == {newest}


def test_linger_collects_records_and_a_flush_does_not_wait_for_it() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=5.0)
    cluster.add(producer, VALUES[:10], partition=1)
    cluster.network.pass_time(4)
    assert cluster.requests(ProduceRequest) == []
    cluster.network.pass_time(2)
    assert len(cluster.requests(ProduceRequest)) == 1
    cluster.add(producer, VALUES[10:20], partition=1)
    start = cluster.network.now()
    cluster.flush(producer)
    assert cluster.network.now() - start < 1
    assert cluster.logs[1].values == VALUES[:20]


def test_a_full_buffer_makes_room_by_sending() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=100.0, batch_size=1000, buffer_memory=4000)
    most = 0
    for value in VALUES * 10:
        cluster.add_one(producer, value)
        most = max(most, producer.accumulator.reserved)
    assert most <= 4000
    cluster.flush(producer)
    assert len(cluster.values()) == 3000
    assert producer.accumulator.reserved == 0
    assert not producer.accumulator.incomplete


def test_a_full_buffer_that_stays_full_is_an_error_in_time() -> None:
    cluster = ProduceCluster()
    cluster.leaders[1] = None
    producer = cluster.producer(batch_size=1000, buffer_memory=4000, max_block=7.0)
    start = cluster.network.now()
    with pytest.raises(DeadlineError, match="room in the buffer"):
        cluster.add(producer, [b"x" * 100] * 1000, partition=1)
    assert 7 <= cluster.network.now() - start < 9


def test_a_topic_that_is_not_there_is_an_error_in_time() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(max_block=3.0)
    with pytest.raises(DeadlineError, match="partitions of the topic 'unknown'"):
        cluster.network.run(producer.add_slowly("unknown", b"v", None, None, 0, ()))
    assert cluster.network.now() < 1010


@pytest.mark.parametrize("partition", [-1, 3, True, "0"])
def test_a_partition_that_is_not_there_is_an_error(partition: Any) -> None:
    cluster = ProduceCluster()
    producer = cluster.producer()
    with pytest.raises(RecordWriteError, match="partition"):
        cluster.add_one(producer, b"v", partition=partition)


def test_a_record_larger_than_a_request_is_an_error_at_once() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(max_request_size=1000)
    with pytest.raises(RecordWriteError, match="larger than the limit of 1000"):
        cluster.add_one(producer, b"v" * 1001)
    assert cluster.requests(ProduceRequest) == []


def test_a_record_larger_than_a_batch_has_a_batch_of_its_own() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(batch_size=100)
    records = cluster.add(producer, [b"v" * 5000, b"w", b"x" * 5000], partition=0)
    cluster.flush(producer)
    assert offsets(records) == [0, 1, 2]
    assert records[0][0] is not records[2][0]


def test_a_closed_producer_delivered_what_it_had_and_takes_nothing() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=50.0)
    records = cluster.add(producer, VALUES[:10], partition=1)
    cluster.network.run(producer.close(cluster.network.now() + 10))
    assert offsets(records) == list(range(10))
    with pytest.raises(ProducerClosedError):
        cluster.add_one(producer, b"late")
    assert cluster.network.running == 0


def test_what_cannot_be_delivered_in_time_is_given_up_by_close() -> None:
    cluster = ProduceCluster()
    cluster.leaders[1] = None
    producer = cluster.producer()
    records = cluster.add(producer, VALUES[:10], partition=1)
    with pytest.raises(DeadlineError):
        cluster.network.run(producer.close(cluster.network.now() + 2))
    assert all(isinstance(error_of(record), ProducerClosedError) for record in records)
    assert cluster.network.running == 0


def test_new_partitions_are_used_when_they_are_known() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    cluster.add(producer, VALUES[:10])
    cluster.flush(producer)
    cluster.logs[3] = type(cluster.logs[0])()
    cluster.leaders[3] = 1
    cluster.network.pass_time(400)
    for _ in range(2):  # the first records make the producer ask
        cluster.add(producer, VALUES)
        cluster.flush(producer)
    assert len(cluster.logs[3].values) > 10


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
            each.renew_at = None
        return link_of(node, **options)

    monkeypatch.setattr(core, "link", link)
    cluster.add(producer, VALUES[1:2], partition=1)
    cluster.flush(producer)
    assert asked == []
    for each in core.directory._links.values():
        each.renew_at = cluster.network.now()
    records = cluster.add(producer, VALUES[2:3], partition=1)
    cluster.flush(producer)
    assert asked == [2]
    assert offsets(records) == [2]
