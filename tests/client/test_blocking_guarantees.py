"""Guarantees for blocking programs, on the embedded broker with real threads, signals, forks and exits."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Client, Consumer, Producer, TopicPartition
from kafka_msgs.errors import (
    ClientBrokenError,
    ClientClosedError,
    ConnectionFailedError,
    DeserializationError,
    UndeliveredError,
    UnknownTopicError,
    WakeupError,
)
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.records import ConsumerRecord
from tests.support.single_partition import create_topic, values

DEV = ("-X", "dev")
ENV = os.environ | {"PYTHONMALLOC": "pymalloc"}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """An embedded broker for all tests of this module."""
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """A topic of one partition, with the name of the test."""
    return create_topic(servers, request)


def test_a_quiet_producer_sends_after_its_linger(servers: str, topic: str) -> None:
    with Producer(servers, linger=0.01) as producer:
        producer.send(topic, b"a")
        deadline = time.monotonic() + 20
        while values(servers, topic) != [b"a"]:
            assert time.monotonic() < deadline
        assert values(servers, topic) == [b"a"]


def test_a_quiet_producer_loses_nothing_after_its_delivery_timeout(servers: str, topic: str) -> None:
    with Producer(servers, delivery_timeout=0.6, request_timeout=0.5) as producer:
        producer.send(topic, b"a")
        time.sleep(1.0)
        producer.send(topic, b"b")
        time.sleep(1.0)
    assert values(servers, topic) == [b"a", b"b"]


def test_lines_that_come_slowly_are_all_written(servers: str, topic: str) -> None:
    script = f"(echo a; sleep 1.2; echo b) | {sys.executable} -m kafka_msgs produce {topic}"
    command = f"{script} --bootstrap-server {servers} --timeout 1000"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, values(servers, topic)) == (0, [b"a", b"b"]), done.stderr


def test_a_program_that_forgets_to_close_delivers_at_its_exit(servers: str, topic: str) -> None:
    code = f"""
