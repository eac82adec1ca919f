"""Remote control over HTTP: faults, brokers, leaders, time and requests, and protection from web pages."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker, ManualClock, PushedMetrics
from kafka_msgs.client import Producer
from kafka_msgs.errors import BrokerStartError, MissingExtraError, OptionError
from kafka_msgs.testing import new_topic, topic_records
from tests.support.eventually import until

WAIT: Final = 30
JSON: Final = {"Content-Type": "application/json"}


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(brokers=2, control_port=0) as broker:
        yield broker
        assert broker.problems == []


def ask(
    broker: EmbeddedBroker, method: str, path: str, body: object = None, headers: dict[str, str] = JSON
) -> tuple[int, Any]:
    """Send a request, and return the status and the value of the response."""
    connection = HTTPConnection(urlsplit(broker.control_url).netloc, timeout=WAIT)
    data = body if isinstance(body, bytes | None) else json.dumps(body)
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text) if text else None


def test_the_state_shows_brokers_and_leaders(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1, 2)]).all()
    status, state = ask(broker, "GET", "/")
    assert status == 200
    assert [each["running"] for each in state["brokers"]] == [True, True]
    assert state["brokers"][0]["listeners"]["PLAINTEXT"] == broker.bootstrap_servers.partition(",")[0]
    assert sorted(state["topics"]["t"][0]["isr"]) == [0, 1]
    assert ask(broker, "GET", "/problems") == (200, [])


def test_changes_move_leaders_and_stop_brokers(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1, 2)]).all()
    for leader in (0, 1):
        change = {"kind": "MoveLeader", "topic": "t", "partition": 0, "broker": leader}
        assert ask(broker, "POST", "/changes", change) == (204, None)
        assert ask(broker, "GET", "/")[1]["topics"]["t"][0]["leader"] == leader
    assert ask(broker, "POST", "/changes", {"kind": "KillBroker", "broker": 1}) == (204, None)
    state = ask(broker, "GET", "/")[1]
    assert [each["running"] for each in state["brokers"]] == [True, False]
    assert state["topics"]["t"][0]["leader"] == 0
    status, refusal = ask(broker, "POST", "/changes", {"kind": "MoveLeader", "topic": "t", "partition": 0, "broker": 1})
    assert (status, refusal["error"]) == (409, "Cluster: option broker_id 1: the broker does not run")


def test_faults_are_added_counted_and_removed(broker: EmbeddedBroker) -> None:
    effect = {"kind": "Fail", "error": "NOT_ENOUGH_REPLICAS"}
    status, fault = ask(broker, "POST", "/faults", {"effect": effect, "api": "Produce", "topic": "t", "times": 2})
    assert (status, fault["hits"], fault["times"]) == (201, 0, 2)
    assert fault["effect"] == {**effect, "message": None}
    new_topic(broker, "t")
    new_topic(broker, "other")
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("other", b"1").result()
        assert ask(broker, "GET", f"/faults/{fault['number']}")[1]["hits"] == 0
        producer.send("t", b"1").result()
    assert [each["hits"] for each in ask(broker, "GET", "/faults")[1]] == [2]
    assert len(topic_records(broker, "t")) == 1
    assert ask(broker, "DELETE", f"/faults/{fault['number']}") == (204, None)
    assert ask(broker, "GET", f"/faults/{fault['number']}")[0] == 404
    assert ask(broker, "POST", "/faults", {"change": {"kind": "KillBroker", "broker": 1}})[0] == 201
    assert ask(broker, "DELETE", "/faults") == (204, None)
    assert ask(broker, "GET", "/faults") == (200, [])


def test_a_script_runs_when_the_manual_clock_moves() -> None:
    with EmbeddedBroker(brokers=2, control_port=0, clock=ManualClock(1000)) as broker:
        script = [
            {"ms": 100, "change": {"kind": "StopBroker", "broker": 1}},
            {"ms": 200, "fault": {"effect": {"kind": "Disconnect"}, "api": "FETCH"}},
        ]
        assert ask(broker, "POST", "/scripts", script) == (204, None)
        assert ask(broker, "GET", "/clock") == (200, {"now_ms": 1000, "manual": True})
        assert ask(broker, "POST", "/clock", {"advance_ms": 150})[1]["now_ms"] == 1150
        assert [each["running"] for each in ask(broker, "GET", "/")[1]["brokers"]] == [True, False]
        assert ask(broker, "POST", "/clock", {"now_ms": 5000})[1]["now_ms"] == 5000
        assert broker.problems == []


def test_the_system_clock_does_not_move(broker: EmbeddedBroker) -> None:
    assert ask(broker, "POST", "/clock", {"advance_ms": 1})[0] == 409
    before = ask(broker, "GET", "/clock")[1]["now_ms"]
    assert ask(broker, "POST", "/changes", {"kind": "JumpClock", "ms": 3_600_000}) == (204, None)
    assert ask(broker, "GET", "/clock")[1]["now_ms"] >= before + 3_600_000


def test_requests_are_logged(broker: EmbeddedBroker) -> None:
    assert ask(broker, "GET", "/requests")[0] == 409
    assert ask(broker, "POST", "/requests") == (204, None)
    new_topic(broker, "t")
    with Producer(broker.bootstrap_servers, client_id="writer") as producer:
        producer.send("t", b"1").result()
    status, log = ask(broker, "GET", "/requests?client_id=writer&api=Produce&topic=t&broker_id=0")
    log["requests"] += ask(broker, "GET", "/requests?client_id=writer&api=Produce&topic=t&broker_id=1")[1]["requests"]
    (produced,) = log["requests"]
    assert (status, log["dropped"], produced["topics"], produced["errors"]) == (200, 0, ["t"], [])
    assert produced["request"]["acks"] == -1
    assert ask(broker, "GET", "/requests?error=NOT_COORDINATOR")[1]["requests"] == []
    assert ask(broker, "GET", "/requests?apis=Produce")[0] == 400
    assert ask(broker, "DELETE", "/requests") == (204, None)
    assert ask(broker, "GET", "/requests")[0] == 409


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", "/nothing", None, 404, "no such path"),
        ("PUT", "/faults", None, 405, "the methods are GET, POST, DELETE"),
        ("GET", "/faults/x", None, 404, "no fault x"),
        ("POST", "/changes", b"{", 400, "it is not JSON"),
        ("POST", "/changes", b"[" * 100_000, 400, "it is not JSON"),
        ("POST", "/changes", {"kind": "KillBrokers", "broker": 1}, 400, "did you mean KillBroker?"),
        ("POST", "/changes", {"kind": "KillBroker", "brokers": 1}, 400, "did you mean broker?"),
        ("POST", "/changes", {"kind": "KillBroker", "broker": "1"}, 400, "a whole number is needed"),
        ("POST", "/changes", {"kind": "KillBroker", "broker": 7}, 409, "the brokers are 0, 1"),
        ("POST", "/faults", [], 400, "one of effect and change"),
        ("POST", "/faults", {"effect": {"kind": "Fail", "error": "NO_SUCH"}}, 400, "there is no such value"),
        ("POST", "/faults", {"effect": {"kind": "Disconnect"}, "api": "Produces"}, 400, "there is no such API"),
        ("POST", "/faults", {"effect": {"kind": "Disconnect"}, "time": 3}, 400, "did you mean times"),
        ("POST", "/scripts", {}, 400, "a list is needed"),
        ("POST", "/scripts", [{"ms": "soon", "change": {"kind": "Heal"}}], 400, "a whole number is needed"),
        ("POST", "/clock", {}, 409, "system clock"),
    ],
)
def test_wrong_requests_are_refused_with_the_reason(
    broker: EmbeddedBroker, method: str, path: str, body: object, status: int, reason: str
) -> None:
    found, answer = ask(broker, method, path, body)
    assert (found, reason in answer["error"]) == (status, True), answer


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example:80"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": "localhost:1"}, 204),
        ({"Host": "[::1]:1"}, 204),
        ({"Host": "127.0.0.2"}, 204),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 204),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_web_page_cannot_control_a_broker(broker: EmbeddedBroker, headers: dict[str, str], status: int) -> None:
    """A page of another site, also under a name that resolves to this machine, gets an error and changes nothing."""
    change = {"kind": "FillDisk"}
    assert ask(broker, "POST", "/changes", change, {**JSON, **headers})[0] == status
    assert broker.faults.disk_full == (status == 204)


def raw(broker: EmbeddedBroker, data: bytes) -> bytes:
    """Send bytes, and return the bytes of the response until the connection ends."""
    host, _, port = urlsplit(broker.control_url).netloc.rpartition(":")
    found = b""
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(data)
        while part := connection.recv(65536):
            found += part
    return found


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x00\x00\x10nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 70_000, b"431"),
        (b"POST /changes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n" + b" " * 5_000_000, b"413"),
    ],
)
def test_requests_are_bounded(broker: EmbeddedBroker, data: bytes, status: bytes) -> None:
    assert raw(broker, data).split(b" ")[1] == status


def test_requests_of_one_connection_are_answered_in_order(broker: EmbeddedBroker) -> None:
    head = b" HTTP/1.1\r\nHost: localhost\r\n"
    first, second, third = b"GET /clock" + head + b"\r\n", b"HEAD /" + head + b"\r\n", b"GET /faults" + head
    answers = raw(broker, first + second + third + b"Connection: close\r\n\r\n")
    assert [each.split(b"\r\n")[0] for each in answers.split(b"HTTP/1.1 ")[1:]] == [b"200 ", b"200 ", b"200 "]
    assert answers.endswith(b"[]")
    assert b"cluster_id" not in answers  # The response to HEAD has no body.


def test_remote_control_is_off_by_default() -> None:
    with EmbeddedBroker() as broker, pytest.raises(OptionError, match="control_port: it is not set"):
        _ = broker.control_url


def test_pushed_metrics_are_shown() -> None:
    with EmbeddedBroker(control_port=0, telemetry=True) as broker:
        assert ask(broker, "GET", "/metrics") == (200, [])
        payload = b"\n\x11\x12\x0f\x12\r\n\x03lag*\x06\n\x04:\x02\n\x00"
        push: dict[str, Any] = {
            "broker_id": 0,
            "client_instance_id": UUID(int=1),
            "client_id": "c",
            "software_name": "s",
        }
        more: dict[str, Any] = {
            "software_version": "1",
            "received_at": 7,
            "is_last": True,
            "compression_type": 0,
            "payload": payload,
        }
        broker.run(lambda cluster: cluster.client_metrics.store(PushedMetrics(**push, **more)))
        _, (shown,) = ask(broker, "GET", "/metrics")
        assert (shown["client_id"], shown["is_last"]) == ("c", True)
        assert [(each["name"], each["kind"]) for each in shown["metrics"]] == [("lag", "gauge")]
        assert broker.problems == []


def test_connections_that_do_nothing_are_bounded(broker: EmbeddedBroker) -> None:
    host, _, port = urlsplit(broker.control_url).netloc.rpartition(":")
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection((host, int(port)), timeout=WAIT)) for _ in range(150)]
        assert all(is_closed(each) for each in idle[100:])
    until(lambda: ask_if_possible(broker) == 200)


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def ask_if_possible(broker: EmbeddedBroker) -> int:
    try:
        return ask(broker, "GET", "/")[0]
    except OSError:
        return 0


def test_a_port_that_is_taken_is_an_error() -> None:
    """The broker does not start, and its other endpoints close again."""
    threads = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = EmbeddedBroker(control_port=0, registry_port=taken.getsockname()[1])
        with pytest.raises(BrokerStartError, match="in use"):
            broker.start()
    assert threading.active_count() == threads


def test_a_missing_extra_is_an_error_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h11", None)
    with pytest.raises(MissingExtraError, match=r"kafka-msgs\[broker\]"):
        EmbeddedBroker(control_port=0).start()
