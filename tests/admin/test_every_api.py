"""Tests that every API that brokers offer to clients has a method of ``Admin``, or a documented reason for having none.

Each method runs against brokers in memory, so the table here lists the requests that it really sends.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import pytest

from kafka_msgs.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    Admin,
    AsyncAdmin,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    MemberToRemove,
    NewTopic,
    OffsetSpec,
    OffsetTarget,
    ResourceType,
    ScramMechanism,
    ScramUpsertion,
    TopicPartitionReplica,
)
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import message_class
from kafka_msgs.client import Address, Client, TopicPartition
from kafka_msgs.errors import BrokerError
from kafka_msgs.message import Request
from kafka_msgs.messages.describe_quorum_request import DescribeQuorumRequest
from kafka_msgs.messages.describe_quorum_response import DescribeQuorumResponse, PartitionData, TopicData
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseGroup
from kafka_msgs.messages.write_txn_markers_request import WriteTxnMarkersRequest
from kafka_msgs.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tests.support.simulated_cluster import SimulatedCluster

T0 = TopicPartition("t", 0)
ID = UUID(int=7)
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")

CALLS: Final[dict[str, tuple[set[str], tuple[Any, ...], dict[str, Any]]]] = {
    "abort_transaction": ({"WriteTxnMarkers"}, (T0, 1, 0), {}),
    "add_raft_voter": ({"AddRaftVoter"}, (4, ID, {"CONTROLLER": Address("localhost", 9093)}), {}),
    "alter_client_quotas": ({"AlterClientQuotas"}, ({frozenset({("user", "a")}): {"producer_byte_rate": 1.0}},), {}),
    "alter_configs": ({"IncrementalAlterConfigs"}, ({TOPIC: [ConfigChange("retention.ms", "1")]},), {}),
    "alter_group_offsets": ({"OffsetCommit"}, ("g", {T0: 1}), {}),
    "alter_partition_reassignments": ({"AlterPartitionReassignments"}, ({T0: [1, 2]},), {}),
    "alter_replica_log_dirs": ({"AlterReplicaLogDirs"}, ({TopicPartitionReplica("t", 0, 2): "/data"},), {}),
    "alter_share_group_offsets": ({"AlterShareGroupOffsets"}, ("g", {T0: 1}), {}),
    "alter_streams_group_offsets": ({"OffsetCommit"}, ("g", {T0: 1}), {}),
    "alter_user_scram_credentials": (
        {"AlterUserScramCredentials"},
        ([ScramUpsertion("a", ScramMechanism.SCRAM_SHA_256, "secret")],),
        {},
    ),
    "api_versions": ({"ApiVersions"}, (), {}),
    "create_acls": ({"CreateAcls"}, ([AclBinding(ResourceType.TOPIC, "t", "User:a", AclOperation.READ)],), {}),
    "create_delegation_token": ({"CreateDelegationToken"}, (), {"renewers": [("User", "a")]}),
    "create_partitions": ({"CreatePartitions"}, ({"t": 5},), {}),
    "create_topics": ({"CreateTopics"}, ([NewTopic("new", 1, 1)],), {}),
    "delete_acls": ({"DeleteAcls"}, ([AclFilter(principal="User:a")],), {}),
    "delete_group_offsets": ({"OffsetDelete"}, ("g", [T0]), {}),
    "delete_groups": ({"DeleteGroups"}, (["g"],), {}),
    "delete_records": ({"DeleteRecords"}, ({T0: 1},), {}),
    "delete_share_group_offsets": ({"DeleteShareGroupOffsets"}, ("g", ["t"]), {}),
    "delete_streams_group_offsets": ({"Metadata", "OffsetFetch", "OffsetDelete"}, ("g", ["t"]), {}),
    "delete_streams_groups": ({"DeleteGroups"}, (["g"],), {}),
    "delete_topics": ({"DeleteTopics"}, (["t", ID],), {}),
    "describe_acls": ({"DescribeAcls"}, (), {}),
    "describe_classic_groups": ({"DescribeGroups"}, (["g"],), {}),
    "describe_client_quotas": ({"DescribeClientQuotas"}, ({"user": None},), {}),
    "describe_cluster": ({"DescribeCluster"}, (), {}),
    "describe_configs": ({"DescribeConfigs"}, ([TOPIC],), {}),
    "describe_consumer_groups": ({"ConsumerGroupDescribe"}, (["g"],), {}),
    "describe_delegation_tokens": ({"DescribeDelegationToken"}, ([("User", "a")],), {}),
    "describe_features": ({"ApiVersions"}, (), {}),
    "describe_groups": ({"ListGroups", "DescribeGroups"}, (["g"],), {}),
    "describe_log_dirs": ({"DescribeLogDirs"}, ([1, 2],), {}),
    "describe_producers": ({"DescribeProducers"}, ([T0],), {}),
    "describe_quorum": ({"DescribeQuorum"}, (), {}),
    "describe_share_groups": ({"ShareGroupDescribe"}, (["g"],), {}),
    "describe_streams_groups": ({"StreamsGroupDescribe"}, (["g"],), {}),
    "describe_topic_partitions": ({"DescribeTopicPartitions"}, (["t"],), {}),
    "describe_topics": ({"Metadata"}, (["t", ID],), {}),
    "describe_transactions": ({"DescribeTransactions"}, (["x"],), {}),
    "describe_user_scram_credentials": ({"DescribeUserScramCredentials"}, (), {}),
    "elect_leaders": ({"ElectLeaders"}, ([T0],), {}),
    "expire_delegation_token": ({"ExpireDelegationToken"}, (b"hmac",), {}),
    "fence_producers": ({"InitProducerId"}, (["x"],), {}),
    "find_hanging_transactions": ({"DescribeProducers"}, ([T0],), {"last_write_before_ms": 0}),
    "find_coordinators": ({"FindCoordinator"}, (["g"],), {}),
    "list_client_metrics_resources": ({"ListConfigResources"}, (), {}),
    "list_config_resources": ({"ListConfigResources"}, (), {}),
    "list_end_offsets_of_epochs": ({"OffsetForLeaderEpoch"}, ({T0: 1},), {}),
    "list_group_offsets": ({"OffsetFetch"}, ("g",), {}),
    "list_groups": ({"ListGroups"}, (), {}),
    "list_offsets": ({"ListOffsets"}, ({T0: OffsetSpec.LATEST},), {}),
    "list_offsets_of_groups": ({"OffsetFetch"}, ({"g": None},), {}),
    "list_partition_reassignments": ({"ListPartitionReassignments"}, (), {}),
    "list_share_group_offsets": ({"DescribeShareGroupOffsets"}, ({"g": None},), {}),
    "list_streams_group_offsets": ({"OffsetFetch"}, ({"g": None},), {}),
    "list_topics": ({"Metadata"}, (), {}),
    "list_transactions": ({"ListTransactions"}, (), {}),
    "plan_offset_reset": ({"OffsetFetch", "ListOffsets"}, ("g", OffsetTarget.latest(), [T0]), {}),
    "remove_group_members": ({"LeaveGroup"}, ("g", [MemberToRemove("m")]), {}),
    "remove_raft_voter": ({"RemoveRaftVoter"}, (4, ID), {}),
    "renew_delegation_token": ({"RenewDelegationToken"}, (b"hmac",), {}),
    "reset_group_offsets": ({"OffsetFetch", "ListOffsets"}, ("g", OffsetTarget.latest(), [T0]), {}),
    "telemetry_subscriptions": ({"GetTelemetrySubscriptions"}, (), {}),
    "unregister_broker": ({"UnregisterBroker"}, (4,), {}),
    "unregister_controller": ({"UnregisterController"}, (4,), {}),
    "update_features": ({"UpdateFeatures"}, ({"metadata.version": 20},), {}),
}
"""The APIs that each method calls (without Metadata and FindCoordinator), and arguments for it."""

OF_PRODUCERS = "a producer sends it"
OF_MEMBERS = "a member of a group sends it about itself"
OF_CONNECTIONS = "it belongs to the connection"
OF_BROKERS = "brokers send it to the share coordinator"
WITHOUT_METHOD: Final = {
    "Produce": OF_PRODUCERS,
    "AddPartitionsToTxn": OF_PRODUCERS,
    "AddOffsetsToTxn": OF_PRODUCERS,
    "EndTxn": OF_PRODUCERS,
    "TxnOffsetCommit": OF_PRODUCERS,
    "Fetch": "a consumer sends it",
    "JoinGroup": OF_MEMBERS,
    "SyncGroup": OF_MEMBERS,
    "Heartbeat": OF_MEMBERS,
    "ConsumerGroupHeartbeat": OF_MEMBERS,
    "ShareGroupHeartbeat": OF_MEMBERS,
    "StreamsGroupHeartbeat": OF_MEMBERS,
    "StreamsGroupTopologyDescriptionUpdate": OF_MEMBERS,
    "ShareFetch": OF_MEMBERS,
    "ShareAcknowledge": OF_MEMBERS,
    "SaslHandshake": OF_CONNECTIONS,
    "SaslAuthenticate": OF_CONNECTIONS,
    "PushTelemetry": "a client sends its own metrics",
    "AlterConfigs": "IncrementalAlterConfigs replaces it: what it does not mention it deletes",
    "InitializeShareGroupState": OF_BROKERS,
    "ReadShareGroupState": OF_BROKERS,
    "WriteShareGroupState": OF_BROKERS,
    "DeleteShareGroupState": OF_BROKERS,
    "ReadShareGroupStateSummary": OF_BROKERS,
}


def offered_to_clients() -> dict[str, type[Request[Any]]]:
    """Return the APIs of a broker's listener, by name."""
    classes = [message_class(key, "request") for key in ApiKey]
    return {cls.INFO.name.removesuffix("Request"): cls for cls in classes if "broker" in cls.INFO.listeners}


