"""The client side of a connection: sent bytes, events from received bytes, and permanent errors."""

from __future__ import annotations

import pytest

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ErrorCode,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    ProduceResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import (
    DecodeError,
    EncodeError,
    FrameSizeError,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersionError,
)
from kafka_msgs.message import Response
from kafka_msgs.wire import (
    NEED_DATA,
    ClientConnection,
    ConnectionClosed,
    ConnectionState,
    NoResponse,
    ResponseReceived,
    TokenReceived,
    encode_request,
    encode_response,
    join_frames,
)

HEARTBEAT = HeartbeatRequest(group_id="billing", generation_id=1, member_id="m")
HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")


def answer(message: Response, version: int, correlation_id: int) -> bytes:
    return join_frames(encode_response(message, version, correlation_id=correlation_id))


def received(connection: ClientConnection, data: bytes) -> ResponseReceived:
    connection.receive_data(data)
    event = connection.next_event()
    assert isinstance(event, ResponseReceived)
    return event


def with_tokens() -> ClientConnection:
    connection = ClientConnection()
    connection.send(HANDSHAKE, 0)
    received(connection, answer(SaslHandshakeResponse(mechanisms=("PLAIN",)), 0, 1))
    return connection


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_has_the_bytes_of_the_codec(version: int) -> None:
    connection = ClientConnection(client_id="me")
    sent = [connection.send(HEARTBEAT, version) for _ in range(3)]
    assert sent == [
        join_frames(encode_request(HEARTBEAT, version, correlation_id=number, client_id="me")) for number in (1, 2, 3)
    ]
    assert connection.in_flight == 3


def test_responses_come_back_with_their_tags() -> None:
    connection = ClientConnection()
    for number in range(3):
        connection.send(HEARTBEAT, 4, opaque=number)
    codes = [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.FENCED_INSTANCE_ID]
    data = b"".join(answer(HeartbeatResponse(error_code=code), 4, 1 + n) for n, code in enumerate(codes))
    connection.receive_data(data)
    for number, code in enumerate(codes):
        event = connection.next_event()
        assert isinstance(event, ResponseReceived)
        assert (event.opaque, event.api_key, event.version, event.correlation_id) == (number, 12, 4, number + 1)
        assert event.message() == HeartbeatResponse(error_code=code)
        assert event.frame().header.correlation_id == number + 1
    assert connection.next_event() is NEED_DATA
    assert connection.in_flight == 0


def test_a_produce_without_acks_is_unanswered_at_once() -> None:
    connection = ClientConnection()
    connection.send(ProduceRequest(acks=1, timeout_ms=1, topic_data=()), 9, opaque="all")
    connection.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=()), 9, opaque="none")
    assert connection.next_event() == NoResponse("none", expected=True)
    assert connection.in_flight == 1
    assert received(connection, answer(ProduceResponse(), 9, 1)).opaque == "all"


def test_the_version_zero_answer_to_an_unknown_version_of_api_versions() -> None:
    connection = ClientConnection()
    connection.send(ApiVersionsRequest(), 4)
    event = received(connection, answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), 0, 1))
    assert (event.version, event.frame().version) == (4, 0)
    message = event.message()
    assert isinstance(message, ApiVersionsResponse)
    assert message.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_response_that_cannot_be_decoded_breaks_nothing() -> None:
    connection = ClientConnection()
    connection.send(HEARTBEAT, 4)
    connection.send(HEARTBEAT, 4, opaque="next")
    event = received(connection, join_frames(b"\0\0\0\1\0\0"))
    for decode in (event.message, event.frame):
        with pytest.raises(DecodeError):
            decode()
    assert received(connection, answer(HeartbeatResponse(), 4, 2)).opaque == "next"
    assert connection.state is ConnectionState.OPEN


def test_the_options_are_those_of_request_and_response() -> None:
    lenient = CodecOptions(utf8_errors="surrogateescape")
    connection = ClientConnection()
    sent = connection.send(SaslHandshakeRequest(mechanism="\udcff"), 1, options=lenient)
    assert sent.endswith(b"\0\1\xff")
    data = answer(SaslHandshakeResponse(mechanisms=("a",)), 1, 1).replace(b"a", b"\xff")
    message = received(connection, data).message()
    assert message == SaslHandshakeResponse(mechanisms=("\udcff",))


def test_bytes_and_tags_that_a_newer_broker_adds() -> None:
    connection = ClientConnection()
    connection.send(HEARTBEAT, 4)
    header = b"\0\0\0\1" + bytes.fromhex("01 07 01 ff")
    body = HeartbeatResponse(throttle_time_ms=5).encode(4)
    event = received(connection, join_frames(header + body + b"more"))
    assert event.message() == HeartbeatResponse(throttle_time_ms=5)
    assert event.frame().trailing == b"more"


def test_a_request_that_cannot_be_sent_changes_nothing() -> None:
    connection = ClientConnection(max_frame_size=100)
    with pytest.raises(UnsupportedVersionError):
        connection.send(HEARTBEAT, 99)
    with pytest.raises(EncodeError):
        connection.send(HeartbeatRequest(group_id=None, generation_id=1, member_id="m"), 4)  # type: ignore[arg-type]
    with pytest.raises(FrameSizeError):
        connection.send(HeartbeatRequest(group_id="g" * 100, generation_id=1, member_id="m"), 4)
    assert (connection.in_flight, connection.state) == (0, ConnectionState.OPEN)
    assert connection.send(HEARTBEAT, 4) == join_frames(encode_request(HEARTBEAT, 4, correlation_id=1))


