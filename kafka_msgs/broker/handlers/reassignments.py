"""Leader elections and reassignments: ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kafka_msgs.broker.controller.elections import elect_preferred, elect_unclean, replace_replicas
from kafka_msgs.broker.controller.image import PartitionRegistration
from kafka_msgs.broker.controller.topics import check_replicas
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ElectionType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kafka_msgs.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafka_msgs.messages.elect_leaders_request import ElectLeadersRequest
from kafka_msgs.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from kafka_msgs.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kafka_msgs.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse

__all__ = ["HANDLERS"]


def _elect_leaders(call: ServerCall[ElectLeadersRequest]) -> None:
    """Elect leaders immediately. If the request names no partitions, partitions that need no election are omitted."""
    call.require_cluster(AclOperation.ALTER)
    wanted = call.request.topic_partitions
    if call.request.election_type not in list(ElectionType) and wanted != ():
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, f"Unknown election type {call.request.election_type}")
    asked: list[tuple[str, Sequence[int]]]
    if wanted is None:
        asked = [(name, range(len(topic.partitions))) for name, topic in call.cluster.image.topics.items()]
    else:
        asked = [(each.topic, each.partitions) for each in wanted]
    results = (
        ReplicaElectionResult(
            topic=topic, partition_result=tuple(_elected(call, topic, partitions, all_of_them=wanted is None))
        )
        for topic, partitions in asked
    )
    call.respond(ElectLeadersResponse(replica_election_results=tuple(results)))


def _elected(
    call: ServerCall[ElectLeadersRequest], topic: str, partitions: Iterable[int], *, all_of_them: bool
) -> Iterator[PartitionResult]:
    elect = elect_unclean if call.request.election_type == ElectionType.UNCLEAN else elect_preferred
    for partition in partitions:
        try:
            call.cluster.commit([elect(call.cluster.image, _partition(call, topic, partition, _NOT_FOUND))])
        except RequestRefusedError as error:
            if not (all_of_them and error.error == ErrorCode.ELECTION_NOT_NEEDED):
                message = error.message or _TEXTS.get(ErrorCode(error.error))
                yield PartitionResult(partition_id=partition, error_code=error.error, error_message=message)
            continue
        yield PartitionResult(partition_id=partition, error_message=None)


_TEXTS: Final = {
    **ERROR_TEXTS,
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}


_NOT_FOUND: Final = "No such topic as {0}", "No such partition as {0}-{1}"
_NOT_FOUND_TO_MOVE: Final = "Unable to find a topic named {0}.", "Unable to find partition {0}:{1}."
"""Kafka's messages for unknown topics and partitions: in elections, then in reassignments."""


def _partition(call: ServerCall[Any], topic: str, partition: int, texts: tuple[str, str]) -> PartitionRegistration:
    found = call.cluster.image.topics.get(topic)
    if found is None or partition not in range(len(found.partitions)):
        message = texts[found is not None].format(topic, partition)
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return found.partitions[partition]


def _alter_reassignments(call: ServerCall[AlterPartitionReassignmentsRequest]) -> None:
    """Reassign replicas immediately: no data is copied, so no reassignment is ever in progress."""
    call.require_cluster(AclOperation.ALTER)
    if not call.request.topics:
        call.respond(AlterPartitionReassignmentsResponse())
        return
    topics = (
        ReassignableTopicResponse(
            name=topic.name, partitions=tuple(_reassigned(call, topic.name, each) for each in topic.partitions)
        )
        for topic in call.request.topics
    )
    call.respond(
        AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=call.request.allow_replication_factor_change,
            error_message=None,
            responses=tuple(topics),
        )
    )


def _reassigned(
    call: ServerCall[AlterPartitionReassignmentsRequest], topic: str, wanted: ReassignablePartition
) -> ReassignablePartitionResponse:
    index = wanted.partition_index
    try:
        state = _partition(call, topic, index, _NOT_FOUND_TO_MOVE)
        if wanted.replicas is None:
            raise RequestRefusedError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        replicas = check_replicas(call.cluster.image, wanted.replicas, None)
        if not call.request.allow_replication_factor_change and len(replicas) != len(state.replicas):
            message = f"The replication factor is changed from {len(state.replicas)} to {len(replicas)}"
            raise RequestRefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    except RequestRefusedError as error:
        return ReassignablePartitionResponse(partition_index=index, error_code=error.error, error_message=error.message)
    if replicas != state.replicas:
        call.cluster.commit([replace_replicas(call.cluster.image, state, replicas)])
    return ReassignablePartitionResponse(partition_index=index, error_message=None)


def _list_reassignments(call: ServerCall[ListPartitionReassignmentsRequest]) -> None:
    call.require_cluster(AclOperation.DESCRIBE)
    call.respond(ListPartitionReassignmentsResponse(error_message=None))


HANDLERS: Final = (
    ApiHandler(ElectLeadersRequest, _elect_leaders),
    ApiHandler(AlterPartitionReassignmentsRequest, _alter_reassignments),
    ApiHandler(ListPartitionReassignmentsRequest, _list_reassignments),
)