from kafka_msgs.client import Producer
producer = Producer({servers!r}, linger=60.0)
producer.send({topic!r}, b"a")
"""
    done = subprocess.run([sys.executable, *DEV, "-c", code], capture_output=True, timeout=60, check=False, env=ENV)
    assert (done.returncode, values(servers, topic)) == (0, [b"a"]), done.stderr


def test_a_collected_producer_warns_and_delivers(servers: str, topic: str) -> None:
    producer = Producer(servers, linger=60.0)
    producer.send(topic, b"a")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del producer
        gc.collect()
    assert [str(each.message) for each in caught] == ["unclosed Producer"]
    deadline = time.monotonic() + 20
    while values(servers, topic) != [b"a"]:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("threadless", [False, True])
def test_refused_records_are_raised_by_flush_and_by_the_end_of_the_block(
    servers: str, topic: str, threadless: bool
) -> None:
    with Admin(servers) as admin:
        from kafka_msgs.admin import ConfigChange, ConfigResource, ConfigResourceType

        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        admin.alter_configs({resource: [ConfigChange("max.message.bytes", "100")]}).all()
    failed: list[Any] = []
    producer = Producer(servers, threadless=threadless)
    for _ in range(5):
        producer.send(topic, bytes(200))
    with pytest.raises(UndeliveredError, match="5 records were not delivered; the first failure: Produce: MESSAGE_TOO"):
        producer.flush()
    producer.flush()
    producer.send(topic, bytes(200), on_delivery=lambda *report: failed.append(report))
    producer.flush()
    assert [(metadata, type(error).__name__) for metadata, error in failed] == [(None, "BrokerError")]
    delivery = producer.send(topic, bytes(200))
    with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
        delivery.result()
    producer.flush()
    producer.send(topic, bytes(200))
    with pytest.raises(UndeliveredError, match="1 record was not"):
        producer.close()


def test_on_failure_receives_what_was_given_up(servers: str) -> None:
    failed: list[Any] = []
    with Producer(servers, on_failure=failed.append, max_block=0.5) as producer:
        with pytest.raises(Exception, match="clients do not create topics"):
            producer.send("missing", b"a")
        with pytest.raises(UnknownTopicError):
            producer.partitions_for("missing")
    assert failed == []


def test_an_exception_in_the_block_does_not_wait_for_the_delivery_timeout(servers: str, topic: str) -> None:
    start = time.monotonic()
    with pytest.raises(ValueError, match="mine"), Producer(servers, linger=60.0) as producer:  # noqa: PT012
        producer.send(topic, b"a")
        raise ValueError("mine")
    assert time.monotonic() - start < 20
    assert values(servers, topic) == [b"a"]


def test_a_wrong_address_is_an_error_at_once() -> None:
    start = time.monotonic()
    with Producer("127.0.0.1:1") as producer, pytest.raises(ConnectionFailedError, match="refused"):
        producer.send("t", b"a")
    with Consumer("127.0.0.1:1", group_id="g") as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(ConnectionFailedError, match="refused"):
            consumer.poll(30.0)
    assert time.monotonic() - start < 20


def test_iteration_hands_out_each_record_once(servers: str, topic: str) -> None:
    with Producer(servers) as producer:
        for number in range(100):
            producer.send(topic, b"%d" % number)
    with Consumer(servers, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic)
        for record in consumer:
            assert record.value == b"0"
            consumer.commit(record)
            break
        place = TopicPartition(topic, 0)
        assert consumer.committed([place])[place].offset == 1
        assert next(iter(consumer)).value == b"1"
        assert [record.value for record in consumer.poll(5.0, max_records=2)] == [b"2", b"3"]
        assert next(iter(consumer)).value == b"4"
        assert consumer.lag(place) == 95
        assert consumer.high_watermark(place) == 100
        assert consumer.subscription == {topic}


def test_auto_commit_commits_what_is_handled(servers: str, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with Producer(servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
    options: dict[str, Any] = {"group_id": topic, "auto_commit": True, "auto_offset_reset": "earliest"}
    with pytest.raises(ValueError, match="mine"), Consumer(servers, **options) as consumer:  # noqa: PT012
        consumer.subscribe(topic)
        for number, _ in enumerate(consumer):
            if number == 3:
                raise ValueError("mine")
    with Consumer(servers, **options) as consumer:
        assert consumer.committed([place])[place].offset == 3
        consumer.subscribe(topic)
        assert [record.value for record in consumer.poll(20.0, max_records=2)] == [b"3", b"4"]
    with Consumer(servers, **options) as consumer:
        assert consumer.committed([place])[place].offset == 5


def test_who_does_not_poll_leaves_and_gets_no_record_of_the_next_owner(servers: str, topic: str) -> None:
    options: dict[str, Any] = {"group_id": topic, "auto_offset_reset": "earliest", "session_timeout": 6.0}
    with Producer(servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
    with (
        Consumer(servers, max_poll_interval=1.0, **options) as slow,
        Consumer(servers, **options) as other,
    ):
        slow.subscribe(topic, on_lost=lambda partitions: lost.extend(partitions))
        lost: list[TopicPartition] = []
        assert [record.value for record in slow.poll(20.0, max_records=2)] == [b"0", b"1"]
        other.subscribe(topic)
        deadline = time.monotonic() + 30
        while not other.assignment:
            other.poll(0.1)
            assert time.monotonic() < deadline
        assert slow.assignment == frozenset()
        assert slow.poll(0.3) == []
        assert lost == [TopicPartition(topic, 0)]


def test_a_second_thread_is_refused_by_a_consumer(servers: str, topic: str) -> None:
    errors: list[BaseException] = []
    with Consumer(servers) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def poll() -> None:
            try:
                consumer.poll(10.0)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=poll)
        thread.start()
        time.sleep(0.5)
        with pytest.raises(RuntimeError, match="one thread at a time"):
            consumer.poll(1.0)
        consumer.wakeup()
        thread.join(10)
        assert [type(error) for error in errors] == [WakeupError]
        assert consumer.poll(0.1) == []


def test_close_from_another_thread_ends_a_poll(servers: str, topic: str) -> None:
    errors: list[BaseException] = []
    consumer = Consumer(servers)
    consumer.assign([TopicPartition(topic, 0)])

    def poll() -> None:
        try:
            consumer.poll(30.0)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=poll)
    thread.start()
    time.sleep(0.5)
    consumer.close()
    thread.join(10)
    assert [type(error) for error in errors] == [ClientClosedError]
    with pytest.raises(ClientClosedError):
        consumer.poll(0.1)
    consumer.close()


def test_threads_share_a_producer_and_a_client(servers: str, topic: str) -> None:
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Producer(servers, batch_size=2000) as producer:

            def send(number: int) -> None:
                for each in range(300):
                    producer.send(topic, b"%d-%d" % (number, each))
                producer.client.call(MetadataRequest(topics=None))

            threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
    finally:
        sys.setswitchinterval(switch)
    found = values(servers, topic)
    for number in range(8):
        mine = [value for value in found if value.startswith(b"%d-" % number)]
        assert mine == [b"%d-%d" % (number, each) for each in range(300)]


def test_a_full_batch_does_not_make_a_send_wait_for_the_io_thread(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer(servers, batch_size=200) as producer:
        producer.send(topic, b"first").result()
        flows: list[Any] = []
        run = producer.client.network.run

        def count(flow: Any) -> Any:
            flows.append(flow)
            return run(flow)

        monkeypatch.setattr(producer.client.network, "run", count)
        for number in range(200):
            producer.send(topic, b"%d" % number)
        assert len(flows) <= 1  # for newer metadata
    assert values(servers, topic) == [b"first", *(b"%d" % number for number in range(200))]


@pytest.mark.parametrize("threadless", [False, True])
def test_headers_of_any_iterable_arrive_also_in_a_new_batch(servers: str, topic: str, threadless: bool) -> None:
    with Producer(servers, batch_size=200, threadless=threadless) as producer:
        for number in range(40):
            producer.send(topic, b"%d" % number, headers=((name, b"1") for name in "ab"))
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[Any] = []
        while len(found) < 40:
            found += consumer.poll(5.0)
    assert [[name for name, _ in record.headers] for record in found] == [["a", "b"]] * 40


def test_a_child_process_cannot_use_what_it_inherits(servers: str, topic: str) -> None:
    code = f"""
