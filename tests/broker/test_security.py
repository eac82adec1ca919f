"""Logins and ACLs of an embedded broker, with our client, librdkafka and aiokafka."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiokafka
import confluent_kafka
import pytest
import trustme

from kafka_msgs.admin import AclBinding, AclFilter, Admin, NewTopic, ScramDeletion, ScramUpsertion
from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from kafka_msgs.client import Client, ClientConfig, Producer
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType, ScramMechanism
from kafka_msgs.errors import AuthenticationError, BrokerError, ConnectionFailedError, DeadlineError
from kafka_msgs.message import Request
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_msgs.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.recorders.raw_client import Conversation
from tests.support.cluster_topics import new_name

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WAIT: Final = 30
USERS: Final = {"alice": "alice's secret", "admin": "admin's secret"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a certificate authority and the server's certificate; return the path of the authority."""
    directory = tmp_path_factory.mktemp("tls")
    made = trustme.CA()
    made.cert_pem.write_to_path(str(directory / "authority.pem"))
    made.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
        str(directory / "server.pem")
    )
    return directory / "authority.pem"


@pytest.fixture(scope="module")
def broker(authority: Path) -> Iterator[EmbeddedBroker]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.with_name("server.pem"))
    listeners = (
        ListenerConfig(),
        ListenerConfig(name="SASL", protocol="SASL_PLAINTEXT"),
        ListenerConfig(name="SECRET", protocol="SASL_SSL", tls=tls),
    )
    with EmbeddedBroker(listeners=listeners, users=USERS) as broker:
        yield broker
        assert broker.problems == []


def servers(broker: EmbeddedBroker, listener: str) -> str:
    return broker.bootstrap_of(listener)


def librdkafka(address: str, mechanism: str, password: str, **more: Any) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": password,
            "log_level": 0,
            **more,
        }
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_logs_in(broker: EmbeddedBroker, mechanism: str) -> None:
    topic = new_name("topic")
    producer = librdkafka(servers(broker, "SASL"), mechanism, USERS["alice"])
    producer.produce(topic, b"value")
    assert producer.flush(WAIT) == 0
    with Admin(broker.bootstrap_servers) as admin:
        assert topic in admin.list_topics()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_with_a_wrong_password(broker: EmbeddedBroker, mechanism: str) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    producer = librdkafka(servers(broker, "SASL"), mechanism, "wrong", error_cb=errors.append)
    while not errors:
        producer.poll(WAIT)
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_logs_in_over_tls(broker: EmbeddedBroker, authority: Path, mechanism: str) -> None:
    more = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(authority)}
    producer = librdkafka(servers(broker, "SECRET"), mechanism, USERS["alice"], **more)
    producer.produce(new_name("topic"), b"value")
    assert producer.flush(WAIT) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_logs_in(broker: EmbeddedBroker, mechanism: str) -> None:
    async def main() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers(broker, "SASL"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=USERS["alice"],
        ) as producer:
            await producer.send_and_wait(new_name("topic"), b"value")

    asyncio.run(main())


LOGINS: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def settings(address: str, mechanism: str, user: str, password: str) -> ClientConfig:
    """Return our client's config, built from Kafka's properties."""
    return ClientConfig.from_properties(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{LOGINS[mechanism]} required username="{user}" password="{password}";',
        }
    )


@pytest.mark.parametrize("mechanism", LOGINS)
def test_our_client_logs_in_and_learns_that_it_cannot(broker: EmbeddedBroker, mechanism: str) -> None:
    address = servers(broker, "SASL")
    with Client(settings(address, mechanism, "alice", USERS["alice"])) as client:
        assert client.call(MetadataRequest(topics=())).cluster_id
    for user in ("alice", "nobody"):
        with (
            pytest.raises(AuthenticationError),
            Client(settings(address, mechanism, user, "wrong")) as client,
        ):
            client.call(MetadataRequest(topics=()))


def test_a_client_that_does_not_log_in_loses_its_connection(broker: EmbeddedBroker) -> None:
    with pytest.raises((ConnectionFailedError, DeadlineError)), Client(servers(broker, "SASL"), timeout=1) as client:
        client.call(MetadataRequest(topics=()))


FAILING: Final[dict[str, list[tuple[Request[Any], int]]]] = {
    "a wrong password": [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2),
    ],
    "an unknown mechanism": [(SaslHandshakeRequest(mechanism="UNKNOWN"), 1)],
    "no handshake": [(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)],
}


@pytest.mark.parametrize("login", FAILING)
def test_a_login_that_fails_is_answered_and_loses_its_connection(broker: EmbeddedBroker, login: str) -> None:
    """Some clients leave closing to the broker, and would keep the connection open forever."""
    port = int(servers(broker, "SASL").rpartition(":")[2])
    with Conversation(port, client_id="login") as conversation:
        answers = [conversation.ask(request, version) for request, version in FAILING[login]]
        assert [bool(each.error_code) for each in answers] == [False] * (len(answers) - 1) + [True]
        assert conversation.is_closed()


def test_acls_say_what_a_client_may_do() -> None:
    listeners = (ListenerConfig(protocol="SASL_PLAINTEXT"),)
    with EmbeddedBroker(listeners=listeners, users=USERS, authorizer=True, super_users=("User:admin",)) as broker:
        address = broker.bootstrap_servers
        with (
            Admin(settings(address, "PLAIN", "admin", USERS["admin"])) as admin,
            Admin(settings(address, "PLAIN", "alice", USERS["alice"])) as alice,
        ):
            admin.create_topics([NewTopic("orders", 1, 1), NewTopic("secrets", 1, 1)])
            assert alice.list_topics() == {}
            rules = [
                AclBinding(
                    ResourceType.TOPIC, "ord", "User:alice", operation, permission, pattern_type=PatternType.PREFIXED
                )
                for operation, permission in (
                    (AclOperation.WRITE, AclPermissionType.ALLOW),
                    (AclOperation.CREATE, AclPermissionType.DENY),
                )
            ]
            admin.create_acls(rules)
            assert set(alice.list_topics()) == {"orders"}
            assert len(admin.describe_acls()) == 2
            with Producer(settings(address, "PLAIN", "alice", USERS["alice"]), idempotence=False) as producer:
                producer.send("orders", b"value")
                producer.flush()
            with pytest.raises(BrokerError, match="AUTHORIZATION"):
                alice.create_topics([NewTopic("orders2", 1, 1)])["orders2"]
            admin.delete_acls([AclFilter()])
            assert alice.list_topics() == {}
        assert broker.problems == []


def test_scram_credentials_of_users_change(broker: EmbeddedBroker) -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    with Admin(broker.bootstrap_servers) as admin:
        described = admin.describe_user_scram_credentials(["alice"])
        assert {each.mechanism for each in described["alice"]} == set(ScramMechanism)
        admin.alter_user_scram_credentials([ScramUpsertion("carol", mechanism, "carol's secret")])
        login = settings(servers(broker, "SASL"), "SCRAM-SHA-256", "carol", "carol's secret")
        with Client(login) as client:
            assert client.call(MetadataRequest(topics=())).cluster_id
        admin.alter_user_scram_credentials([ScramDeletion("carol", mechanism)])
        with pytest.raises(AuthenticationError), Client(login) as client:
            client.call(MetadataRequest(topics=()))
