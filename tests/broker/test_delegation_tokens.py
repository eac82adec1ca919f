"""Delegation tokens (KIP-48) of a cluster without a secret key: refusals, as in Kafka."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kafka_msgs import (
    ApiKey,
    ApiVersionsRequest,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ErrorCode,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from kafka_msgs.client import Client, ClientConfig
from kafka_msgs.client.auth import PlainCredentials
from kafka_msgs.message import Request
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.kafka_listeners import USERS
from tests.support.virtual_brokers import VirtualCluster

LISTENERS: Final = (ListenerConfig(), ListenerConfig(name="SASL", protocol="SASL_PLAINTEXT"))
NAMES: Final = ("CREATE", "RENEW", "EXPIRE", "DESCRIBE")
REQUESTS: Final[tuple[Request[Any], ...]] = (
    CreateDelegationTokenRequest(),
    CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob"),
    RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=-1),
    ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=-1),
    DescribeDelegationTokenRequest(),
)
USER: Final = next(iter(USERS))


def answers(servers: str, *, login: bool) -> list[Any]:
    """Return the responses to all requests, and whether ApiVersions offers their APIs."""
    versions = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    credentials = PlainCredentials(USER, USERS[USER]) if login else None
    with Client(ClientConfig(bootstrap_servers=servers, credentials=credentials)) as client:
        offered = {each.api_key for each in client.call(versions).api_keys}
        found = [client.call(each) for each in REQUESTS]
    return [[ApiKey[f"{name}_DELEGATION_TOKEN"] in offered for name in NAMES], *found]


@pytest.fixture
def broker() -> Any:
    with EmbeddedBroker(listeners=LISTENERS, users=USERS) as broker:
        yield broker
        assert broker.problems == []


@pytest.mark.parametrize(
    ("login", "error"),
    [
        (False, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (True, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
    ],
)
def test_requests_for_tokens_are_refused(broker: EmbeddedBroker, login: bool, error: ErrorCode) -> None:
    servers = broker.bootstrap_of("SASL") if login else broker.bootstrap_servers
    offered, *found = answers(servers, login=login)
    assert all(offered)
    assert {each.error_code for each in found} == {error}


@pytest.mark.parametrize("version", list(CreateDelegationTokenRequest.INFO.versions))
def test_every_version_is_answered(version: int) -> None:
    request = CreateDelegationTokenRequest()
    answer = VirtualCluster.start().call(request, version)
    assert (answer.error_code, answer.principal_name) == (
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        "ANONYMOUS",
    )


def test_an_owner_without_a_type_is_an_unexpected_error() -> None:
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="bob")
    answer = VirtualCluster.start().call(request, 3)
    assert (answer.error_code, answer.principal_name) == (ErrorCode.UNKNOWN_SERVER_ERROR, "ANONYMOUS")


def test_a_real_cluster_answers_anonymous_clients_the_same(
    broker: EmbeddedBroker, kafka_cluster: ClusterAddresses
) -> None:
    """The real cluster has a secret key, so only the refusals of anonymous clients can be compared."""
    ours = answers(broker.bootstrap_servers, login=False)
    assert ours == answers(kafka_cluster.bootstrap_servers, login=False)
