"""Exchanges as handwritten bytes: one side sends each message and the peer parses it, in both directions."""

from __future__ import annotations

import pytest
from attrs import frozen

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ProduceRequest,
    Request,
    Response,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_msgs.messages.api_versions_response import ApiVersion
from kafka_msgs.messages.list_groups_response import ListedGroup
from kafka_msgs.wire import (
    NEED_DATA,
    ClientConnection,
    ConnectionState,
    NoResponse,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    TokenReceived,
)
from tests.support.connection_pairs import in_single_bytes

OPEN, HANDSHAKE, TOKENS = ConnectionState.OPEN, ConnectionState.HANDSHAKE, ConnectionState.TOKENS


@frozen
class Sent:
    """A request and its response, and the bytes of their frames. The client id is ``me``."""

    request: Request[Response]
    version: int
    asked: str
    response: Response | None = None
    answered: str = ""
    between: ConnectionState = OPEN
    after: ConnectionState = OPEN


EXCHANGES = {
    "not flexible": Sent(
        HeartbeatRequest(group_id="g", generation_id=2, member_id="m"), 0,
        "00000016 000c 0000 00000001 0002 6d65  0001 67 00000002 0001 6d",
        HeartbeatResponse(error_code=27),
        "00000006 00000001 001b",
    ),
    "flexible": Sent(
        HeartbeatRequest(group_id="g", generation_id=2, member_id="m", group_instance_id=None), 4,
        "00000017 000c 0004 00000001 0002 6d65 00  02 67 00000002 02 6d 00 00",
        HeartbeatResponse(throttle_time_ms=1, error_code=27),
        "0000000c 00000001 00 00000001 001b 00",
    ),
    "a response whose header is never flexible": Sent(
        ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3,
        "00000012 0012 0003 00000001 0002 6d65 00  02 61 02 31 00",
        ApiVersionsResponse(api_keys=(ApiVersion(api_key=3, min_version=0, max_version=13),)),
        "00000013 00000001 0000 02 0003 0000 000d 00 00000000 00",
    ),
    "a string that may be null": Sent(
        FindCoordinatorRequest(key="g"), 0,
        "0000000f 000a 0000 00000001 0002 6d65  0001 67",
        FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1),
        "00000010 00000001 000f ffffffff 0000 ffffffff",
    ),
    "an array": Sent(
        ListGroupsRequest(), 0,
        "0000000c 0010 0000 00000001 0002 6d65",
        ListGroupsResponse(groups=(ListedGroup(group_id="g", protocol_type=""),)),
        "0000000f 00000001 0000 00000001 0001 67 0000",
    ),
    "acks=0": Sent(
        ProduceRequest(acks=0, timeout_ms=5, topic_data=()), 3,
        "00000018 0000 0003 00000001 0002 6d65  ffff 0000 00000005 00000000",
    ),
    "a handshake that tokens follow": Sent(
        SaslHandshakeRequest(mechanism="PLAIN"), 0,
        "00000013 0011 0000 00000001 0002 6d65  0005 504c41494e",
        SaslHandshakeResponse(mechanisms=("PLAIN",)),
        "00000011 00000001 0000 00000001 0005 504c41494e",
        between=HANDSHAKE, after=TOKENS,
    ),
    "a handshake that requests follow": Sent(
        SaslHandshakeRequest(mechanism="PLAIN"), 1,
        "00000013 0011 0001 00000001 0002 6d65  0005 504c41494e",
        SaslHandshakeResponse(mechanisms=("PLAIN",)),
        "00000011 00000001 0000 00000001 0005 504c41494e",
    ),
}  # fmt: skip

every_exchange = pytest.mark.parametrize("sent", EXCHANGES.values(), ids=EXCHANGES)
in_pieces = pytest.mark.parametrize("single_bytes", [False, True], ids=["whole", "single bytes"])


def give(connection: ClientConnection | ServerConnection, data: bytes, single_bytes: bool) -> None:
    """Receive bytes, and check that no event occurs before the last one."""
    for piece in in_single_bytes(data) if single_bytes else (data,):
        assert connection.next_event() is NEED_DATA
        connection.receive_data(piece)


@every_exchange
@in_pieces
def test_the_client(sent: Sent, single_bytes: bool) -> None:
    client = ClientConnection(client_id="me")
    assert client.send(sent.request, sent.version, opaque="t").hex() == sent.asked.replace(" ", "")
    assert client.state is sent.between
    if sent.response is None:
        assert client.next_event() == NoResponse("t", expected=True)
        return
    give(client, bytes.fromhex(sent.answered), single_bytes)
    event = client.next_event()
    assert isinstance(event, ResponseReceived)
    assert (event.opaque, event.api_key, event.version) == ("t", sent.request.INFO.api_key, sent.version)
    assert event.message() == event.frame().message == sent.response
    assert client.next_event() is NEED_DATA
    assert client.state is sent.after


@every_exchange
@in_pieces
def test_the_server(sent: Sent, single_bytes: bool) -> None:
    server = ServerConnection()
    give(server, bytes.fromhex(sent.asked), single_bytes)
    event = server.next_event()
    assert isinstance(event, RequestReceived)
    assert (event.api_key, event.version, event.correlation_id) == (sent.request.INFO.api_key, sent.version, 1)
    assert event.message() == event.frame().message == sent.request
    assert event.header().client_id == "me"
    assert event.needs_response is (sent.response is not None)
    assert server.in_flight == (sent.response is not None)
    assert server.state is sent.between
    if sent.response is not None:
        assert server.send_response(event, sent.response).hex() == sent.answered.replace(" ", "")
    assert server.in_flight == 0
    assert server.next_event() is NEED_DATA
    assert server.state is sent.after


@every_exchange
def test_undecoded(sent: Sent) -> None:
    """The frames of a forwarded exchange are the same bytes."""
    asked, answered = bytes.fromhex(sent.asked), bytes.fromhex(sent.answered)
    server, client = ServerConnection(), ClientConnection()
    server.receive_data(asked)
    request = server.next_event()
    assert isinstance(request, RequestReceived)
    assert client.send_payload(request.payload, opaque=request) == asked
    if sent.response is None:
        assert client.next_event() == NoResponse(request, expected=True)
        return
    client.receive_data(answered)
    response = client.next_event()
    assert isinstance(response, ResponseReceived)
    assert response.opaque is request
    assert server.send_payload(response.payload) == answered
    assert response.message() == sent.response
    assert (server.state, client.state) == (sent.after, sent.after)


@in_pieces
def test_tokens(single_bytes: bool) -> None:
    """A token is its size and its bytes (KIP-43), in both directions."""
    sent = EXCHANGES["a handshake that tokens follow"]
    client, server = ClientConnection(client_id="me"), ServerConnection()
    assert sent.response is not None
    server.receive_data(client.send(sent.request, 0))
    request = server.next_event()
    assert isinstance(request, RequestReceived)
    client.receive_data(server.send_response(request, sent.response))
    assert isinstance(client.next_event(), ResponseReceived)
    for token, answer in ((b"\0me\0secret", b""), (b"", b"x" * 300)):
        size = len(token).to_bytes(4, "big")
        assert client.send_token(token, opaque=token) == size + token
        give(server, size + token, single_bytes)
        assert server.next_event() == TokenReceived(None, token)
        size = len(answer).to_bytes(4, "big")
        assert server.send_token(answer) == size + answer
        give(client, size + answer, single_bytes)
        assert client.next_event() == TokenReceived(token, answer)
