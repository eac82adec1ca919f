"""Accepted records, batching and closing of a producer on an in-memory cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.errors import DeadlineError, ProducerClosedError, RecordWriteError
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.records import CompressionType, read_batches
from tests.support.produce_cluster import SMALL, ProduceCluster, error_of, offsets

VALUES = [b"%04d" % number for number in range(300)]


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


@pytest.mark.parametrize("codec", CompressionType)
def test_batches_have_the_codec_that_was_asked_for(codec: CompressionType) -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=0.01, compression=codec.name.lower())
    cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    (request,) = cluster.requests(ProduceRequest)
    (batch,) = read_batches(request.topic_data[0].partition_data[0].records)
    assert batch.codec == codec
    assert cluster.logs[1].values == VALUES


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
        cluster.network.run(producer.add_when_possible("unknown", b"v", None, None, 0, ()))
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
    assert cluster.network.task_count == 0


def test_what_cannot_be_delivered_in_time_is_given_up_by_close() -> None:
    cluster = ProduceCluster()
    cluster.leaders[1] = None
    producer = cluster.producer()
    records = cluster.add(producer, VALUES[:10], partition=1)
    with pytest.raises(DeadlineError):
        cluster.network.run(producer.close(cluster.network.now() + 2))
    assert all(isinstance(error_of(record), ProducerClosedError) for record in records)
    assert cluster.network.task_count == 0


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
