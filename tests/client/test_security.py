"""TLS and SASL against real brokers, in both forms of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_msgs.client import AsyncClient, Client, ClientConfig
from kafka_msgs.client.tls import tls_context
from kafka_msgs.errors import AuthenticationError, ConnectionFailedError, DeadlineError
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.kafka_listeners import Listener

CallAll = Callable[[ClientConfig], list[int]]
"""Connects to every broker of a cluster, and returns the broker ids."""

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'
OAUTH = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' unsecuredLoginStringClaim_sub="admin";'
)
LOGINS = {
    "PLAIN": PLAIN.format("alice", "alice-secret"),
    "SCRAM-SHA-256": SCRAM.format("bob", "bob-secret"),
    "SCRAM-SHA-512": SCRAM.format("admin", "admin-secret"),
    "OAUTHBEARER": OAUTH,
}


def call_blocking(config: ClientConfig) -> list[int]:
    """Call every broker with the blocking client."""
    with Client(config) as client:
        client.call(ListGroupsRequest())
        return sorted(each.broker_id for each in client.call(DescribeClusterRequest()).brokers)


def call_async(config: ClientConfig) -> list[int]:
    """Call every broker with the asyncio client."""

    async def call() -> list[int]:
        async with AsyncClient(config) as client:
            await client.call(ListGroupsRequest())
            return sorted(each.broker_id for each in (await client.call(DescribeClusterRequest())).brokers)

    return asyncio.run(call())


both_forms = pytest.mark.parametrize("call", [call_blocking, call_async], ids=["blocking", "asyncio"])


def config(cluster: ClusterAddresses, listener: Listener, **properties: str) -> ClientConfig:
    """Return the settings for a listener of the cluster."""
    files = cluster.certificates
    given = {
        "bootstrap.servers": cluster.bootstrap(listener),
        "security.protocol": listener.protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    return ClientConfig.from_properties(given, timeout=20)


@both_forms
def test_every_broker_answers_over_tls(kafka_cluster: ClusterAddresses, call: CallAll) -> None:
    assert call(config(kafka_cluster, Listener.SSL)) == [1, 2, 3]


def test_a_client_shows_its_certificate(kafka_cluster: ClusterAddresses) -> None:
    files = kafka_cluster.certificates
    settings = config(kafka_cluster, Listener.SSL, ssl_keystore_type="PEM", ssl_keystore_location=str(files.client))
    assert call_blocking(settings) == [1, 2, 3]


@both_forms
@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL], ids=lambda each: each.name)
@pytest.mark.parametrize("mechanism", LOGINS)
def test_every_mechanism_logs_in(
    kafka_cluster: ClusterAddresses, call: CallAll, listener: Listener, mechanism: str
) -> None:
    settings = config(kafka_cluster, listener, sasl_mechanism=mechanism, sasl_jaas_config=LOGINS[mechanism])
    assert call(settings) == [1, 2, 3]


@both_forms
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_an_error_at_once_that_does_not_show_it(
    kafka_cluster: ClusterAddresses, call: CallAll, mechanism: str
) -> None:
    login = PLAIN.format("alice", "wrong-secret")
    settings = config(kafka_cluster, Listener.SASL_PLAINTEXT, sasl_mechanism=mechanism, sasl_jaas_config=login)
    with pytest.raises(
        AuthenticationError, match=rf"authenticate \({mechanism}\): .*[Aa]uthentication failed"
    ) as caught:
        call(settings)
    assert "wrong-secret" not in f"{caught.value!r} {caught.value} {vars(caught.value)} {settings!r}"
    assert "wrong-secret" not in repr(settings.credentials)


@both_forms
def test_a_mechanism_that_the_broker_lacks_is_named(kafka_cluster: ClusterAddresses, call: CallAll) -> None:
    class Unknown:
        mechanism = "GSSAPI"

        def tokens(self, *_: object) -> None:
            """Never called."""

    settings = ClientConfig(
        bootstrap_servers=kafka_cluster.bootstrap(Listener.SASL_PLAINTEXT),
        credentials=Unknown(),  # type: ignore[arg-type]
    )
    with pytest.raises(AuthenticationError, match=r"UNSUPPORTED_SASL_MECHANISM: the broker offers .*SCRAM-SHA-512"):
        call(settings)


@both_forms
def test_a_certificate_of_an_unknown_authority_is_refused(kafka_cluster: ClusterAddresses, call: CallAll) -> None:
    files = kafka_cluster.certificates
    settings = config(kafka_cluster, Listener.SSL, ssl_truststore_location=str(files.other_authority))
    with pytest.raises(ConnectionFailedError, match=r"tls: .*(unable to get local issuer|self-signed|verify failed)"):
        call(settings)


@both_forms
def test_tls_against_a_plain_port_is_an_error_soon(kafka_cluster: ClusterAddresses, call: CallAll) -> None:
    files = kafka_cluster.certificates
    settings = ClientConfig(
        bootstrap_servers=kafka_cluster.bootstrap_servers,
        tls=tls_context(authorities=files.authority),
        timeout=20,
        connect_timeout=1.0,
    )
    with pytest.raises(ConnectionFailedError, match="tls: "):
        call(settings)


@both_forms
def test_a_plain_connection_to_a_tls_port_is_an_error_at_once(kafka_cluster: ClusterAddresses, call: CallAll) -> None:
    settings = ClientConfig(bootstrap_servers=kafka_cluster.bootstrap(Listener.SSL), timeout=20)
    with pytest.raises(ConnectionFailedError, match="negotiate"):
        call(settings)


@both_forms
def test_no_login_at_a_port_that_wants_one_is_an_error(kafka_cluster: ClusterAddresses, call: CallAll) -> None:
    settings = ClientConfig(bootstrap_servers=kafka_cluster.bootstrap(Listener.SASL_PLAINTEXT), timeout=3)
    with pytest.raises((ConnectionFailedError, DeadlineError), match="request: the connection was closed"):
        call(settings)


def test_a_session_is_renewed_before_it_ends(kafka_cluster: ClusterAddresses) -> None:
    """The broker closes connections without reauthentication within two seconds (KIP-368)."""
    login = LOGINS["SCRAM-SHA-256"]
    settings = config(kafka_cluster, Listener.REAUTHENTICATING, sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=login)
    with Client(settings) as client:
        link = client.run(client.core.link(1, deadline=client.core.deadline(10)))
        begin = client.network.now()
        while client.network.now() < begin + 5:
            client.call(DescribeClusterRequest(), broker_id=1, retry=False)
        assert client.run(client.core.link(1, deadline=client.core.deadline(10))) is link
        assert link.alive
