"""Two paired connections over transports in memory: every pause of a side is followed by a resume.

Every interleaving of sending, receiving, responding and reporting must end with all bytes delivered, all exchanges
reported, and both sides reading again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs import HeartbeatRequest, MetadataRequest, MetadataResponse
from kafka_msgs.capture import CaptureFault, Endpoint, Exchange
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.messages.metadata_response import MetadataResponseBroker
from kafka_msgs.tap import TapConfig
from kafka_msgs.tap.backlog import Backlog
from kafka_msgs.tap.relay import ClientSide, HeldBytes, Relay, RelayConfig
from kafka_msgs.wire import FrameSplitter, encode_request, encode_response, join_frames, read_request_prefix

SECONDS: Final = 30
IN_FLIGHT: Final = 4_000
BACKLOG: Final = 30_000
WRITING: Final = 5_000
NOT_A_FRAME: Final = b"\xff" * 8
BROKER: Final = Endpoint("192.0.2.1", 9092)


class Wire(asyncio.Transport):
    """A connection whose other end is this test: it reads bytes on demand, and holds views until then."""

    def __init__(self, side: asyncio.BufferedProtocol) -> None:
        super().__init__({"peername": ("192.0.2.7", 50_000)})
        self.side = side
        self.taken = b""
        self.ended = self.lost = False
        self._unsent: list[memoryview] = []
        self._incoming = b""
        self._eof_comes = self._closing = self._full = self._paused = False

    # Actions of the other end

    def send(self, data: bytes) -> None:
        self._incoming += data
        self.deliver()

    def send_eof(self) -> None:
        self._eof_comes = True
        self.deliver()

    def take(self, size: int) -> None:
        """Read some of the written bytes."""
        while self._unsent and size > 0:
            piece = self._unsent.pop(0)
            self.taken += bytes(piece[:size])
            if len(piece) > size:
                self._unsent.insert(0, piece[size:])
            size -= len(piece)
        if self._full and self.get_write_buffer_size() <= WRITING // 4:
            self._full = False
            self.side.resume_writing()
        if self._closing and not self._unsent:
            self._lose()

    def deliver(self) -> None:
        """Pass received bytes to the proxy."""
        while self._incoming and not self._paused and not self._closing:
            buffer = memoryview(self.side.get_buffer(-1))
            size = min(len(buffer), len(self._incoming))
            buffer[:size] = self._incoming[:size]
            self._incoming = self._incoming[size:]
            self.side.buffer_updated(size)
        if self._eof_comes and not self._incoming and not self._paused and not self._closing:
            self._eof_comes = False
            if not self.side.eof_received():
                self.close()

    # The asyncio interface for the proxy

    def write(self, data: Any) -> None:
        assert not self.ended
        if not self.lost:
            self._unsent.append(memoryview(data))
        if self.get_write_buffer_size() > WRITING and not self._full:
            self._full = True
            self.side.pause_writing()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._unsent))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        assert not self._paused
        self._paused = True

    def resume_reading(self) -> None:
        assert self._paused
        self._paused = False
        asyncio.get_running_loop().call_soon(self.deliver)

    def close(self) -> None:
        self._closing = True
        if not self._unsent:
            self._lose()

    def abort(self) -> None:
        self._closing = True
        self._unsent.clear()
        self._lose()

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            asyncio.get_running_loop().call_soon(self.side.connection_lost, None)


class Stage:
    """A relay between a client and a broker, both played by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, exchanges: bool = True) -> None:
        self.seen: list[Item] = []
        self.pairs: set[Relay] = set()
        self.may_connect = asyncio.Event()
        self._brokers: list[Wire] = []
        self._requests = FrameSplitter()
        self._read = 0
        monkeypatch.setattr("kafka_msgs.tap.backlog._LIMIT", BACKLOG)
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", self._connected)
        self.backlog = Backlog(self.seen.append, on_full=self._pause, on_drained=self._resume)
        tap = TapConfig(translate=lambda host, port: ("proxy", port), in_flight=IN_FLIGHT, exchanges=exchanges)
        rules = RelayConfig(tap=tap, backlog=self.backlog, pairs=self.pairs, tls={}, held=HeldBytes(2**30))
        self.pair = Relay(1, (BROKER,), rules)
        side = ClientSide(self.pair)
        self.client = Wire(side)
        side.connection_made(self.client)

    @property
    def broker(self) -> Wire:
        return self._brokers[0]

    @property
    def connected(self) -> bool:
        return bool(self._brokers)

    async def connect(self) -> None:
        self.may_connect.set()
        await _rounds()

    def next_requests(self) -> list[bytes]:
        """Return the new requests that the broker has received."""
        new = self.broker.taken[self._read :]
        self._read += len(new)
        return list(self._requests.feed(new))

    async def rest(self, answer: Callable[[bytes], bytes] | None) -> None:
        """Run until activity stops; without ``answer`` the broker sends no more responses."""
        before = None
        while before != (before := (len(self.client.taken), len(self.broker.taken), len(self.seen))):
            self.broker.take(2**30)
            if answer is not None:
                self.broker.send(b"".join(map(answer, self.next_requests())))
            self.client.take(2**30)
            await _rounds()

    async def _connected(self, factory: Callable[[], Any], *address: Any, **tls: Any) -> tuple[Wire, Any]:
        await self.may_connect.wait()
        side = factory()
        wire = Wire(side)
        side.connection_made(wire)
        self._brokers.append(wire)
        return wire, side

    def _pause(self) -> None:
        self.pair.wait_for_backlog()

    def _resume(self) -> None:
        self.pair.go_on()


