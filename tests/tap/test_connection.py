"""A connection through a proxy, without sockets: bytes are forwarded unchanged, apart from required changes."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_msgs.capture import CapturedConnection, CaptureFault, Endpoint, Exchange, FaultKind
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.messages.api_versions_response import ApiVersion
from kafka_msgs.messages.metadata_response import MetadataResponseBroker
from kafka_msgs.tap import TapConfig, TapConnection
from kafka_msgs.tap.frame_forwarder import FrameForwarder
from kafka_msgs.wire import decode_response, encode_request, encode_response, join_frames
from tests.support.recorded_frames import REQUEST, read_frames
from tests.support.recordings import RECORDINGS

ENDS = CapturedConnection(1, Endpoint("192.0.2.7", 50_000), Endpoint("192.0.2.1", 9092))


def _unmoved(host: str, port: int) -> tuple[str, int]:
    return host, port


def _behind(host: str, port: int) -> tuple[str, int]:
    return "proxy", port + 10_000


def _tap(**rules: Any) -> TapConnection:
    return TapConnection(ENDS, TapConfig(**{"translate": _behind, **rules}))


def _pieces(inflow: FrameForwarder, data: bytes, size: int) -> Iterator[int]:
    """Receive bytes in chunks of a maximum size."""
    at = 0
    while at < len(data):
        room = inflow.get_buffer()
        piece = data[at : at + min(size, len(room))]
        room[: len(piece)] = piece
        at += len(piece)
        yield len(piece)


def _asked(tap: TapConnection, data: bytes, size: int = 2**20) -> list[Item]:
    """Return the items for client bytes received in chunks, and check that all bytes are forwarded at once."""
    found: list[Item] = []
    at = 0
    for count in _pieces(tap.requests, data, size):
        passed = tap.client_sent(count, 5)
        assert passed.data == data[at : at + count]
        at += count
        found += passed.items
    return found


def _answered(tap: TapConnection, data: bytes, size: int = 2**20) -> tuple[bytes, list[Item]]:
    """Return the client's bytes, and the items, for broker bytes received in chunks."""
    out = b""
    found: list[Item] = []
    for count in _pieces(tap.responses, data, size):
        passed = tap.broker_sent(count, 9)
        out += passed.data
        found += passed.items
    return out, found


HEARTBEAT = join_frames(encode_request(HeartbeatRequest(group_id="g", member_id="m"), 4, correlation_id=7))
BEAT = join_frames(encode_response(HeartbeatResponse(error_code=27), 4, correlation_id=7))


@pytest.mark.parametrize("size", [1, 3, 2**20])
def test_what_needs_no_change_goes_on_as_it_came(size: int) -> None:
    """The exchange is reported, with its times, for any chunk size."""
    tap = _tap()
    assert _asked(tap, HEARTBEAT, size) == []
    out, (exchange,) = _answered(tap, BEAT, size)
    assert out == BEAT
    assert isinstance(exchange, Exchange)
    assert (exchange.api, exchange.version, exchange.latency_us) == ("Heartbeat", 4, 4)
    assert [each.name for each in exchange.errors] == ["REBALANCE_IN_PROGRESS"]


@pytest.mark.parametrize("size", [1, 5, 2**20])
def test_addresses_are_replaced_and_the_exchange_keeps_those_of_the_broker(size: int) -> None:
    """Responses before and after it are forwarded in order."""
    tap = _tap()
    asked = join_frames(encode_request(MetadataRequest(topics=()), 12, correlation_id=8))
    _asked(tap, HEARTBEAT + asked + HEARTBEAT, size)
    broker = MetadataResponseBroker(node_id=3, host="kafka.example", port=9092, rack="r")
    answer = join_frames(encode_response(MetadataResponse(brokers=(broker,)), 12, correlation_id=8))
    out, items = _answered(tap, BEAT + answer + BEAT, size)
    assert out[: len(BEAT)] == out[-len(BEAT) :] == BEAT
    message = decode_response(out[len(BEAT) + 4 : -len(BEAT)], 3, 12).message
    assert isinstance(message, MetadataResponse)
    (changed,) = message.brokers
    assert (changed.node_id, changed.host, changed.port, changed.rack) == (3, "proxy", 19_092, "r")
    (seen,) = (item for item in items if isinstance(item, Exchange) and item.api == "Metadata")
    assert seen.response is not None
    assert seen.response.payload == answer[4:]


def test_versions_are_capped_only_if_asked() -> None:
    """A version that does not exist yet is offered only without the cap."""
    asked = join_frames(encode_request(ApiVersionsRequest(), 3, correlation_id=1))
    offer = ApiVersionsResponse(api_keys=(ApiVersion(api_key=1, min_version=4, max_version=99),))
    answer = join_frames(encode_response(offer, 3, correlation_id=1))
    for capped, highest in ((False, 99), (True, 18)):
        tap = _tap(cap_versions=capped)
        _asked(tap, asked)
        out, _ = _answered(tap, answer)
        message = decode_response(out[4:], 18, 3).message
        assert isinstance(message, ApiVersionsResponse)
        assert message.api_keys[0].max_version == highest
        assert (out == answer) is not capped


