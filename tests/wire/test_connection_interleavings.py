"""Connections under any event order, any chunking of bytes and any bytes, with linear work."""

from __future__ import annotations

import tracemalloc
from collections import deque
from contextlib import suppress
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka_msgs import HeartbeatRequest, HeartbeatResponse, MetadataRequest, MetadataResponse, ProduceRequest
from kafka_msgs.codec import codec_for
from kafka_msgs.errors import KafkaMsgsError, LocalProtocolError, ProtocolError, RemoteProtocolError
from kafka_msgs.messages.metadata_response import MetadataResponseTopic
from kafka_msgs.wire import (
    NEED_DATA,
    PAUSED,
    ClientConnection,
    ConnectionClosed,
    ConnectionState,
    NoResponse,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    TokenReceived,
    join_frames,
)
from tests.support.connection_pairs import in_single_bytes
from tests.support.line_counter import lines_run

SILENT: Final = ProduceRequest(acks=0, timeout_ms=1, topic_data=())
HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
HEARTBEAT_ANSWER: Final = bytes.fromhex("0000000c 00000001 00 00000000 0000 00")


class Interleavings(RuleBasedStateMachine):
    """A client and a server, and the bytes in transit between them.

    ``due`` has the opaques without an event, in sending order; ``silent`` has the opaques of requests without a
    response.
    """

    def __init__(self) -> None:
        super().__init__()
        self.client, self.server = ClientConnection(), ServerConnection()
        self.to_server, self.to_client = bytearray(), bytearray()
        self.due: deque[int] = deque()
        self.silent: deque[int] = deque()
        self.sent: list[int] = []
        self.read = 0
        self.answers: dict[int, int] = {}
        self.count = 0

    @rule(version=st.integers(0, 4))
    def send(self, version: int) -> None:
        self.count += 1
        self.due.append(self.count)
        self.sent.append(self.count)
        request = HeartbeatRequest(group_id="g", generation_id=self.count, member_id="m" * (self.count % 300))
        self.to_server += self.client.send(request, version, opaque=self.count)

    @rule()
    def send_silent(self) -> None:
        self.count += 1
        self.silent.append(self.count)
        self.to_server += self.client.send(SILENT, 9, opaque=self.count)

    @rule(size=st.integers(1, 400))
    def deliver_to_server(self, size: int) -> None:
        self.deliver(self.server, self.to_server, size)

    @rule(size=st.integers(1, 400))
    def deliver_to_client(self, size: int) -> None:
        self.deliver(self.client, self.to_client, size)

    @rule()
    def server_pulls(self) -> None:
        event = self.server.next_event()
        if event is NEED_DATA:
            return
        assert isinstance(event, RequestReceived)
        if event.needs_response:
            message = event.message()
            assert isinstance(message, HeartbeatRequest)
            assert message.generation_id == self.sent[self.read]
            self.read += 1

    @precondition(lambda self: self.server.oldest is not None)
    @rule(code=st.integers(0, 100))
    def server_answers(self, code: int) -> None:
        request = self.server.oldest
        assert request is not None
        self.answers[self.sent[len(self.answers)]] = code
        self.to_client += self.server.send_response(request, HeartbeatResponse(error_code=code))

    @rule()
    def client_pulls(self) -> None:
        event = self.client.next_event()
        if isinstance(event, NoResponse):
            assert event == NoResponse(self.silent.popleft(), expected=True)
        elif isinstance(event, ResponseReceived):
            assert event.opaque == self.due.popleft()
            message = event.message()
            assert isinstance(message, HeartbeatResponse)
            assert message.error_code == self.answers[event.opaque]
        else:
            assert event is NEED_DATA

    @invariant()
    def counts_agree(self) -> None:
        assert self.client.in_flight == len(self.due)
        assert self.client.state is self.server.state is ConnectionState.OPEN

    def teardown(self) -> None:
        """End the connection, wherever the bytes are: every opaque without an event gets one, in order."""
        self.client.receive_data(b"")
        expected = list(self.silent)
        left: list[int] = []
        try:
            while not isinstance(event := self.client.next_event(), ConnectionClosed):
                if isinstance(event, ResponseReceived):
                    assert event.opaque == self.due.popleft()
                else:
                    assert isinstance(event, NoResponse)
                    assert event.expected is (event.opaque in self.silent)
                    left.append(event.opaque)
        except RemoteProtocolError:
            left += [event.opaque for event in self.client.close()]
        assert left == [*expected, *self.due]
        assert self.client.in_flight == 0

    @staticmethod
    def deliver(target: ClientConnection | ServerConnection, pipe: bytearray, size: int) -> None:
        if pipe:
            target.receive_data(bytes(pipe[:size]))
            del pipe[:size]


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


