"""Matching of requests and responses, and faults for everything without a match."""

from __future__ import annotations

import io
import ssl
from collections.abc import Sequence

import attrs
import pytest

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_msgs.capture import CaptureFault, CaptureLimits, Endpoint, Exchange, FaultKind, read_exchanges
from kafka_msgs.errors import DecodeError
from kafka_msgs.wire import encode_request, encode_response
from tests.support.conversations import ask, reply, talk
from tests.support.packets import (
    BROKER,
    CLIENT,
    Sent,
    client,
    cut,
    everything,
    exchanges,
    faults,
    framed,
    pcap,
    segments,
    sizes,
)


def numbers(found: Sequence[Exchange | CaptureFault]) -> list[tuple[int, bool]]:
    """Return the correlation ids, each with whether the request has a response."""
    return [(each.correlation_id, each.response is not None) for each in exchanges(found)]


def test_an_exchange() -> None:
    (exchange,) = everything(pcap(segments(talk(1))))
    assert isinstance(exchange, Exchange)
    assert (exchange.api, exchange.api_key, exchange.version, exchange.client_id) == ("Metadata", 3, 9, "me")
    assert (exchange.connection.client, exchange.connection.server) == (CLIENT, BROKER)
    assert exchange.request_message == MetadataRequest(topics=())
    assert exchange.response_message == MetadataResponse(cluster_id="c")
    assert exchange.response is not None
    assert (exchange.request.size, exchange.response.size) == (len(ask(1)) - 4, len(reply(1)) - 4)
    assert (exchange.request.packet, exchange.response.packet) == (3, 4)
    assert exchange.latency_us == 1000


def test_requests_in_flight_are_answered_in_order() -> None:
    chunks = [
        ("request", ask(1) + ask(2)),
        ("request", ask(3)),
        ("response", reply(1)),
        ("response", reply(2) + reply(3)),
    ]
    assert numbers(everything(pcap(segments(chunks)))) == [(1, True), (2, True), (3, True)]


def test_a_client_that_numbers_all_its_requests_alike() -> None:
    chunks = [("request", ask(5) + ask(5)), ("response", reply(5)), ("response", reply(5))]
    assert numbers(everything(pcap(segments(chunks)))) == [(5, True), (5, True)]


def test_a_request_that_was_passed_over_is_unanswered() -> None:
    chunks = [("request", ask(1) + ask(2)), ("response", reply(2)), ("request", ask(3))]
    assert numbers(everything(pcap(segments(chunks)))) == [(1, False), (2, True), (3, False)]


def test_a_response_that_nobody_asked_for() -> None:
    found = everything(pcap(segments([("request", ask(1)), ("response", reply(9) + reply(1))])))
    assert numbers(found) == [(1, True)]
    (orphan,) = faults(found)
    assert (orphan.kind, orphan.size, orphan.direction) == (FaultKind.ORPHAN, len(reply(9)), "response")
    assert str(orphan) == (
        "packet 4: 192.0.2.1:9092 > 192.0.2.7:50000: "
        "a response of 30 bytes with the correlation id 9, which no request had"
    )


def test_a_produce_without_acknowledgement_has_no_response() -> None:
    produce = [
        framed(encode_request(ProduceRequest(acks=acks, timeout_ms=9), 9, correlation_id=number))
        for number, acks in ((1, 0), (2, 1))
    ]
    answer = framed(encode_response(ProduceResponse(), 9, correlation_id=2))
    chunks = [("request", produce[0] + produce[1]), ("response", answer)]
    assert numbers(everything(pcap(segments(chunks)))) == [(1, False), (2, True)]


def test_api_versions_that_the_broker_does_not_know_are_answered_in_version_0() -> None:
    question = framed(encode_request(ApiVersionsRequest(), 4, correlation_id=1))
    answer = framed(encode_response(ApiVersionsResponse(error_code=35), 0, correlation_id=1))
    (exchange,) = everything(pcap(segments([("request", question), ("response", answer)])))
    assert isinstance(exchange, Exchange)
    assert (exchange.version, exchange.response_version) == (4, 0)
    assert [(each.path, each.code, each.name) for each in exchange.errors] == [
        ("error_code", 35, "UNSUPPORTED_VERSION")
    ]


