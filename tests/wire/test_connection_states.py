"""State tables: for each state and event, the next state or the error, on both sides of a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from kafka_msgs import HeartbeatRequest, HeartbeatResponse, SaslHandshakeRequest, SaslHandshakeResponse
from kafka_msgs.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from kafka_msgs.wire import (
    NEED_DATA,
    PAUSED,
    ClientConnection,
    ClientEvent,
    ConnectionClosed,
    ConnectionState,
    NeedData,
    NoResponse,
    RequestReceived,
    ServerConnection,
    ServerEvent,
    TokenReceived,
    TokensPending,
)

OPEN, HANDSHAKE, TOKENS, HALF_CLOSED, CLOSED, ERROR = ConnectionState
LOCAL, REMOTE = LocalProtocolError, RemoteProtocolError

HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
SASL: Final = SaslHandshakeRequest(mechanism="PLAIN")
HEARTBEAT_ANSWER: Final = bytes.fromhex("00000006 00000001 0000")
SASL_ANSWER: Final = bytes.fromhex("0000000a 00000001 0000 00000000")
ASKED: Final = bytes.fromhex("00000014 000c 0000 00000001 ffff  0001 67 00000001 0001 6d")
SASL_ASKED: Final = bytes.fromhex("00000011 0011 0000 00000001 ffff  0005 504c41494e")
TOKEN: Final = bytes.fromhex("00000003 616263")
NEGATIVE: Final = bytes.fromhex("ffffffff")
HALF: Final = bytes.fromhex("00000003 61")

Next = ConnectionState | type[ProtocolError]


def one_event(connection: ClientConnection | ServerConnection, data: bytes) -> object:
    """Return the first event after these bytes, ignoring ``NoResponse``."""
    connection.receive_data(data)
    event: ClientEvent | ServerEvent | NeedData | TokensPending = connection.next_event()
    while isinstance(event, NoResponse):
        event = connection.next_event()
    return event


def broken(connection: ClientConnection | ServerConnection) -> None:
    with pytest.raises(REMOTE):
        one_event(connection, NEGATIVE)


# The client


def client_open() -> ClientConnection:
    client = ClientConnection()
    client.send(HEARTBEAT, 0)
    return client


def client_handshake() -> ClientConnection:
    client = ClientConnection()
    client.send(SASL, 0)
    return client


def client_tokens() -> ClientConnection:
    client = client_handshake()
    one_event(client, SASL_ANSWER)
    client.send_token(b"abc")
    return client


def client_closed() -> ClientConnection:
    client = client_open()
    assert one_event(client, b"") == ConnectionClosed()
    return client


def client_error() -> ClientConnection:
    client = client_open()
    broken(client)
    return client


CLIENTS: Final[dict[ConnectionState, Callable[[], ClientConnection]]] = {
    OPEN: client_open, HANDSHAKE: client_handshake, TOKENS: client_tokens, CLOSED: client_closed, ERROR: client_error,
}  # fmt: skip

CLIENT_EVENTS: Final[dict[str, Callable[[ClientConnection], object]]] = {
    "send a request": lambda client: client.send(HEARTBEAT, 0),
    "send a payload": lambda client: client.send_payload(ASKED[4:]),
    "send a handshake": lambda client: client.send(SASL, 0),
    "pass on a handshake": lambda client: client.send_payload(SASL_ASKED[4:]),
    "send a token": lambda client: client.send_token(b"abc"),
    "receive 1": lambda client: one_event(client, HEARTBEAT_ANSWER),
    "receive 2": lambda client: one_event(client, HEARTBEAT_ANSWER.replace(b"\1", b"\2")),
    "receive a token": lambda client: one_event(client, TOKEN),
    "receive a negative size": lambda client: one_event(client, NEGATIVE),
    "end": lambda client: one_event(client, b""),
    "end within a frame": lambda client: one_event(client, HALF) and one_event(client, b""),
    "close": lambda client: client.close(),
}

CLIENT_TABLE: Final[dict[str, tuple[Next, Next, Next, Next, Next]]] = {
    # event                     OPEN       HANDSHAKE  TOKENS  CLOSED  ERROR
    "send a request":          (OPEN,      LOCAL,     OPEN,   LOCAL,  LOCAL),
    "send a payload":          (OPEN,      LOCAL,     OPEN,   LOCAL,  LOCAL),
    "send a handshake":        (HANDSHAKE, LOCAL,     HANDSHAKE, LOCAL, LOCAL),
    "pass on a handshake":     (HANDSHAKE, LOCAL,     HANDSHAKE, LOCAL, LOCAL),
    "send a token":            (LOCAL,     LOCAL,     TOKENS, LOCAL,  LOCAL),
    "receive 1":               (OPEN,      TOKENS,    TOKENS, CLOSED, REMOTE),
    "receive 2":               (REMOTE,    REMOTE,    TOKENS, CLOSED, REMOTE),
    "receive a token":         (REMOTE,    REMOTE,    TOKENS, CLOSED, REMOTE),
    "receive a negative size": (REMOTE,    REMOTE,    REMOTE, CLOSED, REMOTE),
    "end":                     (CLOSED,    CLOSED,    CLOSED, CLOSED, REMOTE),
    "end within a frame":      (REMOTE,    REMOTE,    REMOTE, CLOSED, REMOTE),
    "close":                   (CLOSED,    CLOSED,    CLOSED, CLOSED, ERROR),
}  # fmt: skip


# The server


def asked(connection: ServerConnection, data: bytes) -> RequestReceived:
    request = one_event(connection, data)
    assert isinstance(request, RequestReceived)
    return request


def server_open() -> ServerConnection:
    server = ServerConnection()
    asked(server, ASKED)
    return server


def server_handshake() -> ServerConnection:
    server = ServerConnection()
    asked(server, SASL_ASKED)
    return server


def server_tokens() -> ServerConnection:
    server = ServerConnection()
    server.send_response(asked(server, SASL_ASKED), SaslHandshakeResponse())
    return server


def server_half_closed() -> ServerConnection:
    server = server_open()
    assert one_event(server, b"") == ConnectionClosed()
    return server


def server_closed() -> ServerConnection:
    server = server_open()
    server.close()
    return server


def server_error() -> ServerConnection:
    server = server_open()
    broken(server)
    return server


SERVERS: Final[dict[ConnectionState, Callable[[], ServerConnection]]] = {
    OPEN: server_open, HANDSHAKE: server_handshake, TOKENS: server_tokens, HALF_CLOSED: server_half_closed,
    CLOSED: server_closed, ERROR: server_error,
}  # fmt: skip


def answer(server: ServerConnection) -> bytes:
    """Respond to the oldest request, or to a request that was never received."""
    other = ServerConnection()
    request = server.oldest or asked(other, ASKED)
    return server.send_response(request, SaslHandshakeResponse() if request.api_key == 17 else HeartbeatResponse())


SERVER_EVENTS: Final[dict[str, Callable[[ServerConnection], object]]] = {
    "receive a request": lambda server: one_event(server, ASKED),
    "receive a handshake": lambda server: one_event(server, SASL_ASKED),
    "receive a token": lambda server: one_event(server, TOKEN),
    "receive a negative size": lambda server: one_event(server, NEGATIVE),
    "answer": answer,
    "pass on the answer": lambda server: server.send_payload(b"\0\0\0\1 anything"),
    "pass on another": lambda server: server.send_payload(b"\0\0\0\2 anything"),
    "answer a token": lambda server: server.send_token(b"abc"),
    "end the tokens": lambda server: server.end_tokens(),
    "end": lambda server: one_event(server, b""),
    "end within a frame": lambda server: one_event(server, HALF) and one_event(server, b""),
    "close": lambda server: server.close(),
}

SERVER_TABLE: Final[dict[str, tuple[Next, Next, Next, Next, Next, Next]]] = {
    # event                     OPEN         HANDSHAKE  TOKENS  HALF_CLOSED  CLOSED  ERROR
    "receive a request":       (OPEN,        HANDSHAKE, TOKENS, LOCAL,       CLOSED, REMOTE),
    "receive a handshake":     (HANDSHAKE,   HANDSHAKE, TOKENS, LOCAL,       CLOSED, REMOTE),
    "receive a token":         (REMOTE,      HANDSHAKE, TOKENS, LOCAL,       CLOSED, REMOTE),
    "receive a negative size": (REMOTE,      HANDSHAKE, REMOTE, LOCAL,       CLOSED, REMOTE),
    "answer":                  (OPEN,        TOKENS,    LOCAL,  CLOSED,      LOCAL,  LOCAL),
    "pass on the answer":      (OPEN,        TOKENS,    LOCAL,  CLOSED,      LOCAL,  LOCAL),
    "pass on another":         (LOCAL,       LOCAL,     LOCAL,  LOCAL,       LOCAL,  LOCAL),
    "answer a token":          (LOCAL,       LOCAL,     LOCAL,  LOCAL,       LOCAL,  LOCAL),
    "end the tokens":          (LOCAL,       LOCAL,     OPEN,   LOCAL,       LOCAL,  LOCAL),
    "end":                     (HALF_CLOSED, HANDSHAKE, CLOSED, HALF_CLOSED, CLOSED, REMOTE),
    "end within a frame":      (REMOTE,      HANDSHAKE, REMOTE, LOCAL,       CLOSED, REMOTE),
    "close":                   (CLOSED,      CLOSED,    CLOSED, CLOSED,      CLOSED, ERROR),
}  # fmt: skip


def check(connection: ClientConnection | ServerConnection, event: Callable[[], object], expected: Next) -> None:
    first, state = connection.error, connection.state
    if isinstance(expected, ConnectionState):
        event()
        assert connection.state is expected
        return
    with pytest.raises(ProtocolError) as caught:
        event()
    assert type(caught.value) is expected
    assert connection.state is ERROR
    assert connection.error is (first or caught.value)
    if first is None:
        assert caught.value.state == state
    for _ in range(2):
        with pytest.raises(ProtocolError) as later:
            connection.next_event()
        assert later.value is connection.error
    connection.close()
    assert connection.state is ERROR


@pytest.mark.parametrize("event", CLIENT_TABLE)
@pytest.mark.parametrize(("column", "state"), list(enumerate(CLIENTS)), ids=list(CLIENTS))
def test_the_client(event: str, column: int, state: ConnectionState) -> None:
    client = CLIENTS[state]()
    assert client.state is state
    check(client, lambda: CLIENT_EVENTS[event](client), CLIENT_TABLE[event][column])


@pytest.mark.parametrize("event", SERVER_TABLE)
@pytest.mark.parametrize(("column", "state"), list(enumerate(SERVERS)), ids=list(SERVERS))
def test_the_server(event: str, column: int, state: ConnectionState) -> None:
    server = SERVERS[state]()
    assert server.state is state
    check(server, lambda: SERVER_EVENTS[event](server), SERVER_TABLE[event][column])


def test_every_event_has_its_row() -> None:
    assert list(CLIENT_EVENTS) == list(CLIENT_TABLE)
    assert list(SERVER_EVENTS) == list(SERVER_TABLE)
    assert set(CLIENTS) | set(SERVERS) == set(ConnectionState)


def test_a_token_that_waits_pauses_the_server() -> None:
    server = server_tokens()
    server.receive_data(TOKEN + TOKEN + ASKED)
    for _ in range(2):
        assert server.next_event() != PAUSED
        assert server.next_event() is PAUSED
        assert server.send_token(b"more") == b"\0\0\0\4more"
    server.end_tokens()
    assert isinstance(server.next_event(), RequestReceived)
    assert server.next_event() is NEED_DATA


def test_an_error_ends_the_pause() -> None:
    server = server_tokens()
    assert isinstance(one_event(server, TOKEN), TokenReceived)
    check(server, lambda: server.send_payload(b"\0\0\0\1 anything"), LOCAL)


def test_a_handshake_pauses_the_server_until_all_before_it_are_answered_too() -> None:
    server = server_open()
    server.receive_data(SASL_ASKED + TOKEN)
    handshake = server.next_event()
    assert isinstance(handshake, RequestReceived)
    answer(server)
    assert (server.state, server.next_event()) == (HANDSHAKE, PAUSED)
    server.send_response(handshake, SaslHandshakeResponse())
    assert server.state is TOKENS
