"""Connection setup and loss: the client retries transient failures, and reports all other failures immediately.

Simulated time, except for the tests of both drivers at the end.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from kafka_msgs.client import AsyncClient, Client, ClientConfig
from kafka_msgs.client.dial import NEXT_ATTEMPT
from kafka_msgs.client.dns import alternate_families
from kafka_msgs.client.flow import Flow, Future
from kafka_msgs.client.network import Address, Endpoint, TransportReceiver
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.errors import ConnectionFailedError, DeadlineError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.describe_cluster_response import DescribeClusterResponse
from kafka_msgs.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kafka_msgs.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kafka_msgs.wire import encode_response, join_frames
from tests.support.faulty_server import FaultyServer, greet, receive
from tests.support.simulated_network import SimulatedNetwork

IP4, IP6 = socket.AF_INET, socket.AF_INET6
AGAIN = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
UNKNOWN = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def endpoint(ip: str) -> Endpoint:
    """An IP address of the broker ``b:9092``."""
    return Endpoint(Address("b", 9092), IP6 if ":" in ip else IP4, (ip, 9092))


class Hosts(SimulatedNetwork):
    """One broker, ``b:9092``, with several IP addresses. An address may respond, refuse, or drop all packets."""

    def __init__(self) -> None:
        super().__init__()
        self.behaviour: dict[str, str] = {}
        self.answers: list[Sequence[Endpoint] | OSError | None] = []
        """The next DNS results; None means no result. Later lookups return all addresses."""
        self.tried: list[tuple[str, float]] = []
        self.look_ups = 0
        self.begin = self.time
        self.broker = self.add("b:9092", self.handle)

    def handle(self, request: Request[Any]) -> Response:
        """Respond as the only broker of the cluster."""
        name = request.INFO.name
        if name == "MetadataRequest":
            broker = MetadataResponseBroker(node_id=1, host="b", port=9092)
            return MetadataResponse(brokers=(broker,), controller_id=1)
        if name == "FindCoordinatorRequest":
            found = Coordinator(key="g", node_id=1, host="b", port=9092)
            return FindCoordinatorResponse(coordinators=(found,))
        return DescribeClusterResponse(cluster_id="c", brokers=())

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        self.look_ups += 1
        answer = self.answers.pop(0) if self.answers else [endpoint(ip) for ip in self.behaviour]
        if answer is None:
            return Future()
        return Future.failed(answer) if isinstance(answer, OSError) else Future.resolved(answer)

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: Any = None) -> Any:
        ip = endpoint.sockaddr[0]
        self.tried.append((ip, round(self.time - self.begin, 3)))
        behaviour = self.behaviour[ip]
        self.broker.up = behaviour == "answers"
        if behaviour == "swallows":
            return self.silent(stream)
        transport = super().connect(endpoint, stream, tls)
        self.broker.up = True
        return transport


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


def call(hosts: Hosts, core: Any, timeout: float = 30.0, **options: Any) -> DescribeClusterResponse:
    """Send a request to the broker."""
    result: DescribeClusterResponse = hosts.run(
        core.call(DescribeClusterRequest(), deadline=hosts.time + timeout, **options)
    )
    return result


def test_an_address_that_swallows_everything_costs_a_quarter_of_a_second(hosts: Hosts) -> None:
    hosts.behaviour = {"::1": "swallows", "10.0.0.1": "answers"}
    core = hosts.core("b:9092")
    assert call(hosts, core).cluster_id == "c"
    assert hosts.tried == [("::1", 0.0), ("10.0.0.1", NEXT_ATTEMPT)]
    assert len(hosts.transports) == 1


def test_the_address_that_worked_is_tried_first(hosts: Hosts) -> None:
    hosts.behaviour = {"::1": "swallows", "10.0.0.1": "answers"}
    core = hosts.core("b:9092")
    call(hosts, core)
    for transport in tuple(hosts.transports):
        transport.cut()
    hosts.tried.clear()
    call(hosts, core)
    assert [ip for ip, _ in hosts.tried] == ["10.0.0.1"]


def test_addresses_that_refuse_are_left_at_once(hosts: Hosts) -> None:
    hosts.behaviour = {"::1": "refuses", "10.0.0.1": "refuses", "10.0.0.2": "answers"}
    call(hosts, hosts.core("b:9092"))
    assert [ip for ip, _ in hosts.tried] == ["::1", "10.0.0.1", "10.0.0.2"]
    assert hosts.tried[-1][1] < 0.01


def test_every_address_has_its_time(hosts: Hosts) -> None:
    hosts.behaviour = {f"10.0.0.{number}": "swallows" for number in range(8)} | {"10.0.0.9": "answers"}
    assert call(hosts, hosts.core("b:9092")).cluster_id == "c"
    assert [at for _, at in hosts.tried] == [pytest.approx(NEXT_ATTEMPT * number) for number in range(9)]
    assert len(hosts.transports) == 1


def test_a_single_address_has_all_of_the_time(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "swallows"}
    with pytest.raises(ConnectionFailedError, match="connect: the time is over") as caught:
        call(hosts, hosts.core("b:9092", connect_timeout=3.0), retry=False)
    assert hosts.time - hosts.begin == pytest.approx(3.0, abs=0.01)
    assert caught.value.retriable
    assert not hosts.transports


def test_families_alternate_in_the_order_of_the_resolver() -> None:
    found = [endpoint(ip) for ip in ("::1", "::2", "::3", "10.0.0.1", "10.0.0.2")]
    order = [str(each) for each in alternate_families(found)]
    assert order == ["::1", "10.0.0.1", "::2", "10.0.0.2", "::3"]


def test_a_name_server_that_is_busy_is_asked_again(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    hosts.answers = [AGAIN, AGAIN, AGAIN]
    assert call(hosts, hosts.core("b:9092")).cluster_id == "c"


def test_an_unknown_name_of_the_user_is_final_until_it_has_worked(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    hosts.answers = [UNKNOWN]
    core = hosts.core("b:9092")
    with pytest.raises(ConnectionFailedError, match="resolve: Name or service not known") as caught:
        call(hosts, core)
    assert not caught.value.retriable
    call(hosts, core)
    for transport in tuple(hosts.transports):
        transport.cut()
    hosts.answers = [UNKNOWN, UNKNOWN]
    assert call(hosts, core).cluster_id == "c"


def test_slow_dns_holds_up_no_other_connection_and_one_look_up_serves_all(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    core = hosts.core("b:9092")
    call(hosts, core)
    hosts.answers = [None]
    slow = [hosts.spawn(core.link(1, purpose=f"p{number}", deadline=hosts.time + 60)) for number in range(5)]
    begin = hosts.time
    for _ in range(20):
        call(hosts, core)
    assert hosts.time - begin < 0.1
    assert hosts.look_ups == 2
    hosts.pass_time(core.config.connect_timeout + 0.1)
    for each in slow:
        with pytest.raises(ConnectionFailedError, match="resolve: the name server does not answer"):
            each.result()


def test_a_connection_that_ends_while_negotiating_is_made_again_with_older_questions(hosts: Hosts) -> None:
    """Load balancers close connections during ApiVersions; some servers close them for unsupported versions."""
    hosts.behaviour = {"10.0.0.1": "answers"}
    hosts.broker.ignored_greetings = 3
    assert call(hosts, hosts.core("b:9092")).cluster_id == "c"
    versions = [frame.header.request_api_version for frame in hosts.broker.greetings]
    assert versions == [4, 3, 0, 4]


def test_before_the_first_connection_a_failure_that_may_pass_ends_a_call_soon(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "refuses"}
    core = hosts.core("b:9092")
    with pytest.raises(ConnectionFailedError, match="b:9092: connect: connection refused"):
        call(hosts, core, timeout=120)
    assert 0.4 <= hosts.time - hosts.begin < 1.0
    assert len(hosts.tried) >= 3


def test_after_the_first_connection_a_broker_that_is_stopped_is_tried_until_the_deadline(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    core = hosts.core("b:9092", connect_timeout=2.0)
    call(hosts, core)
    hosts.behaviour = {"10.0.0.1": "refuses"}
    for transport in tuple(hosts.transports):
        transport.cut()
    with pytest.raises(DeadlineError, match="the last failure was: b:9092: connect: connection refused") as caught:
        call(hosts, core, timeout=60)
    assert isinstance(caught.value.cause, ConnectionFailedError)
    hosts.later(5.0, lambda: hosts.behaviour.update({"10.0.0.1": "answers"}))
    assert call(hosts, core, timeout=60).cluster_id == "c"


OPERATIONS: dict[str, Callable[[Any, float], Flow[Any]]] = {
    "call": lambda core, deadline: core.call(DescribeClusterRequest(), deadline=deadline),
    "refresh": lambda core, deadline: core.refresh((), deadline=deadline),
    "coordinator": lambda core, deadline: core.coordinator("g", CoordinatorKind.GROUP, deadline=deadline),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_connects_inside_its_retries_and_names_the_last_failure(hosts: Hosts, name: str) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    core = hosts.core("b:9092")
    call(hosts, core)
    hosts.behaviour = {"10.0.0.1": "refuses"}
    for transport in tuple(hosts.transports):
        transport.cut()
    with pytest.raises(DeadlineError, match="connect: connection refused"):
        hosts.run(OPERATIONS[name](core, hosts.time + 3))
    hosts.later(2.0, lambda: hosts.behaviour.update({"10.0.0.1": "answers"}))
    hosts.run(OPERATIONS[name](core, hosts.time + 10))


def test_a_deadline_during_a_connection_names_the_last_failure_of_the_broker(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "refuses"}
    core = hosts.core("b:9092")
    with pytest.raises(ConnectionFailedError):
        call(hosts, core, retry=False)
    hosts.behaviour = {"10.0.0.1": "swallows"}
    with pytest.raises(DeadlineError, match=r"a connection to b:9092; the last failure was: .*connection refused"):
        call(hosts, core, timeout=1.0)
    assert core.directory.last_failure(1) is None  # its address is not known yet
    assert "connection refused" in str(core.directory.dialer.last_failure(Address("b", 9092)))


def test_reconnects_are_spaced_for_all_calls_together(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    core = hosts.core("b:9092", reconnect_backoff=0.1, reconnect_backoff_max=2.0)
    call(hosts, core)
    hosts.behaviour = {"10.0.0.1": "refuses"}
    for transport in tuple(hosts.transports):
        transport.cut()
    hosts.tried.clear()
    tasks = [hosts.spawn(core.call(DescribeClusterRequest(), deadline=hosts.time + 20)) for _ in range(20)]
    hosts.pass_time(20.5)
    assert all(each.done for each in tasks)
    assert 5 <= len(hosts.tried) < 60


def test_an_unused_connection_is_not_used_again(hosts: Hosts) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    core = hosts.core("b:9092", connection_max_idle=60.0)
    call(hosts, core)
    hosts.pass_time(59)
    call(hosts, core)
    assert len(hosts.tried) == 1
    hosts.pass_time(61)
    call(hosts, core)
    assert len(hosts.tried) == 2
    assert len(hosts.transports) == 1


def test_an_unreachable_broker_is_one_warning_per_state(hosts: Hosts, caplog: pytest.LogCaptureFixture) -> None:
    hosts.behaviour = {"10.0.0.1": "answers"}
    core = hosts.core("b:9092")
    call(hosts, core)
    hosts.behaviour = {"10.0.0.1": "refuses"}
    for transport in tuple(hosts.transports):
        transport.cut()
    hosts.later(3.0, lambda: hosts.behaviour.update({"10.0.0.1": "answers"}))
    with caplog.at_level(logging.INFO, "kafka_msgs.client.connection"):
        call(hosts, core)
    assert [(each.levelname, each.getMessage()) for each in caplog.records if "connect" in each.getMessage()] == [
        ("WARNING", "cannot reach the broker at b:9092: connect: connection refused"),
        ("INFO", "b:9092: connected again"),
    ]


# Both drivers, on loopback


def ask_blocking(config: ClientConfig, **options: Any) -> str | None:
    with Client(config) as client:
        return client.call(DescribeClusterRequest(), **options).cluster_id


def ask_async(config: ClientConfig, **options: Any) -> str | None:
    async def ask() -> str | None:
        async with AsyncClient(config) as client:
            return (await client.call(DescribeClusterRequest(), **options)).cluster_id

    return asyncio.run(ask())


both_forms = pytest.mark.parametrize("ask", [ask_blocking, ask_async], ids=["blocking", "asyncio"])


def serve(connection: socket.socket) -> None:
    """Serve a connection as a broker of a cluster without brokers."""
    greet(connection)
    while True:
        connection.sendall(_answer(connection))


def _answer(connection: socket.socket) -> bytes:
    header = receive(connection).header
    response = DescribeClusterResponse(cluster_id="c", brokers=())
    return join_frames(encode_response(response, header.request_api_version, correlation_id=header.correlation_id))


@contextmanager
def black_hole() -> Iterator[tuple[str, int]]:
    """A port that answers no SYN because its connection queue is full."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as listener:
        fillers = [socket.socket() for _ in range(4)]
        for each in fillers:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        time.sleep(0.05)
        yield listener.getsockname()
        for each in fillers:
            each.close()