async def _rounds(count: int = 200) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def _in_time(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS))


def _asked(number: int, size: int = 0) -> bytes:
    return join_frames(encode_request(HeartbeatRequest(group_id="g" * size), 4, correlation_id=number))


def _answer(request: bytes, size: int = 0) -> bytes:
    return join_frames(read_request_prefix(request).correlation_id.to_bytes(4, "big") + bytes(size))


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(("ask", "answer", "client takes", "broker takes", "rounds", "connect")), st.integers(1, 9)
    ),
    max_size=60,
)


@pytest.mark.parametrize("exchanges", [True, False])
@settings(max_examples=150, deadline=None)
@given(actions=ACTIONS, size=st.sampled_from((0, 700, 7_000)), ends=st.booleans())
def test_every_interleaving_comes_to_rest(
    *, exchanges: bool, actions: list[tuple[str, int]], size: int, ends: bool
) -> None:
    """All bytes arrive in order, and at the end neither side is paused. A client may end its side before that."""

    async def work(monkeypatch: pytest.MonkeyPatch) -> None:
        stage = Stage(monkeypatch, exchanges=exchanges)
        waiting: list[bytes] = []
        asked = 0
        for action, count in actions:
            if action == "ask":
                stage.client.send(b"".join(_asked(asked + each, size) for each in range(count)))
                asked += count
            elif action == "client takes":
                stage.client.take(count * 500)
            elif action == "rounds":
                await _rounds(count)
            elif action == "connect":
                await stage.connect()
            elif stage.connected and action == "broker takes":
                stage.broker.take(count * 500)
                waiting += stage.next_requests()
            elif stage.connected:
                stage.broker.send(b"".join(_answer(each, size) for each in waiting[:count]))
                del waiting[:count]
        await stage.connect()
        if ends:
            stage.client.send_eof()
        stage.broker.send(b"".join(_answer(each, size) for each in waiting))
        await stage.rest(lambda request: _answer(request, size))
        everything = [_asked(number, size) for number in range(asked)]
        assert stage.broker.taken == b"".join(everything)
        assert stage.client.taken == b"".join(_answer(each[4:], size) for each in everything)
        assert stage.broker.ended is ends
        assert not stage.client.side.holds | stage.broker.side.holds  # type: ignore[attr-defined]
        seen = [item.correlation_id for item in stage.seen if isinstance(item, Exchange)]
        assert seen == (list(range(asked)) if exchanges else [])
        stage.pair.end()
        await _rounds()
        assert not stage.pairs

    with pytest.MonkeyPatch.context() as monkeypatch:
        _in_time(work(monkeypatch))


