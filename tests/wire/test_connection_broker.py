"""The client side of a connection with a real broker, and the server side's output compared with the broker's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    ErrorCode,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslHandshakeRequest,
)
from kafka_msgs.errors import RemoteProtocolError
from kafka_msgs.wire import (
    NEED_DATA,
    ClientConnection,
    ConnectionClosed,
    NoResponse,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    TokenReceived,
    encode_request,
    join_frames,
    unsupported_api_versions,
)
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.kafka_listeners import Listener

NEWER = encode_request(ApiVersionsRequest(), 4, correlation_id=7, client_id="c").replace(b"\0\4", b"\0\x63", 1)
"""An ApiVersions request of version 99."""


class Talk:
    """A connection over a blocking socket with a timeout."""

    def __init__(self, sock: socket.socket, read: int) -> None:
        self.socket, self.read = sock, read
        self.wire = ClientConnection(client_id="wire-tests")

    def next_event(self) -> Any:
        """Return the next event; reads bytes in chunks of at most ``read``."""
        while (event := self.wire.next_event()) is NEED_DATA:
            self.wire.receive_data(self.socket.recv(self.read))
        return event

    def response(self) -> Any:
        event = self.next_event()
        assert isinstance(event, ResponseReceived)
        return event.message()


@contextmanager
def talk(cluster: ClusterAddresses, listener: Listener = Listener.PLAINTEXT, read: int = 65536) -> Iterator[Talk]:
    port = cluster.port(cluster.nodes[0], listener)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        yield Talk(sock, read)


@pytest.mark.parametrize("read", [1, 7, 65536])
def test_many_requests_in_flight_are_answered_in_order(kafka_cluster: ClusterAddresses, read: int) -> None:
    with talk(kafka_cluster, read=read) as broker:
        requests = [(ApiVersionsRequest(), 0), (MetadataRequest(topics=()), 12), (DescribeClusterRequest(), 1)] * 20
        broker.socket.sendall(
            b"".join(broker.wire.send(request, version, opaque=tag) for tag, (request, version) in enumerate(requests))
        )
        for tag in range(len(requests)):
            event = broker.next_event()
            assert event.opaque == tag
            expected = (ApiVersionsResponse, MetadataResponse, DescribeClusterResponse)[tag % 3]
            assert isinstance(event.message(), expected)
        assert broker.wire.in_flight == 0


def test_an_unknown_version_of_api_versions_is_answered_as_we_answer_it(kafka_cluster: ClusterAddresses) -> None:
    with talk(kafka_cluster) as broker:
        broker.socket.sendall(broker.wire.send_payload(NEWER))
        event = broker.next_event()
        assert event.message().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert event.frame().version == 0
    server = ServerConnection()
    server.receive_data(join_frames(NEWER))
    request = server.next_event()
    assert isinstance(request, RequestReceived)
    assert server.send_response(request, unsupported_api_versions()) == join_frames(event.payload)


def test_a_silent_produce_and_what_follows_it(kafka_cluster: ClusterAddresses) -> None:
    with talk(kafka_cluster) as broker:
        silent = broker.wire.send(ProduceRequest(acks=0, timeout_ms=1000, topic_data=()), 9, opaque="silent")
        broker.socket.sendall(silent + broker.wire.send(MetadataRequest(topics=()), 12, opaque="next"))
        assert broker.next_event() == NoResponse("silent", expected=True)
        assert broker.next_event().opaque == "next"


@pytest.mark.parametrize("password", ["right", "wrong"])
def test_tokens_without_headers(kafka_cluster: ClusterAddresses, password: str) -> None:
    """SaslHandshake of version 0, then PLAIN (KIP-43). A broker closes the connection after a wrong password."""
    name, secret = next(iter(kafka_cluster.users.items()))
    with talk(kafka_cluster, Listener.SASL_PLAINTEXT) as broker:
        broker.socket.sendall(broker.wire.send(SaslHandshakeRequest(mechanism="PLAIN"), 0))
        assert "PLAIN" in broker.response().mechanisms
        token = f"\0{name}\0{secret if password == 'right' else 'wrong'}".encode()
        broker.socket.sendall(broker.wire.send_token(token, opaque="token"))
        if password == "wrong":
            assert broker.next_event() == NoResponse("token", expected=False)
            assert broker.next_event() == ConnectionClosed()
            return
        assert broker.next_event() == TokenReceived("token", b"")
        broker.socket.sendall(broker.wire.send(MetadataRequest(topics=()), 12))
        assert len(broker.response().brokers) == len(kafka_cluster.nodes)


def test_a_port_that_speaks_tls(kafka_cluster: ClusterAddresses) -> None:
    """The broker's response to a plaintext request is not a valid frame size."""
    with talk(kafka_cluster, Listener.SSL) as broker:
        broker.socket.sendall(broker.wire.send(MetadataRequest(topics=()), 12))
        with pytest.raises(RemoteProtocolError, match="look like TLS"):
            broker.next_event()


def test_a_request_that_is_refused_ends_the_connection(kafka_cluster: ClusterAddresses) -> None:
    """A broker does not respond to an unknown version of any other API: it closes the connection."""
    with talk(kafka_cluster) as broker:
        payload = encode_request(MetadataRequest(topics=()), 12, correlation_id=3).replace(b"\0\x0c", b"\0\x63", 1)
        broker.socket.sendall(broker.wire.send_payload(payload, opaque="unknown"))
        assert broker.next_event() == NoResponse("unknown", expected=False)
        assert broker.next_event() == ConnectionClosed()
