"""APIs about the cluster itself: brokers, features, the quorum, and paginated topic descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from kafka_msgs.broker.controller.image import NO_LEADER, PartitionRegistration, TopicImage
from kafka_msgs.broker.controller.image_types import METADATA_VERSION, SUPPORTED_FEATURES
from kafka_msgs.broker.controller.internal_topic_configs import is_internal
from kafka_msgs.broker.controller.topics import missing_topic_error
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.storage.metadata_batches import METADATA_TOPIC
from kafka_msgs.enums import AclOperation, ResourceType, UpgradeType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages import describe_quorum_response as quorum
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from kafka_msgs.messages.describe_quorum_request import DescribeQuorumRequest
from kafka_msgs.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kafka_msgs.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.unregister_broker_record import UnregisterBrokerRecord
from kafka_msgs.messages.unregister_broker_request import UnregisterBrokerRequest
from kafka_msgs.messages.unregister_broker_response import UnregisterBrokerResponse
from kafka_msgs.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafka_msgs.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse

__all__ = ["HANDLERS"]

_bad_version: Final = partial(RequestRefusedError, ErrorCode.INVALID_UPDATE_VERSION)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_FIRST_WITHOUT_RESULTS: Final = 2
_NO_ERROR: Final = "NONE"
"""The message of a result without an error, as Kafka sends it."""


def _describe_cluster(call: ServerCall[DescribeClusterRequest]) -> None:
    request, cluster = call.request, call.cluster
    if request.endpoint_type != _BROKERS:
        raise _wrong_endpoint(request.endpoint_type)
    operations: dict[str, Any] = {}
    if request.include_cluster_authorized_operations:
        operations["cluster_authorized_operations"] = call.operations(ResourceType.CLUSTER)
    call.respond(
        DescribeClusterResponse(
            cluster_id=cluster.cluster_id,
            controller_id=cluster.controller_id,
            endpoint_type=_BROKERS,
            brokers=tuple(_brokers(call)),
            **operations,
        )
    )


def _wrong_endpoint(kind: int) -> RequestRefusedError:
    if kind != _CONTROLLERS:
        return RequestRefusedError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}")
    message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    return RequestRefusedError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)


def _brokers(call: ServerCall[DescribeClusterRequest]) -> Iterator[DescribeClusterBroker]:
    for broker in call.cluster.image.brokers.values():
        endpoint = broker.endpoints.get(call.session.listener.name)
        if endpoint is not None and (broker.alive or call.request.include_fenced_brokers):
            yield DescribeClusterBroker(
                broker_id=broker.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced if call.request.include_fenced_brokers else False,
            )


def _describe_topic_partitions(call: ServerCall[DescribeTopicPartitionsRequest]) -> None:
    request, cursor = call.request, call.request.cursor
    asked = {each.name for each in request.topics}
    if cursor is not None and ((asked and cursor.topic_name not in asked) or cursor.partition_index < 0):
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
    first = cursor.topic_name if cursor else ""
    names = [each for each in sorted(asked or call.cluster.image.topics) if each >= first]
    seen = {name: call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, name) for name in names}
    topics, following = _page(call, [name for name in names if seen[name]])
    hidden = [_unknown(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in names if asked and not seen[name]]
    call.respond(DescribeTopicPartitionsResponse(topics=(*topics, *hidden), next_cursor=following))


def _page(
    call: ServerCall[DescribeTopicPartitionsRequest], names: list[str]
) -> tuple[list[DescribeTopicPartitionsResponseTopic], Cursor | None]:
    """Describe topics up to the partition limit. Return them, and the cursor, which may name an unknown topic."""
    request, cursor = call.request, call.request.cursor
    most = call.cluster.configs.number("max.request.partition.size.limit")
    left = max(1, min(request.response_partition_limit, most))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if not left:
            return topics, Cursor(topic_name=name, partition_index=0)
        topic = call.cluster.image.topics.get(name)
        if topic is None:
            operations = call.operations(ResourceType.TOPIC, name)
            topics.append(_unknown(name, missing_topic_error(name), topic_authorized_operations=operations))
            continue
        start = cursor.partition_index if cursor and name == cursor.topic_name else 0
        chosen = topic.partitions[start : start + left]
        topics.append(_described(call, topic, chosen))
        left -= len(chosen)
        if start + len(chosen) < len(topic.partitions):
            return topics, Cursor(topic_name=name, partition_index=start + len(chosen))
    return topics, None


def _unknown(name: str, error: ErrorCode, **facts: Any) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name, is_internal=is_internal(name), **facts)


def _described(
    call: ServerCall[DescribeTopicPartitionsRequest], topic: TopicImage, partitions: list[PartitionRegistration]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=tuple(_partition(call, each) for each in partitions),
        topic_authorized_operations=call.operations(ResourceType.TOPIC, topic.name),
    )


def _partition(
    call: ServerCall[DescribeTopicPartitionsRequest], state: PartitionRegistration
) -> DescribeTopicPartitionsResponsePartition:
    image = call.cluster.image
    led = state.leader != NO_LEADER and image.is_alive(state.leader)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=state.partition,
        leader_id=state.leader if led else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=state.eligible_leader_replicas,
        last_known_elr=state.last_known_elr,
        offline_replicas=tuple(each for each in state.replicas if not image.is_alive(each)),
    )


def _update_features(call: ServerCall[UpdateFeaturesRequest]) -> None:
    call.require_cluster(AclOperation.ALTER)
    updates = call.request.feature_updates
    try:
        latest = {each.feature: each for each in updates}.values()
        records = [record for update in latest for record in _feature(call, update)]
    except RequestRefusedError as error:
        message = f"The update failed for all features since the following feature had an error: {error.message}"
        raise RequestRefusedError(error.error, message) from None
    if not call.request.validate_only:
        call.cluster.commit(records)
    named = updates if call.version < _FIRST_WITHOUT_RESULTS else ()
    results = tuple(UpdatableFeatureResult(feature=each.feature, error_message=_NO_ERROR) for each in named)
    call.respond(UpdateFeaturesResponse(error_message=None, results=results))


def _feature(call: ServerCall[UpdateFeaturesRequest], update: FeatureUpdateKey) -> list[FeatureLevelRecord]:
    name, level = update.feature, update.max_version_level
    supported = SUPPORTED_FEATURES.get(name)
    present = call.cluster.image.features.get(name, 0)
    start = f"Invalid update version {level} for feature {name}."
    if update.upgrade_type not in list(UpgradeType):
        raise _bad_version(f"{start} The controller does not support the given upgrade type.")
    if level < 0:
        raise _bad_version(f"{start} A feature version cannot be less than 0.")
    if supported is None and not level:
        raise _bad_version(f"{start} Feature {name} not found.")
    if supported is None:
        raise _bad_version(f"{start} Local controller {call.cluster.controller_id} does not support this feature.")
    if level not in supported:
        reason = f"only supports versions {supported.lowest}-{supported.highest}"
        raise _bad_version(f"{start} Local controller {call.cluster.controller_id} {reason}")
    # The controller ignores ``allow_downgrade``, which version 0 has instead of an upgrade type.
    downgrades = update.upgrade_type != UpgradeType.UPGRADE
    if level < present:
        if not downgrades:
            raise _bad_version(
                f"{start} Can't downgrade the version of this feature without setting the upgrade type to either safe "
                "or unsafe downgrade."
            )
        if name == METADATA_VERSION:
            raise _bad_version(f"Unsupported metadata.version downgrade from {present} to {level}.")
    elif level > present and downgrades:
        raise _bad_version(f"{start} Can't downgrade to a newer version.")
    return [FeatureLevelRecord(name=name, feature_level=level)] if level != present else []


def _unregister_broker(call: ServerCall[UnregisterBrokerRequest]) -> None:
    call.require_cluster(AclOperation.ALTER)
    broker_id, image = call.request.broker_id, call.cluster.image
    if broker_id not in image.brokers:
        message = f"Broker ID {broker_id} is not currently registered"
        raise RequestRefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if image.is_alive(broker_id):
        call.cluster.kill_broker(broker_id)
    epoch = image.brokers[broker_id].epoch
    call.cluster.commit([UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)])
    call.respond(UnregisterBrokerResponse(error_message=None))


def _describe_quorum(call: ServerCall[DescribeQuorumRequest]) -> None:
    call.require_cluster(AclOperation.DESCRIBE)
    asked = [(topic.topic_name, each.partition_index) for topic in call.request.topics for each in topic.partitions]
    known = asked == [(METADATA_TOPIC, 0)] and len(call.request.topics) == 1
    topics = (
        quorum.TopicData(
            topic_name=topic.topic_name,
            partitions=tuple(_quorum(call, each.partition_index, known=known) for each in topic.partitions),
        )
        for topic in call.request.topics
    )
    call.respond(quorum.DescribeQuorumResponse(topics=tuple(topics)))


def _quorum(call: ServerCall[DescribeQuorumRequest], partition: int, *, known: bool) -> quorum.PartitionData:
    """Describe the metadata log: the controller is its only voter, and the brokers are observers."""
    cluster = call.cluster
    if not known:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return quorum.PartitionData(partition_index=partition, error_code=error, error_message=ERROR_TEXTS[error])
    end, now = cluster.image.offset, cluster.now

    def replica(node: int) -> quorum.ReplicaState:
        return quorum.ReplicaState(
            replica_id=node, log_end_offset=end, last_fetch_timestamp=now, last_caught_up_timestamp=now
        )

    return quorum.PartitionData(
        partition_index=0,
        leader_id=cluster.controller_id,
        leader_epoch=1,
        high_watermark=end,
        current_voters=(replica(cluster.controller_id),),
        observers=tuple(replica(each.id) for each in cluster.image.alive() if each.id != cluster.controller_id),
    )


HANDLERS: Final = (
    ApiHandler(DescribeClusterRequest, _describe_cluster),
    ApiHandler(DescribeTopicPartitionsRequest, _describe_topic_partitions),
    ApiHandler(UpdateFeaturesRequest, _update_features),
    ApiHandler(UnregisterBrokerRequest, _unregister_broker),
    ApiHandler(DescribeQuorumRequest, _describe_quorum),
)
