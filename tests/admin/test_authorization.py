"""Administration by a user with limited rights: refusals, and delegation tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from kafka_msgs.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermissionType,
    Admin,
    GroupState,
    NewTopic,
    OffsetSpec,
    ResourceType,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)
from kafka_msgs.client import ScramCredentials, TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from tests.support.cluster_topics import make_topics, new_name
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.kafka_listeners import Listener

OWN = new_name("acl")

OPEN, CLOSED = TopicPartition(f"{OWN}-open", 0), TopicPartition(f"{OWN}-closed", 0)
ALICE = "User:alice"


def login(cluster: ClusterAddresses, name: str) -> Admin:
    servers = cluster.bootstrap(Listener.SASL_PLAINTEXT)
    return Admin(servers, credentials=ScramCredentials(name, cluster.users[name], mechanism="SCRAM-SHA-256"))


@pytest.fixture(scope="module")
def alice(kafka_cluster: ClusterAddresses) -> Iterator[Admin]:
    """Yield the admin of alice, whom ACLs deny one topic and one group. All other access is allowed."""
    rules = [
        AclBinding(kind, name, principal, operation, permission)
        for kind, name in ((ResourceType.TOPIC, CLOSED.topic), (ResourceType.GROUP, f"{OWN}-secret"))
        for principal, operation, permission in (
            (ALICE, AclOperation.ALL, AclPermissionType.DENY),
            ("User:*", AclOperation.ALL, AclPermissionType.ALLOW),
        )
    ]
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        make_topics(kafka_cluster, NewTopic(OPEN.topic, 1), NewTopic(CLOSED.topic, 1))
        for group in (f"{OWN}-plain", f"{OWN}-secret"):
            admin.alter_group_offsets(group, {OPEN: 1, CLOSED: 2}).all()
        admin.create_acls(rules).all()
        until(lambda: len(admin.describe_acls(AclFilter(resource_name=CLOSED.topic))) == 2)
        with login(kafka_cluster, "alice") as alice:
            until(lambda: CLOSED.topic not in alice.list_topics())
            yield alice
        admin.delete_acls([AclFilter(resource_name=name) for name in (CLOSED.topic, f"{OWN}-secret")]).all()


def code_of(error: Exception) -> ErrorCode:
    assert isinstance(error, BrokerError)
    return ErrorCode(error.error)


def test_a12_a_group_that_one_may_not_see_fails_as_a_whole(alice: Admin) -> None:
    with pytest.raises(BrokerError) as raised:
        alice.list_group_offsets(f"{OWN}-secret")
    assert raised.value.error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    groups = alice.list_offsets_of_groups({f"{OWN}-plain": None, f"{OWN}-secret": None})
    assert (list(groups.ok), list(groups.errors)) == ([f"{OWN}-plain"], [f"{OWN}-secret"])


def test_a13_a_topic_that_one_may_not_see_fails_alone(alice: Admin) -> None:
    offsets = alice.list_group_offsets(f"{OWN}-plain", [OPEN, CLOSED])
    assert offsets[OPEN].offset == 1
    assert {partition: code_of(error) for partition, error in offsets.errors.items()} == {
        CLOSED: ErrorCode.TOPIC_AUTHORIZATION_FAILED
    }
    assert alice.list_group_offsets(f"{OWN}-plain").ok.keys() == {OPEN}


@pytest.mark.parametrize(
    "name", ["describe_classic_groups", "describe_consumer_groups", "describe_groups", "delete_groups"]
)
def test_operations_on_groups_fail_for_the_secret_one_only(alice: Admin, name: str) -> None:
    results = getattr(alice, name)([f"{OWN}-secret", f"{OWN}-none"])
    assert code_of(results.errors[f"{OWN}-secret"]) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert code_of(results.errors[f"{OWN}-none"]) is ErrorCode.GROUP_ID_NOT_FOUND


def test_operations_on_topics_fail_for_the_closed_one_only(alice: Admin) -> None:
    listed = alice.list_offsets(dict.fromkeys([OPEN, CLOSED], OffsetSpec.LATEST))
    altered = alice.alter_group_offsets(f"{OWN}-plain", {OPEN: 1, CLOSED: 1})
    for results in (listed, altered):
        assert (list(results.ok), list(results.errors)) == ([OPEN], [CLOSED])
        assert code_of(results.errors[CLOSED]) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_what_one_may_do_is_described(alice: Admin, kafka_cluster: ClusterAddresses) -> None:
    described = alice.describe_groups([f"{OWN}-plain"], include_authorized_operations=True)[f"{OWN}-plain"]
    assert AclOperation.DESCRIBE in (described.authorized_operations or ())
    listed = {each.group_id for each in alice.list_groups(states=[GroupState.EMPTY])}
    assert {f"{OWN}-plain", f"{OWN}-secret"} <= listed, "who may describe the cluster sees the name of every group"
    assert alice.describe_cluster(include_authorized_operations=True).authorized_operations is not None


def test_a_delegation_token_lives_from_creation_to_expiry(kafka_cluster: ClusterAddresses) -> None:
    with login(kafka_cluster, "bob") as bob:
        token = bob.create_delegation_token(renewers=[("User", "admin")], max_lifetime_ms=3_600_000)
        assert (token.principal_name, len(token.hmac) > 0) == ("bob", True)
        until(lambda: token.token_id in {each.token_id for each in bob.describe_delegation_tokens([("User", "bob")])})
        expires: list[int] = []

        def renewed() -> bool:
            """Renew the token. The broker that receives the request may not have learned of it yet."""
            with contextlib.suppress(BrokerError):
                expires.append(bob.renew_delegation_token(token.hmac, renew_period_ms=60_000))
            return bool(expires)

        until(renewed)
        assert token.issue_timestamp_ms < expires[0] < token.max_timestamp_ms
        bob.expire_delegation_token(token.hmac)
        until(lambda: token.token_id not in {each.token_id for each in bob.describe_delegation_tokens()})
        with pytest.raises(BrokerError) as raised:
            bob.renew_delegation_token(b"not a token")
        assert raised.value.error is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_credentials_that_an_administrator_makes_let_one_in(kafka_cluster: ClusterAddresses) -> None:
    mechanism = ScramMechanism.SCRAM_SHA_512
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials([ScramUpsertion(f"{OWN}-carol", mechanism, "a password")]).all()
        try:
            until(lambda: f"{OWN}-carol" in admin.describe_user_scram_credentials().ok)
            servers = kafka_cluster.bootstrap(Listener.SASL_PLAINTEXT)
            with Admin(
                servers, credentials=ScramCredentials(f"{OWN}-carol", "a password", mechanism="SCRAM-SHA-512")
            ) as carol:
                assert carol.describe_cluster().nodes.keys() == set(kafka_cluster.nodes)
        finally:
            admin.alter_user_scram_credentials([ScramDeletion(f"{OWN}-carol", mechanism)])