import os, sys
from kafka_msgs.client import Client, Consumer, Producer, TopicPartition
from kafka_msgs.errors import ForkedError
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.records import ConsumerRecord
producer, consumer = Producer({servers!r}), Consumer({servers!r}, auto_offset_reset="earliest")
small = Client({servers!r}, threadless=True)
small.call(MetadataRequest(topics=None))
producer.send({topic!r}, b"parent")
producer.flush()
consumer.assign([TopicPartition({topic!r}, 0)])
assert consumer.poll(20.0)
child = os.fork()
if not child:
    refused = 0
    for call in (lambda: producer.send({topic!r}, b"child"), lambda: consumer.poll(1.0), producer.flush,
                 lambda: small.call(MetadataRequest(topics=None))):
        try:
            call()
        except ForkedError:
            refused += 1
    producer.close(), consumer.close(), small.close()
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
producer.send({topic!r}, b"again")
producer.close(), consumer.close(), small.close()
"""
    done = subprocess.run(
        [sys.executable, *DEV, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=ENV,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert values(servers, topic) == [b"parent", b"again"]


class AlarmError(Exception):
    """The exception of the signal handler."""


@contextmanager
def alarms() -> Iterator[Callable[[int, Callable[[], None]], None]]:
    """Yield a function that runs a call, which an exception of a signal handler ends early if it takes long."""

    def ring(*_: Any) -> None:
        raise AlarmError

    def alarmed(number: int, call: Callable[[], None]) -> None:
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0001 * (number % 20))
                call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except AlarmError:
            return

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield alarmed
    finally:
        signal.signal(signal.SIGALRM, before)
        gc.collect()  # the standard library may leave a socket that it was just creating


INTERRUPTED_ROUNDS = 200
MAY_LEAVE_SOCKETS = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@MAY_LEAVE_SOCKETS
@pytest.mark.parametrize("threadless", [False, True])
def test_exceptions_of_signal_handlers_end_one_call_only(servers: str, topic: str, threadless: bool) -> None:
    delivered: list[bytes] = []
    with alarms() as alarmed:
        producer = Producer(servers, threadless=threadless, linger=0.001)

        def send(value: bytes) -> None:
            with suppress(ClientBrokenError, UndeliveredError):
                delivery = producer.send(topic, value)
                producer.flush(10.0)
                delivery.result()
                delivered.append(value)

        for number in range(INTERRUPTED_ROUNDS):
            alarmed(number, partial(send, b"%d" % number))
        producer.send(topic, b"end").result(20.0)
        with suppress(UndeliveredError):
            producer.close()
    found = values(servers, topic)
    assert found[-1] == b"end"
    assert set(delivered) <= set(found)
    assert len(found) == len(set(found))


@MAY_LEAVE_SOCKETS
@pytest.mark.parametrize("threadless", [False, True])
def test_signal_handlers_lose_and_repeat_no_record_of_a_consumer(servers: str, topic: str, threadless: bool) -> None:
    expected = [b"%d" % number for number in range(INTERRUPTED_ROUNDS)]
    with Producer(servers) as producer:
        for value in expected:
            producer.send(topic, value)
    found: list[bytes] = []
    place = TopicPartition(topic, 0)
    records: list[ConsumerRecord] = []
    with alarms() as alarmed:
        consumer = Consumer(
            servers, group_id=topic, threadless=threadless, auto_offset_reset="earliest", fetch_max_wait=0.001
        )
        consumer.assign([place])

        def read() -> None:
            records[:] = consumer.poll(1.0, max_records=1)
            consumer.commit()

        for number in range(INTERRUPTED_ROUNDS):
            records.clear()
            alarmed(number, read)
            found += [bytes(each.value or b"") for each in records]
            assert found == expected[: len(found)]
        while len(found) < len(expected):
            found += [bytes(each.value or b"") for each in consumer.poll(5.0)]
        assert consumer.position(place) == len(expected)
        consumer.commit()
        consumer.close()
    assert found == expected


def test_a_blocking_call_in_a_callback_is_refused_instead_of_hanging(servers: str, topic: str) -> None:
    errors: list[BaseException] = []
    with Producer(servers) as producer:

        def delivered(metadata: Any, error: Any) -> None:
            try:
                producer.flush()
            except RuntimeError as refusal:
                errors.append(refusal)

        producer.send(topic, b"a", on_delivery=delivered)
        producer.flush()
    assert len(errors) == 1


def test_records_are_serialized_and_deserialized(servers: str, topic: str) -> None:
    with Producer(servers, value_serializer=str.encode, key_serializer=lambda key: b"%d" % key) as producer:
        for text in ("1", "two", "3"):
            producer.send(topic, text, key=7)
    with Consumer(servers, auto_offset_reset="earliest", value_deserializer=int, key_deserializer=int) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[Any] = consumer.poll(20.0)
        assert [(record.key, record.value) for record in found] == [(7, 1)]
        with pytest.raises(DeserializationError, match="at offset 1 cannot be deserialized: ValueError"):
            consumer.poll(20.0)
        consumer.seek({TopicPartition(topic, 0): 2})
        values: list[Any] = [record.value for record in consumer.poll(20.0)]
        assert values == [3]


def test_a_client_that_is_not_used_leaves_nothing_behind(servers: str) -> None:
    before = threading.active_count()
    for cls in (Client, Consumer, Producer, Admin):
        with cls(servers):
            pass
    assert threading.active_count() == before
