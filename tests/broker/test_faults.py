"""Fault injection: clients observe the requested faults, and the broker injects no others."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker import EmbeddedBroker, ManualClock
from kafka_msgs.broker.faults import (
    Delay,
    Disconnect,
    DropResponse,
    Effect,
    Fail,
    Fault,
    NeverRespond,
    SwapResponses,
    TrickleResponse,
    TruncateResponse,
    WrongCorrelationId,
    WrongFrameSize,
)
from kafka_msgs.client import Client, Consumer, Producer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.messages.produce_response import ProduceResponse
from kafka_msgs.wire import ClientConnection, FrameSplitter
from tests.support.cluster_topics import new_name
from tests.support.virtual_brokers import VirtualCluster, batch

WAIT: Final = 30


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker
        assert broker.problems == []


@pytest.fixture
def broker(running: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    yield running
    running.faults.clear()


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = new_name("topic")
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1)])
    return name


def test_an_error_is_answered_as_often_as_asked(broker: EmbeddedBroker) -> None:
    fault = broker.faults.add(
        Fault(Fail(ErrorCode.GROUP_AUTHORIZATION_FAILED), api=ApiKey.LIST_GROUPS, after=1, times=2)
    )
    with Client(broker.bootstrap_servers) as client:
        codes = [client.call(ListGroupsRequest(), retry=False).error_code for _ in range(4)]
    assert codes == [0, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED, 0]
    assert fault.hits == 2


def test_a_fault_is_for_the_requests_that_match(broker: EmbeddedBroker) -> None:
    broker.faults.add(Fault(Fail(ErrorCode.UNKNOWN_SERVER_ERROR), client_id="other", times=None))
    broker.faults.add(Fault(Fail(ErrorCode.UNKNOWN_SERVER_ERROR), broker=1, times=None))
    broker.faults.add(Fault(Fail(ErrorCode.UNKNOWN_SERVER_ERROR), matches=lambda call: call.version > 90, times=None))
    with Client(broker.bootstrap_servers) as client:
        assert client.call(ListGroupsRequest()).error_code == 0


@pytest.mark.parametrize(
    "effect",
    [
        Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        Fail(ErrorCode.NOT_ENOUGH_REPLICAS),
        Delay(50),
        Disconnect(),
        Disconnect(reset=False),
        DropResponse(),
        TruncateResponse(0),
        TruncateResponse(5),
        TruncateResponse(20),
        TrickleResponse(7, 1),
        WrongCorrelationId(),
    ],
    ids=repr,
)
def test_an_idempotent_producer_writes_each_record_once_whatever_happens(
    broker: EmbeddedBroker, topic: str, effect: Effect
) -> None:
    values = [b"value-%d" % number for number in range(20)]
    fault = broker.faults.add(Fault(effect, api=ApiKey.PRODUCE, times=3))
    with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, value)
            producer.flush()
    assert fault.hits == 3
    with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        found: list[bytes] = []
        while len(found) < len(values):
            found += [bytes(each.value or b"") for each in consumer.poll(WAIT)]
    assert found == values


def test_a_full_disk_refuses_what_is_written() -> None:
    virtual = VirtualCluster.start()
    virtual.create("orders")
    codes: list[int] = []
    for full in (True, False):
        virtual.cluster.faults.disk_full = full
        answer = virtual.decoded(virtual.produce("orders", 0, batch(b"value")), ProduceResponse)
        codes.append(answer.responses[0].partition_responses[0].error_code)
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, 0]


def exchange(broker: EmbeddedBroker) -> bytes:
    """Send one request, and return the received bytes, up to the first frame or the end of the connection."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(ClientConnection().send(MetadataRequest(topics=()), 9))
        received = b""
        while True:
            data = connection.recv(65536)
            if not data:
                return received
            received += data
            if len(received) >= 4 and len(received) - 4 >= int.from_bytes(received[:4], "big"):
                return received


def test_the_bytes_of_damaged_answers(broker: EmbeddedBroker) -> None:
    whole = exchange(broker)
    for effect, expected in (
        (TruncateResponse(11), whole[:11]),
        (DropResponse(), b""),
        (WrongFrameSize(-2), (len(whole) - 6).to_bytes(4, "big") + whole[4:]),
        (WrongCorrelationId(5), whole[:4] + (int.from_bytes(whole[4:8], "big") + 5).to_bytes(4, "big") + whole[8:]),
        (TrickleResponse(9, 1), whole),
    ):
        broker.faults.add(Fault(effect, api=ApiKey.METADATA))
        assert exchange(broker) == expected, effect


def test_two_answers_have_swapped_correlation_ids(broker: EmbeddedBroker) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    client = ClientConnection()
    requests = [client.send(MetadataRequest(topics=()), 9), client.send(ListGroupsRequest(), 4)]
    broker.faults.add(Fault(SwapResponses(), api=ApiKey.METADATA))
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(b"".join(requests))
        frames = FrameSplitter()
        found: list[bytes] = []
        while len(found) < 2:
            found += map(bytes, frames.feed(connection.recv(65536)))
    numbers = [int.from_bytes(request[8:12], "big") for request in requests]
    assert [int.from_bytes(each[:4], "big") for each in found] == numbers[::-1]
    assert len(found[0]) > len(found[1])


@pytest.mark.parametrize("effect", [DropResponse(reset=True), TruncateResponse(0, reset=True), Disconnect()])
def test_a_connection_is_reset(broker: EmbeddedBroker, effect: Effect) -> None:
    broker.faults.add(Fault(effect, api=ApiKey.METADATA))
    with pytest.raises(ConnectionResetError):
        exchange(broker)


def test_a_delay_follows_the_clock_of_the_test() -> None:
    clock = ManualClock()
    with EmbeddedBroker(clock=clock) as broker:
        broker.faults.add(Fault(Delay(1000), api=ApiKey.METADATA))
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=0.2) as connection:
            connection.sendall(ClientConnection().send(MetadataRequest(topics=()), 9))
            with pytest.raises(TimeoutError):
                connection.recv(1)
            clock.advance(1000)
            connection.settimeout(WAIT)
            assert connection.recv(4)


def test_an_ignored_request_gets_no_answer(broker: EmbeddedBroker) -> None:
    broker.faults.add(Fault(NeverRespond(), api=ApiKey.METADATA))
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=0.2) as connection:
        connection.sendall(ClientConnection().send(MetadataRequest(topics=()), 9))
        with pytest.raises(TimeoutError):
            connection.recv(1)


def test_the_same_seed_gives_the_same_faults(broker: EmbeddedBroker) -> None:
    def outcomes(seed: int) -> list[int]:
        broker.faults.random(seed, [Fail(ErrorCode.UNKNOWN_SERVER_ERROR)], 0.5, apis=[ApiKey.LIST_GROUPS])
        with Client(broker.bootstrap_servers) as client:
            found = [client.call(ListGroupsRequest(), broker_id=0, retry=False).error_code for _ in range(40)]
        broker.faults.clear()
        return found

    first = outcomes(1)
    assert first == outcomes(1)
    assert 0 < sum(map(bool, first)) < 40


@pytest.mark.parametrize(
    "make", [lambda: Delay(-1), lambda: TrickleResponse(0, 1), lambda: Fault(DropResponse(), after=-1)]
)
def test_faults_that_cannot_be(make: object) -> None:
    assert callable(make)
    with pytest.raises(OptionError):
        make()