def operations(facade: type[Any]) -> dict[str, Callable[..., Any]]:
    """Return the public methods of an admin class, by name."""
    return {name: getattr(facade, name) for name in dir(facade) if not name.startswith("_") and name != "close"}


def answers() -> dict[type[Request[Any]], Callable[[int, Any], Any]]:
    """Return handlers for every request, with empty responses for all APIs that can do without content."""
    silent: dict[type[Request[Any]], Callable[[int, Any], Any]] = {
        cls: lambda node, request: type(request).response_class()() for cls in offered_to_clients().values()
    }
    for name in ("Metadata", "FindCoordinator"):
        del silent[offered_to_clients()[name]]
    partition = PartitionData(partition_index=0, leader_id=1)
    quorum = DescribeQuorumResponse(topics=(TopicData(topic_name="__cluster_metadata", partitions=(partition,)),))
    marked = WritableTxnMarkerTopicResult(name="t", partitions=(WritableTxnMarkerPartitionResult(partition_index=0),))
    markers = WriteTxnMarkersResponse(markers=(WritableTxnMarkerResult(producer_id=1, topics=(marked,)),))
    nothing = OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="g"),))
    return {
        **silent,
        OffsetFetchRequest: lambda node, request: nothing,
        DescribeQuorumRequest: lambda node, request: quorum,
        WriteTxnMarkersRequest: lambda node, request: markers,
    }