def test_unknown_apis_and_damaged_messages_go_on_and_are_seen() -> None:
    """A Metadata response that cannot be decoded is forwarded unchanged, and the exchange reports the problem."""
    tap = _tap()
    unknown = join_frames(bytes.fromhex("03e7 0001 00000004 ffff"))
    metadata = join_frames(encode_request(MetadataRequest(topics=()), 12, correlation_id=5))
    _asked(tap, unknown + metadata)
    answers = join_frames(bytes.fromhex("00000004 cafe"), bytes.fromhex("00000005 00 ffff"))
    out, items = _answered(tap, answers, 7)
    assert out == answers
    first, second = (item for item in items if isinstance(item, Exchange))
    assert (first.api, first.api_key) == (None, 999)
    assert [problem.direction for problem in second.problems] == ["response"]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 11, 2**20])
@pytest.mark.parametrize("stream", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\xff" * 9])
def test_what_is_not_kafka_goes_on_unread(stream: bytes, size: int) -> None:
    """After frames, too, all bytes are forwarded, and one fault reports where reading ended."""
    tap = _tap()
    _asked(tap, HEARTBEAT)
    out, items = _answered(tap, BEAT + stream, size)
    assert out == BEAT + stream
    faults = [item for item in items if isinstance(item, CaptureFault)]
    assert [(each.kind, each.direction) for each in faults] == [(FaultKind.UNRECOGNISED, "response")]
    assert _asked(tap, stream, size)[0].connection == ENDS


def test_frames_above_the_limit_go_on_unread() -> None:
    """The frame limit bounds the memory of a connection."""
    tap = _tap(frame_limit=100)
    _asked(tap, HEARTBEAT)
    large = join_frames(bytes(101))
    out, _ = _answered(tap, BEAT + large, 10)
    assert out == BEAT + large


def test_tokens_of_sasl_go_on_and_only_their_sizes_are_seen() -> None:
    """After a SaslHandshake of version 0, tokens have no header (KIP-43)."""
    tap = _tap()
    _asked(tap, join_frames(encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1)))
    answer = join_frames(encode_response(SaslHandshakeResponse(mechanisms=("PLAIN",)), 0, correlation_id=1))
    assert _answered(tap, answer)[0] == answer
    _asked(tap, join_frames(b"\0alice\0alice-secret"))
    out, (token,) = _answered(tap, join_frames(b""))
    assert out == bytes(4)
    assert isinstance(token, CaptureFault)
    assert (token.kind, token.reason) == (FaultKind.SASL, "a token of 19 bytes, answered with 0 bytes")


def test_a_produce_without_acks_is_an_exchange_at_once() -> None:
    """It has no response, and the next response belongs to the next request."""
    tap = _tap()
    produce = join_frames(encode_request(ProduceRequest(acks=0, timeout_ms=1), 9, correlation_id=6))
    (seen,) = _asked(tap, produce)
    assert isinstance(seen, Exchange)
    assert seen.response is None
    _asked(tap, HEARTBEAT)
    out, (exchange,) = _answered(tap, BEAT)
    assert (out, isinstance(exchange, Exchange)) == (BEAT, True)


def test_a_connection_is_full_while_too_much_waits_for_responses() -> None:
    """The limit is on bytes or requests: reading pauses until responses arrive. Responses without a request do not
    count.
    """
    for tap, most in ((_tap(in_flight=2 * len(HEARTBEAT)), 3), (_tap(), 1_000)):
        _answered(tap, 2_000 * join_frames(bytes((0, 0, 1, 1))))
        for number in range(1, most + 1):
            _asked(tap, HEARTBEAT)
            assert tap.full is (number == most)
        _answered(tap, BEAT)
        assert not tap.full


def test_an_end_in_the_middle_is_reported() -> None:
    """Requests without a response become exchanges, incomplete frames become faults."""
    tap = _tap()
    _asked(tap, HEARTBEAT + HEARTBEAT[:9])
    _answered(tap, BEAT[:6])
    exchange, *faults = tap.close(11)
    assert isinstance(exchange, Exchange)
    assert exchange.response is None
    assert [(each.size, each.direction) for each in faults if isinstance(each, CaptureFault)] == [
        (9, "request"),
        (6, "response"),
    ]


def _streams() -> list[tuple[bytes, bytes]]:
    """Return the bytes of each connection in the recorded session of real clients, in both directions."""
    found: dict[int, tuple[list[bytes], list[bytes]]] = {}
    for frame in read_frames(RECORDINGS / "client_traffic.jsonl"):
        found.setdefault(frame.connection, ([], []))[frame.direction != REQUEST].append(frame.data)
    return [(b"".join(asked), b"".join(answered)) for asked, answered in found.values()]


def _cut(data: bytes, sizes: Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = sizes.randint(1, 300)
        yield data[at : at + size]
        at += size


@pytest.mark.parametrize("seed", range(5))
def test_recorded_traffic_goes_on_byte_for_byte(seed: int) -> None:
    """If no address changes, the client receives the broker's exact bytes, in chunks of any size."""
    sizes = Random(seed)
    for asked, answered in _streams():
        tap = _tap(translate=_unmoved)
        _asked(tap, asked)
        out = b"".join(_answered(tap, piece)[0] for piece in _cut(answered, sizes))
        assert out == answered
        assert [item for item in tap.close(2) if isinstance(item, CaptureFault)] == []