@pytest.mark.parametrize("who", ["client", "broker"])
def test_a_direction_that_is_not_read_holds_nobody(monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    """The relay does not wait for unreadable responses, however many requests follow, and vice versa."""

    async def work() -> None:
        stage = Stage(monkeypatch)
        await stage.connect()
        requests = b"".join(map(_asked, range(500)))
        answers = b"".join(_answer(_asked(number)[4:], 50) for number in range(500))
        (stage.client if who == "client" else stage.broker).send(NOT_A_FRAME)
        for at in range(0, max(len(requests), len(answers)), 1000):
            stage.client.send(requests[at : at + 1000])
            stage.broker.send(answers[at : at + 1000])
        await stage.rest(None)
        assert stage.broker.taken == (NOT_A_FRAME if who == "client" else b"") + requests
        assert stage.client.taken == (NOT_A_FRAME if who == "broker" else b"") + answers
        assert stage.pair.client is not None
        assert not stage.pair.client.holds
        fault = next(item for item in stage.seen if isinstance(item, CaptureFault))
        assert fault.reason.startswith("a frame of -1 bytes")

    _in_time(work())


def test_no_request_is_given_up_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of requests in flight, the addresses in each response are replaced."""

    async def work() -> None:
        stage = Stage(monkeypatch)
        await stage.connect()
        count = 3_000
        for number in range(count):
            stage.client.send(join_frames(encode_request(MetadataRequest(topics=()), 12, correlation_id=number)))
        brokers = (MetadataResponseBroker(node_id=1, host="kafka.example", port=9092),)

        def answer(request: bytes) -> bytes:
            number = read_request_prefix(request).correlation_id
            return join_frames(encode_response(MetadataResponse(brokers=brokers), 12, correlation_id=number))

        await stage.rest(answer)
        assert stage.client.taken.count(b"proxy") == count
        assert b"kafka.example" not in stage.client.taken

    _in_time(work())


def test_the_end_of_a_client_is_passed_on_after_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client ends its side while it is paused: the broker receives everything, then the end; then it responds."""

    async def work() -> None:
        stage = Stage(monkeypatch)
        await stage.connect()
        requests = b"".join(_asked(number, 2_000) for number in range(20))
        stage.client.send(requests)
        stage.client.send_eof()
        await _rounds()
        assert stage.pair.client is not None
        assert stage.pair.client.holds
        assert not stage.broker.ended
        await stage.rest(_answer)
        assert stage.broker.taken == requests
        assert stage.broker.ended
        assert len(stage.client.taken) == 20 * len(_answer(bytes(8)))

    _in_time(work())


def test_the_end_of_a_broker_comes_after_what_it_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads late still receives every byte. After that, both connections close."""

    async def work() -> None:
        stage = Stage(monkeypatch)
        await stage.connect()
        stage.client.send(b"".join(map(_asked, range(9))))
        stage.broker.take(2**20)
        answers = b"".join(_answer(request, 3_000) for request in stage.next_requests())
        stage.broker.send(answers)
        stage.broker.send_eof()
        for _ in range(len(answers) // 500 + 1):
            assert stage.pairs
            stage.client.take(500)
            await _rounds(5)
        await _rounds()
        assert stage.client.taken == answers
        assert not stage.pairs

    _in_time(work())


@pytest.mark.parametrize("connected", [True, False])
def test_a_client_that_is_gone_takes_its_broker_with_it(monkeypatch: pytest.MonkeyPatch, *, connected: bool) -> None:
    """The relay may be connecting to the broker, or both sides may be paused."""

    async def work() -> None:
        before = asyncio.all_tasks()
        stage = Stage(monkeypatch)
        if connected:
            await stage.connect()
            stage.client.send(b"".join(_asked(number, 2_000) for number in range(20)))
            assert stage.pair.client is not None
            assert stage.pair.client.holds
            stage.broker.take(2**20)
        stage.client.abort()
        await _rounds()
        stage.may_connect.set()
        await _rounds()
        assert not stage.pairs
        assert stage.connected is connected
        assert asyncio.all_tasks() == before

    _in_time(work())


def test_the_end_of_the_proxy_ends_connections_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undelivered bytes are lost; pending requests are reported as unanswered."""

    async def work() -> None:
        stage = Stage(monkeypatch)
        await stage.connect()
        stage.client.send(b"".join(_asked(number, 2_000) for number in range(20)))
        stage.pair.end()
        await _rounds()
        assert stage.pairs
        stage.pair.abort()
        await _rounds()
        assert not stage.pairs
        stage.backlog.finish()
        assert all(isinstance(item, CaptureFault) or item.response is None for item in stage.seen)
        assert stage.seen

    _in_time(work())