class SimulatedClient(Client):
    """A client of brokers in memory."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__("broker-1:9092")
        self.core = cluster.core
        self.run = cluster.network.run  # type: ignore[method-assign]


def sent_by(name: str) -> set[str]:
    """Run a method and return the APIs that it called."""
    cluster = SimulatedCluster(answers(), topics={"t": 1})
    _, positional, named = CALLS[name]
    try:
        getattr(Admin(SimulatedClient(cluster)), name)(*positional, **named)
    except BrokerError as error:
        assert "does not mention it" in str(error)  # noqa: PT017
    apis = {request.INFO.name.removesuffix("Request") for _, request in cluster.requests}
    asked = sum(broker.negotiations for broker in cluster.brokers.values()) > cluster.network.connections
    return apis | ({"ApiVersions"} if asked else set())


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_method_sends_what_it_is_for(name: str) -> None:
    expected = CALLS[name][0]
    assert sent_by(name) - {"Metadata", "FindCoordinator"} == expected - {"Metadata", "FindCoordinator"}


def test_every_api_has_a_method_or_a_reason() -> None:
    covered = {api for apis, _, _ in CALLS.values() for api in apis}
    assert covered.isdisjoint(WITHOUT_METHOD)
    assert covered | WITHOUT_METHOD.keys() == offered_to_clients().keys()


@pytest.mark.parametrize("shell", [Admin, AsyncAdmin])
def test_every_method_is_in_the_table_and_says_what_it_does(shell: type[Any]) -> None:
    assert operations(shell).keys() == CALLS.keys()
    for name, operation in operations(shell).items():
        assert operation.__doc__, name
        assert "timeout" in inspect.signature(operation).parameters, name
        assert "core" not in inspect.signature(operation).parameters, name
