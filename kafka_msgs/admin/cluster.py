"""The cluster itself: brokers, features, the controller quorum, and api versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from attrs import frozen

from kafka_msgs.admin.fan_out import CoordinatorFanOut, milliseconds_left
from kafka_msgs.admin.results import Results, api_name, item_as_value, no_value, outcomes, raise_top_level
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.network import Address
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.enums import AclOperation, UpgradeType, decode_authorized_operations
from kafka_msgs.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kafka_msgs.messages.api_versions_request import ApiVersionsRequest
from kafka_msgs.messages.api_versions_response import ApiVersionsResponse
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.describe_cluster_response import DescribeClusterBroker
from kafka_msgs.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kafka_msgs.messages.describe_quorum_response import Node, ReplicaState
from kafka_msgs.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kafka_msgs.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kafka_msgs.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kafka_msgs.messages.unregister_broker_request import UnregisterBrokerRequest
from kafka_msgs.messages.unregister_controller_request import UnregisterControllerRequest
from kafka_msgs.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafka_msgs.primitives import ZERO_UUID

__all__ = [
    "ClusterDescription",
    "FeatureUpdate",
    "Features",
    "Quorum",
    "add_raft_voter",
    "api_versions",
    "describe_cluster",
    "describe_features",
    "describe_quorum",
    "find_coordinators",
    "remove_raft_voter",
    "telemetry_subscriptions",
    "unregister_broker",
    "unregister_controller",
    "update_features",
]

_METADATA_TOPIC = "__cluster_metadata"
_BROKERS, _CONTROLLERS = 1, 2


@frozen
class ClusterDescription:
    """A cluster: its id, its nodes by id, and a node to send controller requests to (-1: unknown).

    ``authorized_operations`` are the operations that the client may perform on the cluster, or None if it did not ask.
    """

    cluster_id: str
    controller_id: int
    nodes: Mapping[int, DescribeClusterBroker]
    authorized_operations: frozenset[AclOperation] | None


@frozen
class Features:
    """The features of a cluster: finalized levels, and the levels that the queried broker supports (KIP-584).

    ``finalized`` and ``supported`` have the lowest and the highest level. ``epoch`` counts changes; -1 if unknown.
    """

    finalized: Mapping[str, tuple[int, int]]
    supported: Mapping[str, tuple[int, int]]
    epoch: int


@frozen
class FeatureUpdate:
    """The new level of a feature; 0 deletes the feature."""

    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@frozen
class Quorum:
    """The controller quorum: its leader, and the progress of voters and observers (KIP-595, KIP-853)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]
    nodes: tuple[Node, ...]


def describe_cluster(
    client: ClientCore,
    *,
    controllers: bool = False,
    include_fenced_brokers: bool = False,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Flow[ClusterDescription]:
    """Return the nodes of the cluster. ``controllers`` requests controllers instead of brokers (KIP-919).

    Only a controller responds to that: the client must be connected to controllers.
    """
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations,
        endpoint_type=_CONTROLLERS if controllers else _BROKERS,
        include_fenced_brokers=include_fenced_brokers,
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes={each.broker_id: each for each in response.brokers},
        authorized_operations=decode_authorized_operations(response.cluster_authorized_operations),
    )


def find_coordinators(
    client: ClientCore,
    keys: Collection[str],
    kind: CoordinatorKind = CoordinatorKind.GROUP,
    *,
    timeout: float | None = None,
) -> Flow[Results[str, int]]:
    """Return the broker id of the coordinator of each group, transaction or share partition."""
    return (yield from CoordinatorFanOut(client, kind, deadline=client.deadline(timeout)).run(keys, _itself))


def _itself(broker_id: int, keys: Sequence[str]) -> Flow[dict[str, int]]:
    """Return the coordinator as the result."""
    return dict.fromkeys(keys, broker_id)
    yield


