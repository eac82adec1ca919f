"""Clients with certificates: principal names by Kafka's mapping rules, and the users of connections."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

import pytest
import trustme

from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from kafka_msgs.broker.security.certificates import parse_mapping_rules, subject_name
from kafka_msgs.errors import OptionError
from tests.support.eventually import until

SUBJECT = ((("countryName", "DE"),), (("organizationName", "A, B"),), (("commonName", "Duke"),))
DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (SUBJECT, "CN=Duke,O=A\\, B,C=DE"),
        (((("commonName", " #x "),),), "CN=\\ #x\\ "),
        (((("commonName", "a"), ("userId", "b")),), "CN=a+UID=b"),
        (((("emailAddress", "a@b"),),), "1.2.840.113549.1.9.1=#1603614062"),
        ((), ""),
    ],
)
def test_subjects_have_javas_form(subject: tuple[tuple[tuple[str, str], ...], ...], name: str) -> None:
    assert subject_name(subject) == name


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "duke"),
        ("RULE:^cn=(.*?),.*$/$1/, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1@$2/U, DEFAULT", "DUKE@$2"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1-$12/", "Duke-Duke2"),
        ("RULE:^CN=other$/x/, DEFAULT", DUKE),
        ("RULE:^CN=other$/x/", None),
    ],
)
def test_the_first_rule_that_matches_makes_the_name(rules: str, name: str | None) -> None:
    assert parse_mapping_rules(rules)(DUKE) == name


@pytest.mark.parametrize("rules", ["RULE", "RULE:a/b", "RULE:(/x/", "DEFAULT, RULE:a/b/X", "nonsense"])
def test_rules_that_cannot_be_are_refused(rules: str) -> None:
    with pytest.raises(OptionError), EmbeddedBroker(configs={"ssl.principal.mapping.rules": rules}):
        pass


def principals(broker: EmbeddedBroker) -> set[str]:
    return broker.run(lambda cluster: {str(each.principal) for each in cluster.brokers[0].sessions.values()})


@pytest.mark.parametrize(
    ("rules", "expected"),
    [("RULE:^.*CN=([a-z.]+).*$/$1/U, DEFAULT", {"User:CLIENT.EXAMPLE"}), ("RULE:nobody/x/", set())],
)
def test_the_certificate_of_a_client_is_its_user(rules: str, expected: set[str]) -> None:
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.issue_cert("client.example", common_name="client.example").configure_cert(client)
    for context in (server, client):
        authority.configure_trust(context)
    server.verify_mode = ssl.CERT_REQUIRED
    listeners = (ListenerConfig(protocol="SSL", tls=server),)
    with EmbeddedBroker(listeners=listeners, configs={"ssl.principal.mapping.rules": rules}) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with (
            socket.create_connection((host, int(port)), timeout=60) as plain,
            client.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            if expected:
                until(lambda: principals(broker) == expected)
            else:
                with suppress(ConnectionResetError, ssl.SSLError):
                    assert connection.recv(1) == b""