# Any bytes


def with_tokens(guess_tokens: bool) -> ServerConnection:
    server = ServerConnection(max_frame_size=1000, guess_tokens=guess_tokens)
    server.receive_data(bytes.fromhex("00000011 0011 0000 00000001 ffff 0005 504c41494e"))
    server.next_event()
    server.send_payload(bytes.fromhex("00000001 0000 00000000"))
    return server


FRAMES: Final = [
    b"", bytes(3), bytes(8), bytes.fromhex("000c 0004 00000001 ffff 00 0267 00000001 02 6d 00 00"),
    bytes.fromhex("0000 0009 00000002 0001 61"), bytes.fromhex("0011 0000 00000001 ffff 0005 504c41494e"),
    bytes.fromhex("0012 0063 00000003 ffff"), HEARTBEAT_ANSWER[4:], bytes.fromhex("00000002 0023 00000000"),
]  # fmt: skip

damaged = st.lists(
    st.sampled_from(FRAMES).map(join_frames) | st.binary(max_size=20) | st.sampled_from([b"HTTP/1.1 200", b"\xff" * 4]),
    max_size=8,
).map(b"".join)


def drained(connection: ClientConnection | ServerConnection) -> None:
    """Pull and decode all available events. Only typed errors may occur."""
    for _ in range(200):
        try:
            event: Any = connection.next_event()
        except ProtocolError:
            assert connection.state is ConnectionState.ERROR
            return
        if event is NEED_DATA or event is PAUSED or isinstance(event, ConnectionClosed):
            return
        for name in ("message", "frame", "header"):
            if isinstance(event, RequestReceived) or (isinstance(event, ResponseReceived) and name != "header"):
                with suppress(KafkaMsgsError):
                    getattr(event, name)()
    raise AssertionError("the events do not end")


@settings(max_examples=300, deadline=None)
@given(data=damaged, cuts=st.lists(st.integers(0, 100), max_size=6), kind=st.integers(0, 4), ended=st.booleans())
def test_any_bytes_give_events_or_typed_errors(data: bytes, cuts: list[int], kind: int, ended: bool) -> None:
    connection: ClientConnection | ServerConnection
    if kind == 0:
        connection = ClientConnection(max_frame_size=1000)
        for version in (4, 0, 1):
            connection.send(HEARTBEAT, version)
    elif kind == 1:
        connection = ClientConnection(max_frame_size=1000)
        connection.send_payload(bytes.fromhex("0011 0000 00000001 ffff 0005 504c41494e"))
        connection.receive_data(bytes.fromhex("0000000a 00000001 0000 00000000"))
        connection.next_event()
        connection.send_token(b"abc")
    else:
        connection = ServerConnection(max_frame_size=1000) if kind == 2 else with_tokens(guess_tokens=kind == 3)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True):
        if data[start:end]:
            connection.receive_data(data[start:end])
        drained(connection)
    if ended:
        try:
            connection.receive_data(b"")
        except LocalProtocolError:
            pytest.fail("the end is always allowed")
        drained(connection)


# Growth


def drip(size: int) -> None:
    """Receive a response of ``size`` bytes in single bytes, and pull an event after each."""
    client = ClientConnection()
    client.send(HEARTBEAT, 4)
    for piece in in_single_bytes(join_frames(b"\0\0\0\1" + bytes(size))):
        client.receive_data(piece)
        event = client.next_event()
    assert isinstance(event, ResponseReceived)


def many(count: int, connection: ClientConnection) -> None:
    """Send ``count`` requests, then receive all the responses in one chunk."""
    for number in range(count):
        connection.send(HEARTBEAT, 4, opaque=number)
    answers = [number.to_bytes(4, "big") + HEARTBEAT_ANSWER[8:] for number in range(1, count + 1)]
    connection.receive_data(join_frames(*answers))
    for number in range(count):
        event = connection.next_event()
        assert isinstance(event, ResponseReceived)
        assert event.opaque == number


