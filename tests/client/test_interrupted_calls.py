"""Blocking calls interrupted by an exception at any opcode, as by a signal handler: no record is lost or repeated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from threading import Thread
from typing import Any

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer, TopicPartition
from tests.support.interruptions import interrupt

COUNT = 100


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """An embedded broker for all tests of this module."""
    with EmbeddedBroker() as broker:
        with Admin(broker.bootstrap_servers) as admin, Producer(broker.bootstrap_servers, batch_size=500) as producer:
            admin.create_topics([NewTopic("full", 1), NewTopic("open", 1), NewTopic("closed", 1)]).all()
            for number in range(COUNT):
                producer.send("full", b"%d" % number)
        yield broker.bootstrap_servers


def reader(servers: str, topic: str, **options: Any) -> Consumer:
    """Return a consumer of a topic from its start."""
    consumer = Consumer(servers, auto_offset_reset="earliest", **options)
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def written(servers: str, topic: str, last: bytes) -> list[bytes]:
    """Return the values of a topic up to one of them."""
    found: list[bytes] = []
    with reader(servers, topic) as consumer:
        while not found or found[-1] != last:
            found += [bytes(each.value or b"") for each in consumer.poll(5.0)]
    return found


@pytest.mark.parametrize(("topic", "linger"), [("open", 0.05), ("closed", 0.0)])
def test_a_send_that_is_interrupted_sends_its_record_once_or_not_at_all(
    servers: str, topic: str, linger: float
) -> None:
    sent: list[bytes] = []
    with Producer(servers, linger=linger) as producer:
        producer.send(topic, b"first").result(5.0)
        step, completed = 0, 0
        while completed < 3:
            value = b"%d" % step
            outcome = interrupt(step, partial(producer.send, topic, value))
            completed += not outcome.interrupted
            if not outcome.interrupted:
                sent.append(value)
            step += 1
        assert step > 30
        producer.send(topic, b"last").result(5.0)
    found = written(servers, topic, b"last")
    assert len(found) == len(set(found))
    assert set(sent) <= set(found)
    assert found[1:-1] == sorted(found[1:-1], key=int)


def test_records_are_not_discarded_while_another_thread_opens_a_batch(servers: str) -> None:
    """A batch that is opened meanwhile would belong neither to the old records nor to the new ones."""
    with Producer(servers, threadless=True) as producer:
        core = producer.core
        result = producer.send("open", b"discarded")
        discard = Thread(target=core.on_interrupt, args=(InterruptedError("stopped"),))
        with core._lock:
            discard.start()
            discard.join(0.2)
            assert core.accumulator.incomplete
        discard.join()
        assert not core.accumulator.incomplete
        with pytest.raises(InterruptedError):
            result.result(5.0)


def test_polls_that_are_interrupted_lose_and_repeat_nothing(servers: str) -> None:
    found: list[bytes] = []
    expected = [b"%d" % number for number in range(COUNT)]
    steps = 0
    with reader(servers, "full", max_records=3, fetch_max_wait=0.001) as consumer:
        step = 0
        while len(found) < 6:
            outcome = interrupt(step, lambda: consumer.poll(5.0))
            found += [bytes(each.value or b"") for each in outcome.value or ()]
            assert found == expected[: len(found)]
            step = step + 1 if outcome.interrupted else 0
            steps = max(steps, step)
    assert steps > 100


def test_iterations_that_are_interrupted_lose_and_repeat_nothing(servers: str) -> None:
    found: list[bytes] = []
    with reader(servers, "full", fetch_max_wait=0.001) as consumer:
        step = 0
        while len(found) < 2:
            outcome = interrupt(step, lambda: next(iter(consumer)))
            if outcome.value is not None:
                found.append(bytes(outcome.value.value or b""))
            step = step + 1 if outcome.interrupted else 0
    assert found == [b"%d" % number for number in range(2)]


def test_flushes_and_commits_that_are_interrupted_leave_their_objects_usable(servers: str) -> None:
    place = TopicPartition("full", 0)
    with Producer(servers) as producer, Consumer(servers, group_id="g") as consumer:
        for call in (producer.flush, lambda: consumer.commit({place: 7}), lambda: consumer.committed([place])):
            step = 0
            while interrupt(step, call).interrupted:
                step += 1
            assert step > 10
            call()
        assert consumer.committed([place])[place].offset == 7


def test_a_close_that_is_interrupted_can_be_repeated(servers: str) -> None:
    step, interrupted = 0, True
    while interrupted:
        producer, value = Producer(servers), b"close %d" % step
        producer.send("closed", value)
        interrupted = interrupt(step, producer.close).interrupted
        producer.close()
        step += 9
    assert step > 18
