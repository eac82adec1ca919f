"""Administration of a real cluster: each operation is verified with another operation or with Kafka's own tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from kafka_msgs.admin import (
    ANY_NAME,
    AclBinding,
    AclFilter,
    AclOperation,
    Admin,
    AlterConfigOp,
    AsyncAdmin,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ElectionType,
    GroupState,
    GroupType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PatternType,
    ResourceType,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    TopicPartitionReplica,
)
from kafka_msgs.client import Client, CoordinatorKind, TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, UnsupportedVersionError
from tests.support.cluster_topics import make_topics, new_name
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses

OWN = new_name("admin")

TOPIC = f"{OWN}-topic"
P0, P1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
MISSING = TopicPartition(f"{OWN}-missing", 0)


@pytest.fixture(scope="module")
def admin(kafka_cluster: ClusterAddresses) -> Iterator[Admin]:
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        make_topics(kafka_cluster, NewTopic(TOPIC, 2, 3))
        kafka_cluster.console_producer(TOPIC, [f"record {number}" for number in range(10)])
        yield admin


def code_of(error: Exception) -> ErrorCode:
    assert isinstance(error, BrokerError)
    return ErrorCode(error.error)


def test_topics_are_created_described_grown_and_deleted(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    name = f"{OWN}-grows"
    created = admin.create_topics(
        [
            NewTopic(name, assignments={0: [1, 2], 1: [2, 3]}, configs={"retention.ms": "3600000"}),
            NewTopic("not a name", 1),
        ]
    )
    assert (created[name].num_partitions, created[name].replication_factor) == (2, 2)
    assert code_of(created.errors["not a name"]) is ErrorCode.INVALID_TOPIC_EXCEPTION
    topic_id = created[name].topic_id
    until(lambda: topic_id in admin.describe_topics([topic_id]).ok)
    described = admin.describe_topics([name, topic_id, f"{OWN}-missing"], include_authorized_operations=True)
    assert described[name].topic_id == described[topic_id].topic_id == topic_id
    assert [each.replica_nodes for each in sorted(described[name].partitions, key=lambda p: p.partition_index)] == [
        (1, 2),
        (2, 3),
    ]
    assert code_of(described.errors[f"{OWN}-missing"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    grown = admin.create_partitions({name: NewPartitions(3, [[3, 1]]), f"{OWN}-missing": 2})
    assert list(grown.errors) == [f"{OWN}-missing"]
    until(lambda: len(admin.describe_topic_partitions([name], partitions_per_request=1)[name].partitions) == 3)
    assert f"Topic: {name}\tPartition: 2\tLeader: 3" in kafka_cluster.topics("--describe", "--topic", name)
    assert name in admin.list_topics()
    deleted = admin.delete_topics([topic_id, f"{OWN}-missing"])
    assert list(deleted.ok) == [topic_id]
    until(lambda: name not in admin.list_topics())
    assert "__consumer_offsets" not in admin.list_topics()


def test_what_is_only_validated_is_not_created(admin: Admin) -> None:
    assert (
        admin.create_topics([NewTopic(f"{OWN}-validated", 4, 1)], validate_only=True)[f"{OWN}-validated"].num_partitions
        == 4
    )
    assert f"{OWN}-validated" not in admin.list_topics()


def test_offsets_of_partitions(admin: Admin) -> None:
    latest = admin.list_offsets({P0: OffsetSpec.LATEST, P1: OffsetSpec.LATEST, MISSING: OffsetSpec.LATEST})
    assert sum(each.offset for each in latest.ok.values()) == 10
    assert code_of(latest.errors[MISSING]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    full = max(latest.ok, key=lambda each: latest[each].offset)
    newest = admin.list_offsets({full: OffsetSpec.MAX_TIMESTAMP})[full]
    at_newest = admin.list_offsets({full: newest.timestamp})[full]
    assert 0 <= at_newest.offset <= newest.offset < latest[full].offset
    assert admin.list_offsets({full: newest.timestamp + 1})[full].offset == -1
    assert admin.list_end_offsets_of_epochs({full: 0})[full].end_offset == latest[full].offset


def test_records_are_deleted_up_to_an_offset(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    make_topics(kafka_cluster, NewTopic(f"{OWN}-short", 1))
    kafka_cluster.console_producer(f"{OWN}-short", ["a", "b", "c"])
    partition = TopicPartition(f"{OWN}-short", 0)
    assert admin.delete_records({partition: 2, MISSING: 1}).ok == {partition: 2}
    assert admin.list_offsets({partition: OffsetSpec.EARLIEST})[partition].offset == 2
    assert admin.delete_records({partition: -1})[partition] == 3
    assert code_of(admin.delete_records({partition: 99}).errors[partition]) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_replicas_are_moved_and_leaders_elected(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    make_topics(kafka_cluster, NewTopic(f"{OWN}-moves", assignments={0: [1]}))
    partition = TopicPartition(f"{OWN}-moves", 0)

    def replicas() -> tuple[int, ...]:
        return admin.describe_topics([f"{OWN}-moves"])[f"{OWN}-moves"].partitions[0].replica_nodes

    result = admin.alter_partition_reassignments({partition: [2, 3], MISSING: [1]})
    assert list(result.ok) == [partition]
    until(lambda: replicas() == (2, 3) and partition not in admin.list_partition_reassignments([partition]))
    cancelled = admin.alter_partition_reassignments({partition: None})
    assert code_of(cancelled.errors[partition]) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    election = admin.elect_leaders([partition, MISSING], election=ElectionType.PREFERRED)
    assert {code_of(error) for error in election.errors.values()} == {
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    until(lambda: admin.elect_leaders().all() == {})


def test_configurations_are_changed_one_by_one(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    topic, broker = ConfigResource(ConfigResourceType.TOPIC, TOPIC), ConfigResource(ConfigResourceType.BROKER, "2")
    missing = ConfigResource(ConfigResourceType.TOPIC, f"{OWN}-missing")
    changes = [
        ConfigChange("retention.ms", "7200000"),
        ConfigChange("cleanup.policy", "compact", AlterConfigOp.APPEND),
    ]
    assert list(admin.alter_configs({topic: changes, missing: changes}).errors) == [missing]

    def values() -> dict[str, str | None]:
        found = admin.describe_configs({topic: ["retention.ms", "cleanup.policy"]})[topic]
        return {name: each.value for name, each in found.items()}

    until(lambda: values() == {"retention.ms": "7200000", "cleanup.policy": "delete,compact"})
    assert "retention.ms=7200000" in kafka_cluster.topics("--describe", "--topic", TOPIC)
    everything = admin.describe_configs([topic, broker], include_synonyms=True, include_documentation=True).all()
    assert everything[topic]["retention.ms"].config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert everything[broker]["node.id"].value == "2"
    assert everything[topic]["retention.ms"].documentation
    admin.alter_configs({topic: [ConfigChange("retention.ms", op=AlterConfigOp.DELETE)]}).all()
    until(lambda: values()["retention.ms"] != "7200000")
    bad = admin.alter_configs({topic: [ConfigChange("retention.ms", "long")]}, validate_only=True)
    assert code_of(bad.errors[topic]) is ErrorCode.INVALID_CONFIG


def test_subscriptions_of_client_metrics_are_resources(admin: Admin) -> None:
    subscription = ConfigResource(ConfigResourceType.CLIENT_METRICS, f"{OWN}-metrics")
    admin.alter_configs({subscription: [ConfigChange("interval.ms", "5000")]}).all()
    until(lambda: f"{OWN}-metrics" in admin.list_client_metrics_resources())
    assert subscription in admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])
    assert ConfigResource(ConfigResourceType.TOPIC, TOPIC) in admin.list_config_resources()
    admin.alter_configs({subscription: [ConfigChange("interval.ms", op=AlterConfigOp.DELETE)]}).all()
    until(lambda: f"{OWN}-metrics" not in admin.list_client_metrics_resources())
    with pytest.raises(UnsupportedVersionError):
        admin.telemetry_subscriptions()


def test_log_directories_of_every_broker(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    directories = admin.describe_log_dirs(partitions=[P0]).all()
    assert directories.keys() == set(kafka_cluster.nodes)
    for node, found in directories.items():
        (path,) = found
        assert path == str(kafka_cluster.log_dir(node))
        assert [topic.name for topic in found[path].topics] == [TOPIC]
        assert found[path].total_bytes > 0
    moved = admin.alter_replica_log_dirs({TopicPartitionReplica(TOPIC, 0, 2): "/nowhere"})
    assert code_of(moved.errors[TopicPartitionReplica(TOPIC, 0, 2)]) is ErrorCode.LOG_DIR_NOT_FOUND
    assert list(admin.describe_log_dirs([2, 99], timeout=3.0).errors) == [99]


def test_access_control(admin: Admin) -> None:
    rule = AclBinding(
        ResourceType.TOPIC, f"{OWN}-", "User:admin-test", AclOperation.READ, pattern_type=PatternType.PREFIXED
    )
    mine = AclFilter(principal="User:admin-test")
    admin.create_acls([rule]).all()
    until(lambda: admin.describe_acls(mine) == (rule,))
    deleted = admin.delete_acls([mine]).all()
    assert list(deleted[mine].all()) == [rule]
    until(lambda: admin.describe_acls(mine) == ())


def test_quotas(admin: Admin) -> None:
    alice = frozenset({("user", f"{OWN}-alice"), ("client-id", None)})
    unknown = frozenset({("planet", "mars")})
    result = admin.alter_client_quotas({alice: {"consumer_byte_rate": 1000.0}, unknown: {"consumer_byte_rate": 1.0}})
    assert (list(result.ok), list(result.errors)) == ([alice], [unknown])
    until(lambda: alice in admin.describe_client_quotas({"user": f"{OWN}-alice", "client-id": None}))
    assert admin.describe_client_quotas({"user": ANY_NAME})[alice] == {"consumer_byte_rate": 1000.0}
    assert admin.describe_client_quotas({"user": f"{OWN}-alice"}, strict=True) == {}
    admin.alter_client_quotas({alice: {"consumer_byte_rate": None}}).all()
    until(lambda: alice not in admin.describe_client_quotas())


def test_a_user_with_scram_credentials_can_connect_until_they_are_deleted(
    kafka_cluster: ClusterAddresses, admin: Admin
) -> None:
    admin.alter_user_scram_credentials(
        [ScramUpsertion(f"{OWN}-new", ScramMechanism.SCRAM_SHA_256, "secret", 8192)]
    ).all()
    until(lambda: f"{OWN}-new" in admin.describe_user_scram_credentials().ok)
    (info,) = admin.describe_user_scram_credentials([f"{OWN}-new"])[f"{OWN}-new"]
    assert (info.mechanism, info.iterations) == (ScramMechanism.SCRAM_SHA_256, 8192)
    deleted = admin.alter_user_scram_credentials([ScramDeletion(f"{OWN}-new", ScramMechanism.SCRAM_SHA_256)])
    assert deleted[f"{OWN}-new"] is None
    until(lambda: f"{OWN}-new" not in admin.describe_user_scram_credentials().ok)
    nobody = admin.describe_user_scram_credentials([f"{OWN}-new"])
    assert code_of(nobody.errors[f"{OWN}-new"]) is ErrorCode.RESOURCE_NOT_FOUND


def test_the_cluster_its_features_and_its_quorum(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    cluster = admin.describe_cluster(include_fenced_brokers=True, include_authorized_operations=True)
    assert cluster.nodes.keys() == set(kafka_cluster.nodes)
    assert AclOperation.ALTER in (cluster.authorized_operations or ())
    assert len(admin.api_versions(2).api_keys) > 60
    features = admin.describe_features()
    assert features.finalized["streams.version"] == (1, 1)
    assert features.supported["metadata.version"][1] >= features.finalized["metadata.version"][1]
    with pytest.raises(BrokerError):
        admin.update_features({"metadata.version": 1}, validate_only=True)
    quorum = admin.describe_quorum()
    assert quorum.leader_id in {each.replica_id for each in quorum.voters} == set(kafka_cluster.nodes)
    assert quorum.high_watermark > 0
    refused: list[tuple[Callable[[], None], ErrorCode]] = [
        (lambda: admin.unregister_broker(99), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (lambda: admin.unregister_controller(99), ErrorCode.CONTROLLER_ID_NOT_REGISTERED),
        (lambda: admin.remove_raft_voter(9, UUID(int=1)), ErrorCode.UNSUPPORTED_VERSION),
        (lambda: admin.add_raft_voter(9, UUID(int=1), {}), ErrorCode.INVALID_REQUEST),
    ]
    for fails, expected in refused:
        with pytest.raises(BrokerError) as raised:
            fails()
        assert raised.value.error is expected


def test_coordinators_are_where_the_broker_finds_them(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    keys = [f"{OWN}-key-{number}" for number in range(12)]
    for kind in (CoordinatorKind.GROUP, CoordinatorKind.TRANSACTION):
        found = admin.find_coordinators(keys, kind).all()
        assert set(found.values()) <= set(kafka_cluster.nodes)
        assert len(set(found.values())) > 1


def test_transactions_and_producers(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    fenced = admin.fence_producers([f"{OWN}-tx-1", f"{OWN}-tx-2"]).all()
    again = admin.fence_producers([f"{OWN}-tx-1"])[f"{OWN}-tx-1"]
    assert (again.producer_id, again.epoch) == (fenced[f"{OWN}-tx-1"].producer_id, fenced[f"{OWN}-tx-1"].epoch + 1)
    described = admin.describe_transactions([f"{OWN}-tx-1", f"{OWN}-tx-none"])
    assert (described[f"{OWN}-tx-1"].transaction_state, described[f"{OWN}-tx-1"].producer_id) == (
        "Empty",
        again.producer_id,
    )
    assert code_of(described.errors[f"{OWN}-tx-none"]) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    listed = {each.transactional_id for each in admin.list_transactions(states=["Empty"])}
    assert {f"{OWN}-tx-1", f"{OWN}-tx-2"} <= listed
    assert {each.transactional_id for each in admin.list_transactions(id_pattern=f"{OWN}-tx-1")} == {f"{OWN}-tx-1"}
    producers = admin.describe_producers([P0, P1, MISSING])
    assert len([each for part in producers.ok.values() for each in part]) >= 1
    assert list(producers.errors) == [MISSING]
    leader = admin.describe_topics([TOPIC])[TOPIC].partitions[0].leader_id
    assert admin.describe_producers([P0], broker_id=leader).ok.keys() == {P0}
    admin.abort_transaction(P0, 424242, 0)
    with pytest.raises(BrokerError):
        admin.abort_transaction(MISSING, 1, 0)


def test_delegation_tokens_need_an_authenticated_user(admin: Admin) -> None:
    for fails in (
        admin.create_delegation_token,
        admin.describe_delegation_tokens,
        lambda: admin.renew_delegation_token(b"x"),
        lambda: admin.expire_delegation_token(b"x"),
    ):
        with pytest.raises(BrokerError) as raised:
            fails()
        assert raised.value.error is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_share_groups(admin: Admin) -> None:
    assert admin.alter_share_group_offsets(f"{OWN}-share", {P0: 1, MISSING: 1}).errors.keys() == {MISSING}
    offsets = admin.list_share_group_offsets({f"{OWN}-share": None, f"{OWN}-none": None})
    assert offsets[f"{OWN}-share"][P0].start_offset == 1
    group = admin.describe_groups([f"{OWN}-share"])[f"{OWN}-share"]
    assert (group.group_id, getattr(group, "type", None)) == (f"{OWN}-share", GroupType.SHARE)
    assert admin.delete_share_group_offsets(f"{OWN}-share", [TOPIC])[TOPIC] is None
    assert admin.delete_groups([f"{OWN}-share", f"{OWN}-none"]).errors.keys() == {f"{OWN}-none"}


def test_asyncio_has_the_same_operations(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    admin.alter_group_offsets(f"{OWN}-async", {P0: 1}).all()

    async def ask() -> tuple[int, GroupState, int]:
        async with AsyncAdmin(kafka_cluster.bootstrap_servers) as on_loop:
            offsets, groups, cluster = await asyncio.gather(
                on_loop.list_group_offsets(f"{OWN}-async"), on_loop.list_groups(), on_loop.describe_cluster()
            )
            (group,) = (each for each in groups if each.group_id == f"{OWN}-async")
            return offsets[P0].offset, group.state, len(cluster.nodes)

    assert asyncio.run(ask()) == (1, GroupState.EMPTY, 3)


def test_a_client_that_is_given_stays_open(kafka_cluster: ClusterAddresses) -> None:
    with Client(kafka_cluster.bootstrap_servers) as client:
        with Admin(client) as first:
            first.describe_cluster()
        assert Admin(client).describe_cluster().nodes.keys() == set(kafka_cluster.nodes)