def api_versions(
    client: ClientCore, broker_id: int | None = None, *, timeout: float | None = None
) -> Flow[ApiVersionsResponse]:
    """Return the capabilities of a broker: its versions of every api, and its features."""
    request = ApiVersionsRequest(client_software_name="kafka-msgs", client_software_version="0")
    response = yield from client.call(request, broker_id=broker_id, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return response


def describe_features(
    client: ClientCore, broker_id: int | None = None, *, timeout: float | None = None
) -> Flow[Features]:
    """Return the features of the cluster, and the levels that the queried broker supports (KIP-584)."""
    response = yield from api_versions(client, broker_id, timeout=timeout)
    return Features(
        finalized={e.name: (e.min_version_level, e.max_version_level) for e in response.finalized_features},
        supported={e.name: (e.min_version, e.max_version) for e in response.supported_features},
        epoch=response.finalized_features_epoch,
    )


def update_features(
    client: ClientCore,
    updates: Mapping[str, int | FeatureUpdate],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, None]]:
    """Change the levels of features. From version 2 of the api on, an update is atomic and raises its error."""
    deadline = client.deadline(timeout)
    wanted = {name: each if isinstance(each, FeatureUpdate) else FeatureUpdate(each) for name, each in updates.items()}
    request = UpdateFeaturesRequest(
        timeout_ms=milliseconds_left(client, deadline),
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=each.level, upgrade_type=each.upgrade_type)
            for name, each in wanted.items()
        ),
        validate_only=validate_only,
    )
    response = yield from client.call(request, deadline=deadline)
    raise_top_level(response, api_name(request))
    results = outcomes(api_name(request), ((each.feature, each) for each in response.results), no_value)
    return Results({**dict.fromkeys(wanted), **results.outcomes})


def describe_quorum(client: ClientCore, *, timeout: float | None = None) -> Flow[Quorum]:
    """Return the state of the controller quorum."""
    topics = (TopicData(topic_name=_METADATA_TOPIC, partitions=(PartitionData(partition_index=0),)),)
    request = DescribeQuorumRequest(topics=topics)
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    items = ((topic.topic_name, each) for topic in response.topics for each in topic.partitions)
    partition = outcomes(api_name(request), items, item_as_value, [_METADATA_TOPIC])[_METADATA_TOPIC]
    return Quorum(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=partition.current_voters,
        observers=partition.observers,
        nodes=response.nodes,
    )


def add_raft_voter(
    client: ClientCore,
    voter_id: int,
    directory_id: UUID,
    listeners: Mapping[str, Address],
    *,
    cluster_id: str | None = None,
    wait_until_committed: bool = True,
    timeout: float | None = None,
) -> Flow[None]:
    """Add a controller to the quorum as a voter (KIP-853). ``directory_id`` is the id of its metadata directory."""
    deadline = client.deadline(timeout)
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=milliseconds_left(client, deadline),
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=tuple(Listener(name=name, host=at.host, port=at.port) for name, at in listeners.items()),
        ack_when_committed=wait_until_committed,
    )
    response = yield from client.call(request, deadline=deadline)
    raise_top_level(response, api_name(request), voter_id)


def remove_raft_voter(
    client: ClientCore,
    voter_id: int,
    directory_id: UUID,
    *,
    cluster_id: str | None = None,
    timeout: float | None = None,
) -> Flow[None]:
    """Remove a voter from the controller quorum (KIP-853)."""
    request = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id)
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request), voter_id)


def unregister_broker(client: ClientCore, broker_id: int, *, timeout: float | None = None) -> Flow[None]:
    """Remove the registration of a broker that has permanently left the cluster."""
    request = UnregisterBrokerRequest(broker_id=broker_id)
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request), broker_id)


def unregister_controller(client: ClientCore, controller_id: int, *, timeout: float | None = None) -> Flow[None]:
    """Remove the registration of a controller that has permanently left the cluster."""
    request = UnregisterControllerRequest(controller_id=controller_id)
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request), controller_id)


def telemetry_subscriptions(
    client: ClientCore, client_instance_id: UUID | None = None, *, timeout: float | None = None
) -> Flow[GetTelemetrySubscriptionsResponse]:
    """Return the metrics that the broker subscribes to for this client, and the client instance id (KIP-714)."""
    request = GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id or ZERO_UUID)
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return response
