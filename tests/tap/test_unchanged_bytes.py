"""Every byte that the proxy receives is the byte that it sends, while it records and while a browser watches.

Five clients write and read. The bytes of both sides of each connection are compared at the sockets; only responses with
broker addresses may differ, and only in their addresses.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any, Final

import pytest
from attrs import define, field

from kafka_msgs import Response
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.capture import Endpoint
from kafka_msgs.capture.recording import recording_pieces
from kafka_msgs.client import AsyncProducer, Consumer, Producer
from kafka_msgs.tap import Addon, Tap, TapExchange, rewrite_addresses
from kafka_msgs.tap.address_rewriting import address_fields
from kafka_msgs.tap.relay import RelaySide
from kafka_msgs.viewer import LiveViewer
from kafka_msgs.wire import FrameSplitter, decode_response, read_request_prefix
from tests.support.cluster_topics import new_topic
from tests.support.kafka_cluster import ClusterAddresses

VALUES: Final = [b"value %d " % number * 50 for number in range(40)]


@define(eq=False)
class _Log:
    """The bytes of one side of a connection."""

    received: bytearray = field(factory=bytearray)
    sent: bytearray = field(factory=bytearray)
    other: _Log | None = None


def _watch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[_Log, _Log]]:
    """Log the bytes of all relays at their transports; return the client's and the broker's side of each."""
    logs: dict[RelaySide, _Log] = {}
    pairs: list[tuple[_Log, _Log]] = []
    connection_made, buffer_updated, join = RelaySide.connection_made, RelaySide.buffer_updated, RelaySide.join
    buffers: dict[RelaySide, memoryview] = {}
    get_buffer = RelaySide.get_buffer

    def made(self: RelaySide, transport: Any) -> None:
        log = logs[self] = _Log()
        write = transport.write

        def logged(data: Any) -> None:
            log.sent += data
            write(data)

        transport.write = logged
        connection_made(self, transport)

    def buffer(self: RelaySide, sizehint: int) -> memoryview:
        buffers[self] = get_buffer(self, sizehint)
        return buffers[self]

    def updated(self: RelaySide, nbytes: int) -> None:
        logs[self].received += buffers[self][:nbytes]
        buffer_updated(self, nbytes)

    def joined(self: RelaySide, other: RelaySide, *more: Any) -> None:
        if type(self).__name__ == "ClientSide":
            pairs.append((logs[self], logs[other]))
        join(self, other, *more)

    monkeypatch.setattr(RelaySide, "connection_made", made)
    monkeypatch.setattr(RelaySide, "get_buffer", buffer)
    monkeypatch.setattr(RelaySide, "buffer_updated", updated)
    monkeypatch.setattr(RelaySide, "join", joined)
    return pairs


def _with_kafka_msgs(address: str, topic: str) -> list[bytes]:
    with Producer(address, compression="gzip") as producer:
        for value in VALUES:
            producer.send(topic, value=value)
        producer.flush()
    with Consumer(address, group_id="one", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        return _polled(lambda: [bytes(record.value or b"") for record in consumer.poll(0.5)])


def _polled(poll: Callable[[], list[bytes]]) -> list[bytes]:
    found: list[bytes] = []
    for _ in range(100):
        found += poll()
        if len(found) >= len(VALUES):
            break
    return found


def _with_asyncio(address: str, topic: str) -> list[bytes]:
    async def work() -> list[bytes]:
        async with AsyncProducer(address) as producer:
            for value in VALUES:
                await (await producer.send(topic, value=value))
        return VALUES

    return asyncio.run(work())


def _with_librdkafka(address: str, topic: str) -> list[bytes]:
    confluent = pytest.importorskip("confluent_kafka")
    producer = confluent.Producer({"bootstrap.servers": address})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    config = {"bootstrap.servers": address, "group.id": "two", "auto.offset.reset": "earliest"}
    consumer = confluent.Consumer(config)
    consumer.subscribe([topic])
    try:
        return _polled(lambda: [each.value() for each in consumer.consume(100, 0.5) if each.error() is None])
    finally:
        consumer.close()


def _with_kafka_python(address: str, topic: str) -> list[bytes]:
    kafka = pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=address)
    for value in VALUES:
        producer.send(topic, value)
    producer.flush(30)
    producer.close()
    return VALUES


def _with_aiokafka(address: str, topic: str) -> list[bytes]:
    aiokafka = pytest.importorskip("aiokafka")

    async def work() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=address) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        return VALUES

    return asyncio.run(work())


CLIENTS: Final = (_with_kafka_msgs, _with_asyncio, _with_librdkafka, _with_kafka_python, _with_aiokafka)


class _Idle(Addon):
    """An addon that reads everything and changes nothing."""

    def request(self, exchange: TapExchange) -> None:
        assert exchange.request is not None

    def response(self, exchange: TapExchange) -> None:
        assert exchange.response is not None


ADDONS = pytest.mark.parametrize("addons", [(), (_Idle(),)], ids=["without addons", "with an idle addon"])


@pytest.mark.system
@ADDONS
def test_no_byte_changes_between_five_clients_and_an_embedded_broker(
    monkeypatch: pytest.MonkeyPatch, addons: tuple[Addon, ...]
) -> None:
    with EmbeddedBroker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("shop")])
        _compare(monkeypatch, broker.bootstrap_servers, "shop", addons)


@ADDONS
def test_no_byte_changes_between_five_clients_and_three_real_brokers(
    monkeypatch: pytest.MonkeyPatch, kafka_cluster: ClusterAddresses, addons: tuple[Addon, ...]
) -> None:
    topic = new_topic(kafka_cluster, 3, replicas=3, prefix="unchanged")
    _compare(monkeypatch, kafka_cluster.bootstrap_servers, topic, addons)


def _compare(monkeypatch: pytest.MonkeyPatch, servers: str, topic: str, addons: tuple[Addon, ...]) -> None:
    """Run the clients through a proxy that records and feeds a live view, and compare all bytes."""
    pairs = _watch(monkeypatch)
    recording = io.BytesIO()
    moved: dict[Endpoint, Endpoint] = {}

    async def work() -> None:
        places = (server.rpartition(":") for server in servers.split(","))
        brokers = [Endpoint(host, int(port)) for host, _, port in places]
        async with LiveViewer(title="t") as viewer:

            def seen(item: Any) -> None:
                recording.writelines(recording_pieces(item))
                viewer.add(item)

            async with Tap(brokers, seen=seen, addons=addons) as tap:
                running = (asyncio.to_thread(client, str(tap.address), topic) for client in CLIENTS)
                found = await asyncio.gather(*running)
                assert all(len(values) >= len(VALUES) for values in found)
                moved.update((at, each.address) for at, each in tap._listeners._brokers.items())
            assert [item.row.problem for item in viewer._kept if item.row.api_key < 0] == []

    asyncio.run(asyncio.wait_for(work(), 120))
    assert len(pairs) >= 2 * len(CLIENTS)
    assert recording.tell() > 50_000
    changed = 0
    for client, server in pairs:
        assert client.received == server.sent
        changed += _compare_responses(bytes(client.received), bytes(server.received), bytes(client.sent), moved)
    assert changed >= len(CLIENTS), "each client needs the addresses of the proxy"


def _compare_responses(asked: bytes, answered: bytes, forwarded: bytes, moved: dict[Endpoint, Endpoint]) -> int:
    """Compare the responses of a connection; return how many differ, which is only in their addresses."""
    prefixes = {each.correlation_id: each for each in map(read_request_prefix, FrameSplitter().feed(asked))}
    changed = 0
    for before, after in zip(FrameSplitter().feed(answered), FrameSplitter().feed(forwarded), strict=True):
        if before == after:
            continue
        prefix = prefixes[int.from_bytes(before[:4], "big")]
        frames = [decode_response(each, prefix.api_key, prefix.version) for each in (before, after)]
        names = address_fields(type(frames[0].message), frames[0].version)
        expected: Response = rewrite_addresses(
            frames[0].message, names, lambda host, port: moved.get(Endpoint(host, port), Endpoint(host, port))
        )
        assert names
        assert frames[1].message == expected
        assert frames[1].header == frames[0].header
        changed += 1
    return changed
