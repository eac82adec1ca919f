"""Addons: the documented examples with real clients, the order of responses, failures of hooks, and untouched bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs import ApiKey, ApiVersionsRequest, ErrorCode, HeartbeatRequest, HeartbeatResponse, MetadataRequest
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.faults import (
    Delay,
    Disconnect,
    DropResponse,
    Effect,
    Fail,
    Fault,
    KillBroker,
    NeverRespond,
    SwapResponses,
    TrickleResponse,
    TruncateResponse,
    WrongCorrelationId,
    WrongFrameSize,
)
from kafka_msgs.capture import CapturedConnection, CaptureFault, Endpoint, Exchange, FaultKind
from kafka_msgs.client import Client, Consumer, Producer
from kafka_msgs.errors import KafkaMsgsError, OptionError, TapError
from kafka_msgs.tap import Addon, Tap, TapConfig, TapConnection, TapExchange, load_addons
from kafka_msgs.tap.frame_forwarder import Pause
from kafka_msgs.testing.tap_faults import FaultAddon, parse_fault
from kafka_msgs.wire import decode_response, encode_request, encode_response, join_frames
from tests.support.cluster_topics import new_topic
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.markdown_pages import ROOT, blocks

PAGE: Final = ROOT / "docs" / "reference" / "tap-addons.md"
EXAMPLES: Final = {block.options["file"]: block.text for block in blocks(PAGE) if "file" in block.options}
ENDS: Final = CapturedConnection(1, Endpoint("192.0.2.7", 50_000), Endpoint("192.0.2.1", 9092))


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def example(tmp_path: Path) -> Callable[[str], tuple[Addon, ...]]:
    def load(name: str) -> tuple[Addon, ...]:
        path = tmp_path / name
        path.write_text(EXAMPLES[name])
        return load_addons(path)

    return load


@contextmanager
def _tapped(servers: str, *addons: Addon) -> Iterator[tuple[Callable[[Callable[[str], Any]], Any], list[Any]]]:
    """Yield a function that runs clients behind a proxy in front of brokers, and the observed items."""
    brokers = [Endpoint(host, int(port)) for host, _, port in (each.rpartition(":") for each in servers.split(","))]
    seen: list[Any] = []

    def run(work: Callable[[str], Any]) -> Any:
        async def running() -> Any:
            async with Tap(brokers, seen=seen.append, addons=addons) as tap:
                return await asyncio.wait_for(asyncio.to_thread(work, str(tap.address)), 60)

        return asyncio.run(running())

    yield run, seen
    assert [item for item in seen if isinstance(item, CaptureFault) and item.kind is FaultKind.PROXY] == []


def _topic(broker: EmbeddedBroker, name: str) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name)])


def _send(address: str, topic: str, *values: bytes, client_id: str = "shop", **options: Any) -> list[Any]:
    with Producer(address, client_id=client_id) as producer:
        futures = [producer.send(topic, value=value, **options) for value in values]
        producer.flush()
        return [future.result() for future in futures]


def _read(address: str, topic: str, count: int) -> list[bytes]:
    with Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        records: list[Any] = []
        deadline = time.monotonic() + 30
        while len(records) < count and time.monotonic() < deadline:
            records += consumer.poll(0.5)
        return [bytes(record.value) for record in records]


def test_clients_are_counted(broker: EmbeddedBroker, example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _topic(broker, "counted")
    with _tapped(broker.bootstrap_servers, *example("count.py")) as (run, _):
        run(lambda address: _send(address, "counted", b"one", client_id="till"))
    assert f"('till', {int(ApiKey.PRODUCE)}), 1" in capsys.readouterr().out


def test_one_client_gets_an_error_and_retries(broker: EmbeddedBroker, example: Any) -> None:
    _topic(broker, "moving")
    with _tapped(broker.bootstrap_servers, *example("not_leader.py")) as (run, seen):
        run(lambda address: _send(address, "moving", b"one", client_id="billing"))
        produced = [each for each in seen if isinstance(each, Exchange) and each.api_key == ApiKey.PRODUCE]
        failed = [bool(each.errors) for each in produced]
    assert failed == [True, True, False]
    assert _read(broker.bootstrap_servers, "moving", 1) == [b"one"]


def test_a_topic_is_refused(broker: EmbeddedBroker, example: Any) -> None:
    for name in ("audit", "open"):
        _topic(broker, name)
    with _tapped(broker.bootstrap_servers, *example("refuse_topic.py")) as (run, _):
        assert run(lambda address: _send(address, "open", b"fine"))[0].offset == 0
        with pytest.raises(KafkaMsgsError, match="TOPIC_AUTHORIZATION_FAILED"):
            run(lambda address: _send(address, "audit", b"no"))


def test_a_header_is_required(broker: EmbeddedBroker, example: Any) -> None:
    _topic(broker, "traced")
    with _tapped(broker.bootstrap_servers, *example("require_header.py")) as (run, _):
        run(lambda address: _send(address, "traced", b"fine", headers=[("trace-id", b"7")]))
        with pytest.raises(KafkaMsgsError, match="trace-id"):
            run(lambda address: _send(address, "traced", b"no"))


def test_a_field_of_json_values_is_masked(broker: EmbeddedBroker, example: Any) -> None:
    _topic(broker, "paid")
    values = [b'{"card": "4000 1234", "sum": 5}', b"not json", b'{"sum": 6}']
    _send(broker.bootstrap_servers, "paid", *values)
    with _tapped(broker.bootstrap_servers, *example("mask_json.py")) as (run, _):
        shown = run(lambda address: _read(address, "paid", 3))
    assert shown == [b'{"card": "***", "sum": 5}', *values[1:]]
    assert _read(broker.bootstrap_servers, "paid", 3) == values


def test_tenants_have_their_own_topics(broker: EmbeddedBroker, example: Any) -> None:
    _topic(broker, "acme.orders")
    with _tapped(broker.bootstrap_servers, *example("tenants.py")) as (run, _):
        run(lambda address: _send(address, "orders", b"tea"))
        assert run(lambda address: _read(address, "orders", 1)) == [b"tea"]
    assert _read(broker.bootstrap_servers, "acme.orders", 1) == [b"tea"]


# One connection, without sockets


def _tap(*addons: Addon) -> TapConnection:
    return TapConnection(ENDS, TapConfig(translate=lambda host, port: (host, port), addons=addons))


def _ask(tap: TapConnection, *numbers: int) -> Any:
    data = join_frames(*(encode_request(HeartbeatRequest(), 4, correlation_id=number) for number in numbers))
    tap.requests.get_buffer()[: len(data)] = data
    return tap.client_sent(len(data), 1)


def _answer(tap: TapConnection, *numbers: int, split: int | None = None) -> list[Any]:
    data = join_frames(*(encode_response(HeartbeatResponse(), 4, correlation_id=number) for number in numbers))
    pieces: list[Any] = []
    for part in (data,) if split is None else (data[:split], data[split:]):
        tap.responses.get_buffer()[: len(part)] = part
        pieces += [each if isinstance(each, Pause) else bytes(each) for each in tap.broker_sent(len(part), 2).pieces]
    return pieces


def _ids(pieces: list[Any]) -> list[tuple[int, int]]:
    """Return the correlation id and the error code of each response."""
    data, found = b"".join(each for each in pieces if isinstance(each, bytes)), []
    while data:
        size = int.from_bytes(data[:4], "big")
        frame = decode_response(data[4 : 4 + size], ApiKey.HEARTBEAT, 4)
        assert isinstance(frame.message, HeartbeatResponse)
        found.append((frame.header.correlation_id, frame.message.error_code))
        data = data[4 + size :]
    return found


class _FailEven(Addon):
    def request(self, exchange: TapExchange) -> None:
        if exchange.correlation_id % 2 == 0:
            exchange.fail(ErrorCode.REBALANCE_IN_PROGRESS)


@pytest.mark.parametrize("split", [None, 3, 14, 20])
def test_answers_of_addons_wait_for_earlier_responses(split: int | None) -> None:
    tap = _tap(_FailEven())
    passed = _ask(tap, 1, 2, 3, 4)
    assert passed.data == b"".join(
        join_frames(encode_request(HeartbeatRequest(), 4, correlation_id=number)) for number in (1, 3)
    )
    assert passed.answers == []
    assert _ids(_answer(tap, 1, 3, split=split)) == [(1, 0), (2, 27), (3, 0), (4, 27)]
    assert _ids(list(_ask(tap, 6).answers)) == [(6, 27)]


def test_a_hook_that_raises_is_reported_and_changes_nothing() -> None:
    class Broken(Addon):
        def request(self, exchange: TapExchange) -> None:
            exchange.drop()
            exchange.state["seen"] = True
            raise LookupError("no such tenant")

        def closed(self, connection: CapturedConnection) -> None:
            raise ValueError("twice")

    tap = _tap(Broken())
    passed = _ask(tap, 1)
    assert passed.data == join_frames(encode_request(HeartbeatRequest(), 4, correlation_id=1))
    (fault,) = passed.items
    assert (fault.kind, fault.reason) == (
        FaultKind.PROXY,
        "the hook request of the addon Broken failed: LookupError: no such tenant",
    )
    assert "twice" in str(tap.close(3)[-1])


def test_other_apis_pass_as_they_arrive() -> None:
    """Only frames that a hook wants are buffered; the proxy forwards the first bytes of other frames at once."""

    class Only(Addon):
        apis = frozenset({ApiKey.METADATA})

        def request(self, exchange: TapExchange) -> None:
            exchange.patch_request({"topics": lambda topics: topics})

    tap = _tap(Only())
    heartbeat = join_frames(encode_request(HeartbeatRequest(), 4, correlation_id=1))
    metadata = join_frames(encode_request(MetadataRequest(), 12, correlation_id=2))
    for data, early in ((heartbeat, 10), (metadata, 0)):
        tap.requests.get_buffer()[:10] = data[:10]
        first = tap.client_sent(10, 1).data
        assert len(first) == early
        tap.requests.get_buffer()[: len(data) - 10] = data[10:]
        assert first + tap.client_sent(len(data) - 10, 1).data == data


def test_methods_that_do_not_apply_to_a_hook_are_refused() -> None:
    exchange = TapExchange(ENDS, encode_request(HeartbeatRequest(), 4, correlation_id=1))
    with pytest.raises(TapError, match="has not responded"):
        exchange.patch_response({})
    exchange.receive_response(encode_response(HeartbeatResponse(), 4, correlation_id=1))
    with pytest.raises(TapError, match="already received"):
        exchange.patch_request({})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "defines neither addons nor a hook"),
        ("addons = [3]", "instances of Addon"),
        ("import nowhere_at_all", "ModuleNotFoundError"),
        ("def request(:", "SyntaxError"),
    ],
)
def test_files_that_are_no_addon(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "addon.py"
    path.write_text(text)
    with pytest.raises(TapError, match=reason):
        load_addons(path)


# Faults


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("fail:NOT_LEADER_OR_FOLLOWER", Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        ("delay:50", Delay(50)),
        ("never-respond", NeverRespond()),
        ("disconnect", Disconnect()),
        ("drop-response", DropResponse()),
        ("truncate-response:5", TruncateResponse(5)),
        ("wrong-frame-size:-2", WrongFrameSize(-2)),
        ("wrong-correlation-id", WrongCorrelationId(1)),
        ("swap-responses", SwapResponses()),
        ("trickle-response:7/2", TrickleResponse(7, 2)),
    ],
)
def test_faults_are_parsed_and_act_on_one_connection(text: str, effect: Effect) -> None:
    fault = parse_fault(f"{text},api=heartbeat,times=1")
    assert fault == Fault(effect, api=ApiKey.HEARTBEAT)
    tap = _tap(FaultAddon([fault]))
    passed = _ask(tap, 1, 2)
    pieces = _answer(tap, *([1, 2] if isinstance(passed.pieces[0], Pause) or len(passed.data) > 40 else [2]))
    assert fault.hits == 1
    whole = [join_frames(encode_response(HeartbeatResponse(), 4, correlation_id=number)) for number in (1, 2)]
    data = b"".join(each for each in pieces if not isinstance(each, Pause))
    expected = {
        TruncateResponse: whole[0][:5] + whole[1],
        DropResponse: whole[1],
        Delay: b"".join(whole),
        TrickleResponse: b"".join(whole),
        NeverRespond: whole[1],
        Disconnect: whole[1],
    }.get(type(effect))
    assert expected is None or data == expected
    assert (data != b"".join(whole)) is (type(effect) not in (Delay, TrickleResponse))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "fail:NO_SUCH_ERROR",
        "delay:soon",
        "delay:-5",
        "drop-response:3",
        "delay:5,api=Nothing",
        "delay:5,x=1",
    ],
)
def test_faults_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_fault(text)


def test_changes_of_a_cluster_are_refused() -> None:
    with pytest.raises(OptionError):
        FaultAddon([Fault(KillBroker(1))])


def test_faults_in_front_of_a_broker(broker: EmbeddedBroker) -> None:
    _topic(broker, "faulty")
    _check_faults(broker.bootstrap_servers, "faulty")


def test_faults_in_front_of_real_brokers(kafka_cluster: ClusterAddresses) -> None:
    _check_faults(kafka_cluster.bootstrap_servers, new_topic(kafka_cluster, 1, replicas=3, prefix="faulty"))


def _check_faults(servers: str, topic: str) -> None:
    """A producer survives a lost response, a reset and a delay, and the topic contains each record once."""
    texts = ("drop-response,api=Produce", "disconnect,api=Produce,after=1", "delay:200,api=Produce,after=2")
    addon = FaultAddon(list(map(parse_fault, texts)))
    with _tapped(servers, addon) as (run, _):
        start = time.monotonic()
        run(lambda address: [_send(address, topic, b"%d" % number) for number in range(4)])
        assert time.monotonic() - start > 0.2
    assert [fault.hits for fault in addon.faults] == [1, 1, 1]
    assert _read(servers, topic, 4) == [b"0", b"1", b"2", b"3"]


def test_a_slow_response_arrives_whole(broker: EmbeddedBroker) -> None:
    with (
        _tapped(broker.bootstrap_servers, FaultAddon([parse_fault("trickle-response:40/1,times=all")])) as (run, _),
    ):

        def work(address: str) -> Any:
            with Client(address) as client:
                return client.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"))

        assert len(run(work).api_keys) > 50