def served(count: int) -> None:
    """Receive ``count`` requests in one chunk, and respond in order."""
    client, server = ClientConnection(), ServerConnection()
    server.receive_data(b"".join(client.send(HEARTBEAT, 4) for _ in range(count)))
    events = [server.next_event() for _ in range(count)]
    for event in events:
        assert isinstance(event, RequestReceived)
        server.send_response(event, HeartbeatResponse())


@pytest.mark.parametrize("work", [drip, lambda count: many(count, ClientConnection()), served])
def test_twice_the_input_is_at_most_twice_the_work(work: Any) -> None:
    work(10)
    once, twice = lines_run(lambda: work(1000)), lines_run(lambda: work(2000))
    assert twice < 2.1 * once


def test_a_small_exchange_is_few_steps() -> None:
    """The overhead of a connection over the codec: Python lines between a request and its decoded response."""
    client = ClientConnection(client_id="me")

    def exchange(number: int) -> None:
        client.send(HEARTBEAT, 4, opaque=number)
        client.receive_data(HEARTBEAT_ANSWER.replace(b"\0\0\0\1", number.to_bytes(4, "big")))
        event = client.next_event()
        assert isinstance(event, ResponseReceived)
        event.message()

    encode, decode = codec_for(HeartbeatRequest, 4).encode, codec_for(HeartbeatResponse, 4).decode
    exchange(1)
    codec = lines_run(lambda: (encode(HEARTBEAT), decode(HEARTBEAT_ANSWER, 9)))
    assert lines_run(lambda: exchange(2)) - codec < 75


def most_memory(action: Any) -> int:
    tracemalloc.start()
    action()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_a_size_alone_takes_no_memory() -> None:
    """A peer that states only the size of a frame, within the limit or beyond it, causes no allocation."""
    client = ClientConnection()

    def stated() -> None:
        client.receive_data((90 * 2**20).to_bytes(4, "big") + b"a")
        client.next_event()

    assert most_memory(stated) < 20_000
    garbage = ServerConnection()
    garbage_bytes = b"GET / HTTP/1.1\r\n" * 100_000

    def refused() -> None:
        garbage.receive_data(garbage_bytes)
        with pytest.raises(RemoteProtocolError):
            garbage.next_event()
        for _ in range(100):
            garbage.receive_data(garbage_bytes)

    assert most_memory(refused) < 20_000


@pytest.mark.parametrize(("piece", "size"), [(1, 2**16), (100, 2**20), (5000, 2**20), (2**20, 2**20)])
def test_a_large_response_takes_its_size_twice(piece: int, size: int) -> None:
    data = join_frames(b"\0\0\0\1" + bytes(size))
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    client = ClientConnection()
    client.send(HEARTBEAT, 4)

    def receive() -> None:
        for each in pieces:
            client.receive_data(each)
        assert isinstance(client.next_event(), ResponseReceived)

    assert most_memory(receive) < 2.3 * size + 10_000


def test_a_large_response_is_not_gone_over_again_for_each_message() -> None:
    """A response of 5,000 topics is decoded once, however often events were pulled before."""
    rng = Random(3)
    client, server = ClientConnection(), ServerConnection()
    server.receive_data(client.send(MetadataRequest(topics=None), 12))
    request = server.next_event()
    assert isinstance(request, RequestReceived)
    topics = tuple(MetadataResponseTopic(name=f"topic-{number}") for number in range(5000))
    data = server.send_response(request, MetadataResponse(topics=topics))
    place = 0
    while place < len(data):
        step = rng.randint(1, 9000)
        client.receive_data(data[place : place + step])
        place += step
        event = client.next_event()
    assert isinstance(event, ResponseReceived)
    message = event.message()
    assert isinstance(message, MetadataResponse)
    assert message.topics == topics


def test_tokens_of_any_content_are_given_as_they_are() -> None:
    for guess_tokens in (False, True):
        server = with_tokens(guess_tokens)
        server.receive_data(join_frames(b"\0\x0c\0\5 looks like no request"))
        assert isinstance(server.next_event(), TokenReceived)