def test_tokens_follow_a_handshake_of_version_zero() -> None:
    connection = with_tokens()
    assert connection.state is ConnectionState.TOKENS
    assert connection.send_token(b"first", opaque=1) == b"\0\0\0\5first"
    connection.receive_data(b"\0\0\0\4more\0\0\0\0")
    assert connection.next_event() == TokenReceived(1, b"more")
    assert connection.send_token(b"", opaque=2) == b"\0\0\0\0"
    assert connection.next_event() == TokenReceived(2, b"")
    connection.send(HEARTBEAT, 4)
    with pytest.raises(LocalProtocolError, match="connection OPEN: a token without a header follows only"):
        connection.send_token(b"too late")


def test_a_request_after_a_token_leaves_the_token_unanswered() -> None:
    connection = with_tokens()
    connection.send_token(b"last of GSSAPI", opaque="token")
    connection.send(HEARTBEAT, 4, opaque="request")
    assert connection.next_event() == NoResponse("token", expected=True)
    assert received(connection, answer(HeartbeatResponse(), 4, 2)).opaque == "request"


@pytest.mark.parametrize("cut", [False, True])
def test_the_end_leaves_what_is_in_flight_unanswered(cut: bool) -> None:
    connection = ClientConnection()
    for tag in "abc":
        connection.send(HEARTBEAT, 4, opaque=tag)
    connection.receive_data(answer(HeartbeatResponse(), 4, 1) + b"\0" * cut)
    connection.receive_data(b"")
    assert isinstance(connection.next_event(), ResponseReceived)
    if cut:
        with pytest.raises(RemoteProtocolError, match="the connection ended after 1 bytes of a frame"):
            connection.next_event()
        assert connection.close() == (NoResponse("b", expected=False), NoResponse("c", expected=False))
        assert connection.state is ConnectionState.ERROR
        return
    assert [connection.next_event() for _ in range(4)] == [
        NoResponse("b", expected=False), NoResponse("c", expected=False), ConnectionClosed(), ConnectionClosed(),
    ]  # fmt: skip
    assert connection.state is ConnectionState.CLOSED


def test_closing_on_this_side() -> None:
    connection = ClientConnection()
    connection.send(HEARTBEAT, 4, opaque="a")
    assert connection.close() == (NoResponse("a", expected=False),)
    assert connection.close() == ()
    connection.receive_data(answer(HeartbeatResponse(), 4, 1))
    assert connection.next_event() == ConnectionClosed()
    with pytest.raises(LocalProtocolError, match="connection CLOSED: a request cannot be sent"):
        connection.send(HEARTBEAT, 4)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\0", "a response of 0 bytes"),
        (b"\0\0\0\3abc", "a response of 3 bytes"),
        (answer(HeartbeatResponse(), 4, 2), "the response has the correlation id 2, the oldest request has 1"),
        (b"HTTP/1.1 400 Bad Request", "looks? like HTTP"),
        (b"\x15\x03\x03\0\2\2\x46", "look like TLS"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
    ],
)
def test_what_a_broker_never_sends(data: bytes, reason: str) -> None:
    connection = ClientConnection()
    connection.send(HEARTBEAT, 4, opaque="lost")
    connection.receive_data(data)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match=reason):
            connection.next_event()
    assert connection.state is ConnectionState.ERROR
    connection.receive_data(answer(HeartbeatResponse(), 4, 1))
    with pytest.raises(RemoteProtocolError, match=reason):
        connection.next_event()
    with pytest.raises(LocalProtocolError, match=reason):
        connection.send(HEARTBEAT, 4)
    assert connection.close() == (NoResponse("lost", expected=False),)


def test_a_response_to_no_request() -> None:
    connection = ClientConnection()
    connection.receive_data(answer(HeartbeatResponse(), 4, 0))
    with pytest.raises(RemoteProtocolError, match="a response to no request"):
        connection.next_event()


def test_a_token_is_sent_only_in_its_place() -> None:
    early, waiting = ClientConnection(), ClientConnection()
    waiting.send(HANDSHAKE, 0)
    for connection in (early, waiting):
        with pytest.raises(LocalProtocolError):
            connection.send_token(b"b")
        assert connection.state is ConnectionState.ERROR
        with pytest.raises(LocalProtocolError):
            connection.next_event()


def test_no_request_while_a_handshake_of_version_zero_is_answered() -> None:
    connection = ClientConnection()
    connection.send(HANDSHAKE, 0)
    with pytest.raises(LocalProtocolError, match="connection HANDSHAKE: a request cannot be sent"):
        connection.send(HEARTBEAT, 4)


def test_bytes_after_the_end() -> None:
    connection = ClientConnection()
    connection.receive_data(b"")
    with pytest.raises(LocalProtocolError, match="bytes cannot follow the end"):
        connection.receive_data(b"a")


def test_the_hint_for_the_next_read() -> None:
    connection = ClientConnection()
    connection.receive_data(b"\0\0\1")
    assert connection.bytes_needed == 0
    connection.receive_data(b"\0abc")
    assert connection.bytes_needed == 253
