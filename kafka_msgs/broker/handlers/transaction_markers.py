"""WriteTxnMarkers: the markers that end transactions in a broker's partitions."""

from __future__ import annotations

from itertools import starmap
from typing import Any, Final

from kafka_msgs.broker.coordinators.leadership import find_log, leader_of
from kafka_msgs.broker.coordinators.transaction_service import write_marker
from kafka_msgs.broker.handlers.response_parts import group_by_key, outcome_of
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.transactions import TopicPartition
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RecordWriteError, RequestRefusedError
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch
from kafka_msgs.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from kafka_msgs.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

__all__ = ["HANDLERS"]


def _write_markers(call: ServerCall[WriteTxnMarkersRequest]) -> None:
    results = outcome_of(_written, call)
    if isinstance(results, RequestRefusedError):
        failed = ErrorCode(results.error)
        results = {each.producer_id: dict.fromkeys(_places(each), failed) for each in call.request.markers}
    call.respond(WriteTxnMarkersResponse(markers=tuple(starmap(_marked, results.items()))))


def _written(call: ServerCall[WriteTxnMarkersRequest]) -> dict[int, dict[TopicPartition, ErrorCode]]:
    """Write the markers and return the results by producer id. Raises ``RequestRefusedError``."""
    if not call.allows_cluster(AclOperation.ALTER):
        call.require_cluster(AclOperation.CLUSTER_ACTION)
    results: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in call.request.markers:
        for place in _places(marker):
            results.setdefault(marker.producer_id, {})[place] = _write(call, marker, place)
    return results


def _places(marker: WritableTxnMarker) -> dict[TopicPartition, None]:
    """Return the partitions of a marker, without duplicates, in order."""
    return dict.fromkeys(
        TopicPartition(topic.name, each) for topic in marker.topics for each in topic.partition_indexes
    )


def _marked(producer_id: int, errors: dict[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    """Return the results of a producer's markers. As in Kafka, a repeated partition is listed once."""
    topics = group_by_key(
        (place.topic, WritableTxnMarkerPartitionResult(partition_index=place.partition, error_code=error))
        for place, error in errors.items()
    )
    results = (WritableTxnMarkerTopicResult(name=name, partitions=parts) for name, parts in topics.items())
    return WritableTxnMarkerResult(producer_id=producer_id, topics=tuple(results))


def _write(call: ServerCall[Any], marker: WritableTxnMarker, place: TopicPartition) -> ErrorCode:
    cluster, node = call.cluster, call.session.broker_id
    log = find_log(cluster, *place)
    state = cluster.image.partition(log.topic_id, log.partition) if log is not None else None
    if log is None or state is None or node not in state.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if leader_of(cluster, *place) != node:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    try:
        return write_marker(
            cluster,
            place,
            log,
            node,
            ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch),
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
    except RecordWriteError:  # no log accepts this marker: as in Kafka, the whole request fails
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


HANDLERS: Final = (ApiHandler(WriteTxnMarkersRequest, _write_markers, exempt=True),)