@both_forms
def test_a_dead_first_address_does_not_matter(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with black_hole() as dead, FaultyServer(serve) as server:
        place = ("127.0.0.1", int(server.address.rpartition(":")[2]))
        found = [(IP4, socket.SOCK_STREAM, 6, "", dead), (IP4, socket.SOCK_STREAM, 6, "", place)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        begin = time.monotonic()
        assert ask(ClientConfig(bootstrap_servers="b.test:9092")) == "c"
        assert time.monotonic() - begin < 5


@both_forms
def test_a_name_server_that_is_busy_passes(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer(serve) as server:
        place = ("127.0.0.1", int(server.address.rpartition(":")[2]))
        answers: list[Any] = [AGAIN, AGAIN]

        def look_up(*_: Any, **__: Any) -> Any:
            if answers:
                raise answers.pop()
            return [(IP4, socket.SOCK_STREAM, 6, "", place)]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        assert ask(ClientConfig(bootstrap_servers="b.test:9092")) == "c"


@both_forms
@pytest.mark.parametrize("share", [0.0, 0.03, 0.3, 0.6, 0.99])
def test_a_reset_at_any_byte_of_the_handshake_passes(ask: Any, share: float) -> None:
    """The server resets its first three connections during the ApiVersions response."""
    served = []

    def reset(connection: socket.socket) -> None:
        served.append(connection)
        if len(served) > 3:
            serve(connection)
            return
        from tests.support.faulty_server import answer_versions

        data = answer_versions(receive(connection))
        connection.sendall(data[: int(len(data) * share)])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with FaultyServer(reset) as server:
        assert ask(ClientConfig(bootstrap_servers=server.address)) == "c"


def test_slow_dns_delays_no_call_of_the_blocking_client(monkeypatch: pytest.MonkeyPatch) -> None:
    release = _block_dns(monkeypatch)
    with FaultyServer(serve) as server, Client(server.address) as client, ThreadPoolExecutor(1) as other:
        client.call(DescribeClusterRequest())
        dialing = other.submit(client.run, _dial(client.core))
        time.sleep(0.05)
        begin = time.monotonic()
        for _ in range(10):
            client.call(DescribeClusterRequest())
        assert time.monotonic() - begin < 2
        release.set()
        with pytest.raises(ConnectionFailedError, match="resolve"):
            dialing.result(20)


def test_slow_dns_delays_no_call_of_the_asyncio_client(monkeypatch: pytest.MonkeyPatch) -> None:
    release = _block_dns(monkeypatch)

    async def run() -> None:
        with FaultyServer(serve) as server:
            async with AsyncClient(server.address) as client:
                await client.call(DescribeClusterRequest())
                dialing = asyncio.create_task(client.run(_dial(client.core)))
                await asyncio.sleep(0.05)
                begin = time.monotonic()
                for _ in range(10):
                    await client.call(DescribeClusterRequest())
                assert time.monotonic() - begin < 2
                release.set()
                with pytest.raises((ConnectionFailedError, DeadlineError)):
                    await dialing

    asyncio.run(run())


def _block_dns(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Block DNS lookups until an event is set, except for numeric addresses."""
    release = threading.Event()
    look_up = socket.getaddrinfo

    def slow(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == "slow.test":
            release.wait(20)
            raise AGAIN
        return look_up(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    return release


def _dial(core: Any) -> Flow[Any]:
    from kafka_msgs.client.broker_connection import BrokerConnection

    return BrokerConnection.open(
        core.network, Address("slow.test", 9092), core.config, broker_id=None, deadline=core.deadline(20),
        dialer=core.directory.dialer,
    )  # fmt: skip