def test_an_api_that_is_not_known_is_an_exchange_with_a_problem() -> None:
    question = framed(b"\x03\xe7\x00\x05" + (7).to_bytes(4, "big") + b"\x00\x02me?")
    (exchange,) = everything(pcap(segments([("request", question), ("response", framed(b"\0\0\0\7..."))])))
    assert isinstance(exchange, Exchange)
    assert (exchange.api, exchange.api_key, exchange.version, exchange.client_id) == (None, 999, 5, "me")
    assert [(each.direction, each.reason) for each in exchange.problems] == [
        ("request", "no request of clients has the api key 999"),
        ("response", "no response of clients has the api key 999"),
    ]
    assert exchange.errors == ()


def test_a_request_whose_header_has_no_client_id() -> None:
    """ControlledShutdown 0 of old releases: API key, version, correlation id, then the broker id."""
    question = framed(bytes.fromhex("0007 0000 00000001 00000005"))
    (exchange,) = everything(pcap(segments([("request", question)])))
    assert isinstance(exchange, Exchange)
    assert (exchange.api_key, exchange.version, exchange.client_id) == (7, 0, None)


def test_tokens_without_headers_after_a_handshake_of_version_0() -> None:
    handshake = framed(encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1))
    accepted = framed(encode_response(SaslHandshakeResponse(), 0, correlation_id=1))
    tokens = [b"\0user\0word", b"n,,n=user"]
    chunks = [("request", handshake), ("response", accepted)]
    chunks += [("request", framed(tokens[0])), ("response", framed(b""))]
    chunks += [("request", framed(tokens[1])), ("response", framed(b"r=challenge")), *talk(2)[2:]]
    found = everything(pcap(segments(chunks)))
    assert numbers(found) == [(1, True), (2, True)]
    assert [(each.kind, each.reason) for each in faults(found)] == [
        (FaultKind.SASL, "a token of 10 bytes, answered with 0 bytes"),
        (FaultKind.SASL, "a token of 9 bytes, answered with 11 bytes"),
    ]
    assert not any(each.kind.is_damage for each in faults(found))


def test_encrypted_connections_are_reported_and_not_interpreted() -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="broker.example")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    asked, answered = outgoing.read(), b"\x16\x03\x03\x00\x7a" + bytes(122)
    for ports in ((BROKER.port,), None):
        found = everything(pcap(segments([("request", asked), ("response", answered)])), ports=ports)
        assert [(each.kind, each.size, each.direction) for each in faults(found)] == [
            (FaultKind.TLS, len(asked), "request"),
            (FaultKind.TLS, len(answered), "response"),
        ]
        assert len(found) == 2


def test_other_protocols_are_distinguished_from_kafka_by_content() -> None:
    chunks = [("request", b"GET / HTTP/1.1\r\n\r\n"), ("response", b"HTTP/1.1 200 OK\r\n\r\n")]
    found = everything(pcap(segments(chunks, server=Endpoint(BROKER.host, 80)) + segments(talk(1))), ports=None)
    assert numbers(found) == [(1, True)]
    assert [(each.kind, each.size) for each in faults(found)] == [
        (FaultKind.UNRECOGNISED, len(data)) for _, data in chunks
    ]


def test_connections_on_other_ports_are_counted() -> None:
    found = everything(pcap(segments(talk(2), server=Endpoint(BROKER.host, 29092)) + segments(talk(1))))
    assert numbers(found) == [(1, True)]
    (left_out,) = faults(found)
    size = sum(len(data) for _, data in talk(2))
    assert (left_out.kind, left_out.size) == (FaultKind.LEFT_OUT, size)
    assert str(left_out) == f"{size} bytes of connections on other ports (29092) were not looked at"


