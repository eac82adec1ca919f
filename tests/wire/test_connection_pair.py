"""Two connected connections: every message of the release, recorded traffic, and the oldest response."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Final

import pytest

from kafka_msgs import (
    ApiKey,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ErrorCode,
    HeartbeatRequest,
    HeartbeatResponse,
    OffsetFetchRequest,
    ProduceRequest,
    Request,
    Response,
    iter_message_classes,
)
from kafka_msgs.errors import (
    EncodeError,
    LocalProtocolError,
    RemoteProtocolError,
    TruncatedError,
    UnknownMessageError,
    UnsupportedVersionError,
)
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import (
    NEED_DATA,
    ClientConnection,
    NoResponse,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    TokenReceived,
    decode_response,
    encode_request,
    join_frames,
    offered_api_versions,
    request_needs_response,
    unsupported_api_versions,
)
from tests.support.connection_pairs import ConnectionPair, pulled
from tests.support.recorded_frames import REQUEST, read_frames
from tests.support.recordings import RECORDINGS

REQUESTS: Final = [cls for cls in iter_message_classes() if issubclass(cls, Request)]
HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def asked(pair: ConnectionPair, request: Request[Response], version: int) -> RequestReceived:
    (event,) = pair.to_server(pair.client.send(request, version))
    assert isinstance(event, RequestReceived)
    return event


@pytest.mark.parametrize("single_bytes", [False, True], ids=["whole", "single bytes"])
def test_every_request_and_response_at_every_version(single_bytes: bool) -> None:
    """One connection carries them all. SaslHandshake version 0 comes last, as requests cannot follow it."""
    rng = Random(10)
    pair = ConnectionPair(single_bytes=single_bytes, client_id="me")
    messages = [(cls, version) for cls in REQUESTS for version in cls.INFO.versions]
    messages.sort(key=lambda each: (each[0].INFO.api_key, each[1]) == (ApiKey.SASL_HANDSHAKE, 0))
    assert len(messages) > 300
    for cls, version in messages:
        request = random_message(cls, version, rng)
        response = random_message(request.response_class(), version, rng)
        event = asked(pair, request, version)
        assert event.message() == request
        assert (event.api_key, event.version, event.header().client_id) == (cls.INFO.api_key, version, "me")
        assert event.needs_response is request_needs_response(request)
        if not event.needs_response:
            assert pair.client.next_event() == NoResponse(None, expected=True)
            continue
        (answer,) = pair.to_client(pair.server.send_response(event, response))
        assert isinstance(answer, ResponseReceived)
        assert answer.message() == response
    assert pair.client.state is pair.server.state


@pytest.mark.parametrize("name", ["client_traffic", "other_clients", "kip88"])
def test_recorded_traffic_passes_undecoded(name: str) -> None:
    """Traffic of real clients and brokers passes through a proxy of two connections, byte for byte."""
    servers: defaultdict[int, ServerConnection] = defaultdict(lambda: ServerConnection(guess_tokens=True))
    clients: defaultdict[int, ClientConnection] = defaultdict(ClientConnection)
    responses = 0
    for frame in read_frames(RECORDINGS / f"{name}.jsonl"):
        server, client = servers[frame.connection], clients[frame.connection]
        if frame.direction == REQUEST:
            server.receive_data(frame.data)
            (request,) = pulled(server)
            assert isinstance(request, RequestReceived)
            assert client.send_payload(request.payload, opaque=request) == frame.data
            assert request.frame().encode() == frame.payload
            continue
        client.receive_data(frame.data)
        (response,) = pulled(client)
        assert isinstance(response, ResponseReceived)
        assert response.opaque is server.oldest
        assert server.send_payload(response.payload) == frame.data
        assert response.frame() == decode_response(frame.payload, response.api_key, response.version)
        responses += 1
    assert responses


def test_answers_in_another_order_are_the_servers_fault() -> None:
    pair = ConnectionPair()
    first, second = asked(pair, HEARTBEAT, 4), asked(pair, HEARTBEAT, 4)
    assert pair.server.oldest is first
    with pytest.raises(LocalProtocolError, match="the request 2 cannot be answered now: 1 is the oldest"):
        pair.server.send_response(second, HeartbeatResponse())
    assert pair.server.close() == (first, second)


def test_the_answer_of_another_api_is_the_servers_fault() -> None:
    pair = ConnectionPair()
    request = asked(pair, HEARTBEAT, 4)
    with pytest.raises(LocalProtocolError, match="ApiVersionsResponse does not answer a request with the api key 12"):
        pair.server.send_response(request, ApiVersionsResponse())


def test_a_silent_produce_is_not_answered() -> None:
    pair = ConnectionPair()
    silent = asked(pair, ProduceRequest(acks=0, timeout_ms=1, topic_data=()), 9)
    with pytest.raises(LocalProtocolError, match="cannot be answered now: no request waits"):
        pair.server.send_error(silent, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_response_that_cannot_be_encoded_breaks_nothing() -> None:
    pair = ConnectionPair()
    request = asked(pair, HEARTBEAT, 4)
    with pytest.raises(EncodeError):
        pair.server.send_response(request, HeartbeatResponse(error_code=2**20))
    (answer,) = pair.to_client(pair.server.send_response(request, HeartbeatResponse()))
    assert isinstance(answer, ResponseReceived)


def test_the_error_response_of_a_request() -> None:
    pair = ConnectionPair()
    request = asked(pair, OffsetFetchRequest(group_id="g", topics=None), 7)
    data = pair.server.send_error(request, ErrorCode.NOT_COORDINATOR, throttle_time_ms=9)
    (answer,) = pair.to_client(data)
    assert isinstance(answer, ResponseReceived)
    message = answer.message()
    assert (getattr(message, "error_code", None), getattr(message, "throttle_time_ms", None)) == (16, 9)


def test_negotiation_with_a_client_that_is_newer() -> None:
    """An unknown version of ApiVersions gets version 0, an error code, and the supported versions."""
    server, client = ServerConnection(), ClientConnection()
    newer = encode_request(ApiVersionsRequest(client_software_name="a"), 4, correlation_id=9, client_id="c")
    server.receive_data(client.send_payload(newer[:2] + b"\0\x63" + newer[4:]))
    request = server.next_event()
    assert isinstance(request, RequestReceived)
    assert (request.version, request.header().client_id) == (99, "c")
    with pytest.raises(UnsupportedVersionError):
        request.message()
    data = server.send_response(request, unsupported_api_versions())
    assert data.hex() == "00000010 00000009 0023 00000001 0012 0000 0005".replace(" ", "")
    client.receive_data(data)
    response = client.next_event()
    assert isinstance(response, ResponseReceived)
    message = response.message()
    assert isinstance(message, ApiVersionsResponse)
    assert response.frame().version == 0
    (own,) = message.api_keys
    assert (message.error_code, own.api_key, own.max_version) == (ErrorCode.UNSUPPORTED_VERSION, 18, 5)


def test_a_request_of_an_unknown_api_or_version_can_only_be_passed_on() -> None:
    for api_key, version, refusal in ((999, 0, UnknownMessageError), (12, 99, UnsupportedVersionError)):
        pair = ConnectionPair()
        payload = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\5\0\2me and more"
        (request,) = pair.to_server(pair.client.send_payload(payload, opaque="t"))
        assert isinstance(request, RequestReceived)
        assert (request.api_key, request.version, request.header().client_id) == (api_key, version, "me")
        with pytest.raises(refusal):
            request.message()
        with pytest.raises(refusal):
            pair.server.send_error(request, ErrorCode.UNSUPPORTED_VERSION)
        (response,) = pair.to_client(pair.server.send_payload(b"\0\0\0\5whatever"))
        assert isinstance(response, ResponseReceived)
        assert (response.opaque, response.payload) == ("t", b"\0\0\0\5whatever")
        with pytest.raises(refusal):
            response.message()


def test_a_server_offers_its_apis() -> None:
    offer = offered_api_versions([ApiKey.HEARTBEAT, ApiKey.FETCH, 999])
    assert [(each.api_key, each.min_version, each.max_version) for each in offer.api_keys] == [
        (12, 0, 4), (1, 4, 18),
    ]  # fmt: skip
    assert offer.error_code == ErrorCode.NONE


def test_a_client_that_only_stops_sending_still_gets_its_answers() -> None:
    pair = ConnectionPair()
    requests = [asked(pair, HEARTBEAT, 4) for _ in range(3)]
    pair.server.receive_data(b"")
    pulled(pair.server)
    for request in requests:
        assert pair.server.state == "HALF_CLOSED"
        assert pair.to_client(pair.server.send_response(request, HeartbeatResponse()))
    assert pair.server.state == "CLOSED"


def test_a_proxy_guesses_when_tokens_end() -> None:
    """The last GSSAPI token has no response, so a request may follow it. The response to the request is not a token."""
    server, client = ServerConnection(guess_tokens=True), ClientConnection()
    handshake = bytes.fromhex("0011 0000 00000001 ffff 0006 475353415049")
    server.receive_data(join_frames(handshake))
    client.send_payload(handshake)
    client.receive_data(bytes.fromhex("0000000a 00000001 0000 00000000"))
    (answer,) = pulled(client)
    pulled(server)
    assert isinstance(answer, ResponseReceived)
    server.send_payload(answer.payload)
    payload = encode_request(HEARTBEAT, 4, correlation_id=2)
    server.receive_data(join_frames(b"first", b"last", payload))
    first, last, request = pulled(server)
    assert isinstance(first, TokenReceived)
    assert isinstance(last, TokenReceived)
    assert isinstance(request, RequestReceived)
    client.receive_data(client.send_token(first.token))
    assert pulled(client) == [TokenReceived(None, b"first")]
    client.send_token(last.token, opaque="last")
    client.send_payload(request.payload, opaque="request")
    client.receive_data(bytes.fromhex("0000000c 00000002 00 00000000 0000 00"))
    token, heartbeat = pulled(client)
    assert token == NoResponse("last", expected=True)
    assert isinstance(heartbeat, ResponseReceived)
    assert heartbeat.opaque == "request"


def test_payloads_that_are_too_short_to_be_passed_on() -> None:
    pair = ConnectionPair()
    with pytest.raises(TruncatedError):
        pair.client.send_payload(b"\0" * 7)
    assert (pair.client.in_flight, pair.client.state) == (0, "OPEN")
    asked(pair, HEARTBEAT, 4)
    with pytest.raises(TruncatedError):
        pair.server.send_payload(b"\0\0\0")
    assert pair.server.in_flight == 1
    assert pair.server.next_event() is NEED_DATA


def test_a_request_that_is_too_short_or_too_large() -> None:
    for data, limit, reason in (
        (join_frames(bytes(7)), 100, "a request of 7 bytes, its header alone needs 8"),
        (join_frames(bytes(101)), 100, "a frame of 101 bytes, at most 100 are allowed"),
        (b"GET / HTTP/1.1", 2**20, "look like HTTP"),
        (b"\x16\x03\x01\x02\0\1", 2**20, "look like TLS"),
    ):
        server = ServerConnection(max_frame_size=limit)
        server.receive_data(data)
        with pytest.raises(RemoteProtocolError, match=reason):
            server.next_event()
