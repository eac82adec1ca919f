"""Clients that misuse a listener before, during and after a login."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from kafka_msgs import ApiVersionsRequest, ErrorCode, MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from tests.support.eventually import until
from tests.support.raw_client import RawClient

USERS = {"alice": "secret", "bob": "other"}
SASL = (ListenerConfig(protocol="SASL_PLAINTEXT"),)
LIMIT = 524_288
"""Kafka's default of ``sasl.server.max.receive.size``."""


def started(**configs: str) -> EmbeddedBroker:
    return EmbeddedBroker(listeners=SASL, users=USERS, configs=configs)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with started() as broker:
        yield broker
        assert broker.problems == []


def handshake(client: RawClient, mechanism: str = "PLAIN", version: int = 1) -> ErrorCode:
    return ErrorCode(client.call(SaslHandshakeRequest(mechanism=mechanism), version).error_code)


def authenticate(client: RawClient, user: str = "alice") -> Any:
    return client.call(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{USERS.get(user)}".encode()), 2)


def log_in(client: RawClient, user: str = "alice") -> None:
    assert handshake(client) == ErrorCode.NONE
    assert authenticate(client, user).error_code == ErrorCode.NONE


def principals(broker: EmbeddedBroker) -> set[str]:
    return broker.run(lambda cluster: {str(each.principal) for each in cluster.brokers[0].sessions.values()})


def test_a_client_that_is_logged_in_does_not_become_somebody_else(broker: EmbeddedBroker) -> None:
    with RawClient(broker) as client:
        log_in(client)
        assert handshake(client) == ErrorCode.ILLEGAL_SASL_STATE
        assert authenticate(client, "bob").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert "User:bob" not in principals(broker)
        assert client.call(MetadataRequest(topics=()), 9).cluster_id


def test_a_handshake_in_the_middle_of_a_login_ends_the_connection(broker: EmbeddedBroker) -> None:
    with RawClient(broker) as client:
        handshake(client)
        assert handshake(client) == ErrorCode.ILLEGAL_SASL_STATE
        assert client.is_closed()


def test_a_client_logs_in_again_as_the_same_user_by_the_same_mechanism() -> None:
    with started(**{"connections.max.reauth.ms": "60000"}) as broker:
        with RawClient(broker) as client:
            log_in(client)
            log_in(client)
            assert handshake(client) == ErrorCode.ILLEGAL_SASL_STATE, "less than a second later"
        with RawClient(broker) as client:
            log_in(client)
            handshake(client)
            answer = authenticate(client, "bob")
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == (
                "Cannot change principals during re-authentication from User.alice: User.bob"
            )
            assert client.is_closed()
        with RawClient(broker) as client:
            log_in(client)
            handshake(client, "SCRAM-SHA-256")
            answer = authenticate(client)
            assert "not supported for re-authentication of mechanism 'PLAIN'" in answer.error_message
            assert client.is_closed()


def test_nothing_is_answered_in_the_middle_of_another_login() -> None:
    with started(**{"connections.max.reauth.ms": "60000"}) as broker, RawClient(broker) as client:
        log_in(client)
        handshake(client)
        client.send((MetadataRequest(topics=()), 9))
        assert client.is_closed()


def test_a_login_without_headers_ends_in_time() -> None:
    with started(**{"connections.max.reauth.ms": "300"}) as broker, RawClient(broker) as client:
        assert handshake(client, version=0) == ErrorCode.NONE
        token = b"\0alice\0secret"
        client.socket.sendall(len(token).to_bytes(4, "big") + token)
        assert client.socket.recv(4, socket.MSG_WAITALL) == bytes(4)
        assert client.call(MetadataRequest(topics=()), 9).cluster_id
        time.sleep(0.4)
        client.send((MetadataRequest(topics=()), 9))
        assert client.is_closed()


@pytest.mark.parametrize("version", [0, 1])
def test_a_login_that_fails_is_delayed(version: int) -> None:
    with started(**{"connection.failed.authentication.delay.ms": "300"}) as broker, RawClient(broker) as client:
        handshake(client, version=version)
        begun = time.monotonic()
        if version:
            assert authenticate(client, "nobody").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        else:
            token = b"\0alice\0wrong"
            client.socket.sendall(2 * (len(token).to_bytes(4, "big") + token))
        assert client.is_closed()
        assert time.monotonic() - begun >= 0.29


def test_a_frame_before_the_login_is_small(broker: EmbeddedBroker) -> None:
    with RawClient(broker) as client:
        client.socket.sendall((LIMIT + 1).to_bytes(4, "big"))
        assert client.is_closed()
    with RawClient(broker) as client:
        log_in(client)
        names = tuple(MetadataRequestTopic(name="x" * 249) for _ in range(3000))
        assert client.call(MetadataRequest(topics=names, allow_auto_topic_creation=False), 9).topics


def test_nothing_but_the_login_is_decoded_before_it(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[object] = []
    real = MetadataRequest.decode

    def watched(*args: Any, **kwargs: Any) -> Any:
        decoded.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(MetadataRequest, "decode", watched)
    with RawClient(broker) as client:
        assert client.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3).api_keys
        client.send((MetadataRequest(topics=()), 9))
        assert client.is_closed()
    assert not decoded


def test_idle_connections_are_closed() -> None:
    with started(**{"connections.max.idle.ms": "300"}) as broker, RawClient(broker) as idle, RawClient(broker) as busy:
        ended = time.monotonic() + 1.5
        while time.monotonic() < ended:
            busy.call(ApiVersionsRequest(), 0)
            time.sleep(0.05)
        assert idle.is_closed()


def shaking_hands(cluster: Any) -> int:
    count: int = cluster.network._shaking_hands[0]
    return count


def test_connections_count_before_their_tls_handshake() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    listeners = (ListenerConfig(protocol="SSL", tls=tls),)
    with EmbeddedBroker(listeners=listeners, configs={"max.connections": "3"}) as broker:
        silent = [RawClient(broker) for _ in range(3)]
        until(lambda: broker.run(shaking_hands) == 3)
        with RawClient(broker) as one_more:
            assert one_more.is_closed()
        for each in silent:
            each.socket.close()
        until(lambda: broker.run(shaking_hands) == 0)
