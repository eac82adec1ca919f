"""Tests of the word count. The kafka-msgs plugin starts a separate broker for each test, in a few milliseconds."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from word_count import COUNTS, GROUP, LINES, count_words, read_counts

from kafka_msgs import ApiKey, ErrorCode
from kafka_msgs.broker.faults import Fail, Fault
from kafka_msgs.testing import committed_offsets, topic_records


@pytest.fixture
def servers(kafka_broker, kafka_new_topic):
    """A broker with the two topics."""
    kafka_new_topic(LINES, partitions=1)
    kafka_new_topic(COUNTS, partitions=2, cleanup_policy="compact")
    return kafka_broker.bootstrap_servers


def write(servers, *lines):
    async def send():
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for line in lines:
                await producer.send_and_wait(LINES, line.encode())

    asyncio.run(send())


def count(servers, lines):
    asyncio.run(asyncio.wait_for(count_words(servers, most=lines), timeout=60))


def test_words_are_counted(kafka_broker, servers):
    write(servers, "one tea", "two teas and one coffee")
    count(servers, lines=2)
    found = {bytes(record.key): bytes(record.value) for record in topic_records(kafka_broker, COUNTS)}
    assert found == {b"one": b"2", b"tea": b"1", b"two": b"1", b"teas": b"1", b"and": b"1", b"coffee": b"1"}
    assert committed_offsets(kafka_broker, GROUP) == {(LINES, 0): 2}


def test_a_second_run_goes_on_where_the_first_ended(servers):
    write(servers, "one tea")
    count(servers, lines=1)
    write(servers, "one coffee")
    count(servers, lines=1)
    assert asyncio.run(read_counts(servers)) == {"one": 2, "tea": 1, "coffee": 1}


def test_errors_of_the_broker_change_no_count(kafka_broker, servers):
    write(servers, "one tea")
    kafka_broker.faults.add(Fault(Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER), api=ApiKey.PRODUCE, times=2))
    kafka_broker.faults.add(Fault(Fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), api=ApiKey.JOIN_GROUP))
    count(servers, lines=1)
    assert len(topic_records(kafka_broker, COUNTS)) == 2