@pytest.mark.parametrize("ports", [(BROKER.port,), None], ids=["by port", "by content"])
def test_a_capture_that_starts_within_a_connection(ports: tuple[int, ...] | None) -> None:
    found = everything(pcap(segments(talk(4), syn=False)), ports=ports)
    assert not faults(found)
    assert numbers(found) == [(number, True) for number in range(1, 5)]


def test_a_capture_that_starts_within_a_frame() -> None:
    (direction, data), *rest = talk(3)
    found = everything(pcap(segments([(direction, data[10:]), *rest], syn=False)))
    assert numbers(found) == [(2, True), (3, True)]
    assert [(each.kind, each.size) for each in faults(found)] == [
        (FaultKind.UNRECOGNISED, len(ask(1)) - 10),
        (FaultKind.UNRECOGNISED, len(reply(1))),
    ]


def test_a_capture_that_ends_within_a_frame() -> None:
    made = segments([*talk(1), ("request", ask(2)[:20])], fin=False)
    found = everything(pcap(made))
    assert numbers(found) == [(1, True), (2, False)]
    (problem,) = exchanges(found)[1].problems
    missing = len(ask(2)) - 20
    assert problem.reason == f"Metadata request: at byte 16: {missing} of {len(ask(2)) - 4} bytes were not captured"


def test_ports_that_are_used_again() -> None:
    again = segments(talk(1), first=(77_000, 99_000))
    found = everything(pcap(segments(talk(2), fin=False) + again))
    assert [(each.connection.number, each.correlation_id) for each in exchanges(found)] == [(1, 1), (1, 2), (2, 1)]


OLD_STARTS = [(1000, 2**32 - 7), (5_000_000, 70), (2**31, 2**30), (76_990, 98_990)]
"""Sequence numbers of an earlier connection: before the later one, after it, far away, and just before it."""


@pytest.mark.parametrize("old", OLD_STARTS)
@pytest.mark.parametrize("heard", ["both", "request", "response"])
@pytest.mark.parametrize("fin", [True, False])
def test_a_connection_open_before_the_capture_and_then_reused(old: tuple[int, int], heard: str, *, fin: bool) -> None:
    """Every byte of both connections is in an exchange or a fault, and no gap is invented."""
    before = [each for each in segments(talk(2), first=old, syn=False, fin=fin) if heard in ("both", _way(each))]
    after = segments(talk(3), first=(77_000, 99_000))
    found = everything(pcap(before + after))
    later = [each for each in exchanges(found) if each.connection.number == 2]
    assert [(each.correlation_id, each.response is not None) for each in later] == [(n, True) for n in (1, 2, 3)]
    assert [each for each in faults(found) if each.kind is FaultKind.GAP] == []
    assert _accounted(found) == sum(len(each.data) for each in before + after)


def _way(segment: Sent) -> str:
    return "request" if segment.source == CLIENT else "response"


def _accounted(found: Sequence[Exchange | CaptureFault]) -> int:
    sides = [side for each in exchanges(found) for side in (each.request, each.response) if side is not None]
    return sum(4 + len(side.payload) for side in sides) + sum(each.size for each in faults(found))


@pytest.mark.parametrize("ports", [(BROKER.port,), None], ids=["by port", "by content"])
def test_packets_from_an_endpoint_to_itself_are_faults(ports: tuple[int, ...] | None) -> None:
    """A socket can connect to itself; the rest of the capture is read."""
    alone = segments(talk(2), client=BROKER, server=BROKER)
    found = everything(pcap(alone + segments(talk(1))), ports=ports)
    assert numbers(found) == [(1, True)]
    assert {(each.kind, each.reason) for each in faults(found)} == {
        (FaultKind.PACKET, "a packet from an endpoint to itself")
    }
    assert sum(each.size for each in faults(found)) == sum(len(each.data) for each in alone)


def test_a_lost_segment_within_a_response_costs_that_response_alone() -> None:
    made = segments(cut(talk(3), sizes(12)))
    place = next(n for n, each in enumerate(made) if each.source == BROKER and each.data.startswith(reply(2)[12:24]))
    lost = made.pop(place)
    found = everything(pcap(made))
    assert numbers(found) == [(1, True), (2, True), (3, True)]
    assert [bool(each.problems) for each in exchanges(found)] == [False, True, False]
    (gap,) = faults(found)
    assert (gap.kind, gap.size, gap.direction) == (FaultKind.GAP, len(lost.data), "response")
    with pytest.raises(DecodeError, match="were not captured"):
        assert exchanges(found)[1].response_message


def test_a_lost_segment_with_the_size_of_a_frame_is_followed_by_the_next_frame() -> None:
    chunks = talk(4)
    made = segments(chunks, fin=False)
    del made[2 + 3]
    found = everything(pcap(made))
    assert numbers(found) == [(1, True), (2, False), (3, True), (4, True)]
    assert [(each.kind, each.size) for each in faults(found)] == [(FaultKind.GAP, len(reply(2)))]


@pytest.mark.parametrize("sender", [CLIENT, BROKER], ids=["request", "response"])
def test_a_lost_segment_in_a_long_conversation_holds_nothing_up_for_long(sender: Endpoint) -> None:
    made = segments(talk(2000), fin=False)
    lost = next(number for number, each in enumerate(made) if number > 100 and each.source == sender)
    del made[lost]
    found = read_exchanges(io.BytesIO(pcap(made)))
    early = [next(found) for _ in range(1000)]
    assert max(each.response.packet for each in exchanges(early) if each.response) < 2500
    sound = [number for number, answered in numbers([*early, *found]) if answered]
    assert len(sound) >= 1998


def test_packets_that_were_cut_short() -> None:
    made = [attrs.evolve(each, snapped=min(3, len(each.data))) for each in segments(talk(3))]
    found = everything(pcap(made))
    assert numbers(found) == [(1, True), (2, True), (3, True)]
    assert [(each.kind, each.size) for each in faults(found)] == [(FaultKind.GAP, 3)] * 6
    assert all(len(each.problems) == 2 for each in exchanges(found))


def test_many_packets_with_the_same_fault_are_reported_once_more_together() -> None:
    data = bytearray(pcap(segments([("request", b"x" * 10)] * 98)))
    data[20:24] = (147).to_bytes(4, "little")
    found = faults(everything(bytes(data)))
    assert [each.reason for each in found[:20]] == ["the link type 147 is unknown"] * 20
    assert [each.reason for each in found[20:]] == ["82 more packets: the link type 147 is unknown"]
    assert found[-1].size == 80 * 64 + 2 * 54


def test_connections_beyond_the_limit_are_given_up_and_reported() -> None:
    made = [
        part for number in range(5) for part in segments([("request", ask(number))], client=client(number), fin=False)
    ]
    found = everything(pcap(made), limits=CaptureLimits(connections=2))
    assert numbers(found) == [(number, False) for number in range(5)]


def test_requests_whose_responses_are_not_captured_do_not_pile_up() -> None:
    asked = [ask(number, client_id="x" * 1000) for number in range(20)]
    made = [each for each in segments([("request", each) for each in asked], fin=False) if each.source == CLIENT]
    found = read_exchanges(io.BytesIO(pcap(made)), limits=CaptureLimits(waiting=5000))
    assert next(found).request.packet == 2  # type: ignore[union-attr]
    assert numbers([*found]) == [(number, False) for number in range(1, 20)]


def test_memory_beyond_the_limit_is_given_up_and_reported() -> None:
    frame = (50_000).to_bytes(4, "big") + ask(1)[4:] + bytes(10_000)
    made = [part for number in range(5) for part in segments([("request", frame)], client=client(number), fin=False)]
    found = everything(pcap(made), limits=CaptureLimits(held=25_000))
    assert [each.request.missing > 0 for each in exchanges(found)] == [True] * 5
