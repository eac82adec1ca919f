"""Share group acknowledgements: ShareAcknowledge, and the acknowledgements in ShareFetch (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from attrs import define, field

from kafka_msgs.broker.controller.image import NO_LEADER
from kafka_msgs.broker.coordinators.share_partition_manager import SharePartitionManager
from kafka_msgs.broker.handlers.groups import check_share_member
from kafka_msgs.broker.handlers.partition_access import endpoints
from kafka_msgs.broker.handlers.response_parts import group_by_key, outcome_of
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.share import FINAL_EPOCH, INITIAL_EPOCH, AcknowledgementBatch, MemberKey, TopicIdPartition
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kafka_msgs.messages.share_acknowledge_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

__all__ = [
    "HANDLERS",
    "MOVED",
    "AcknowledgeResult",
    "Acknowledgements",
    "attach",
    "check_partition",
    "host_of",
    "leader_endpoints",
    "leader_of",
    "member_of",
]

attach = SharePartitionManager.attach

_RENEW: Final = 4
_RENEW_SINCE: Final = 2
"""The first version that can renew locks (KIP-1222)."""

MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors for which a response includes the current leader of the partition."""


class AcknowledgeResult(NamedTuple):
    """The result of a partition's acknowledgements."""

    error: int = ErrorCode.NONE
    message: str | None = None


def host_of(call: ServerCall[Any]) -> SharePartitionManager:
    """Return the share partitions of the receiving broker."""
    return SharePartitionManager.on(call.cluster, call.session.broker_id)


def member_of(call: ServerCall[Any]) -> MemberKey:
    """Return the requesting member.

    Raises ``RequestRefusedError`` with INVALID_REQUEST or GROUP_AUTHORIZATION_FAILED.
    """
    group_id, member_id = call.request.group_id, call.request.member_id
    if group_id is None:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
    call.require_group(group_id)
    check_share_member(member_id)
    return MemberKey(group_id, member_id)


def check_partition(call: ServerCall[Any], place: TopicIdPartition) -> None:
    """Raise ``RequestRefusedError`` for a partition that does not exist or that the client may not read.

    The errors are UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED and UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = call.cluster.image.topics_by_id.get(place[0])
    if topic is None:
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_ID)
    call.require(AclOperation.READ, ResourceType.TOPIC, topic.name)
    if not 0 <= place[1] < len(topic.partitions):
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@define(eq=False)
class Acknowledgements:
    """The acknowledgements of a request: the results by partition, and the changes to apply for the valid ones.

    ``silent`` lists partitions that the request names without acknowledgements.
    """

    outcomes: dict[TopicIdPartition, AcknowledgeResult] = field(factory=dict)
    begun: dict[TopicIdPartition, Callable[[], None]] = field(factory=dict)
    silent: list[TopicIdPartition] = field(factory=list)

    @classmethod
    def begin(cls, call: ServerCall[Any], member: MemberKey) -> Acknowledgements:
        """Check all acknowledgements of a request."""
        made = cls()
        for topic in call.request.topics:
            for partition in topic.partitions:
                place = topic.topic_id, partition.partition_index
                said = tuple(
                    AcknowledgementBatch(each.first_offset, each.last_offset, each.acknowledge_types)
                    for each in partition.acknowledgement_batches
                )
                try:
                    made._begin(call, member, place, said)
                except RequestRefusedError as error:
                    made.outcomes[place] = AcknowledgeResult(error.error, error.message)
        return made

    def _begin(
        self, call: ServerCall[Any], member: MemberKey, place: TopicIdPartition, said: Sequence[AcknowledgementBatch]
    ) -> None:
        renews = call.version >= _RENEW_SINCE
        if place[0] in call.cluster.image.topics_by_id:
            _check(said, renews=renews, only_renews=renews and call.request.is_renew_ack)
        check_partition(call, place)
        if said:
            self.begun[place] = host_of(call).begin(member, place, said)
        else:
            self.silent.append(place)

    def finish(self) -> Mapping[TopicIdPartition, AcknowledgeResult]:
        """Apply the acknowledgements, and return all results.

        As in Kafka, the response includes partitions without acknowledgements only if other partitions have some.
        """
        spoken = bool(self.begun)
        for place, finish in self.begun.items():
            refused = outcome_of(finish)
            self.outcomes[place] = AcknowledgeResult(refused.error, refused.message) if refused else AcknowledgeResult()
        return {**self.outcomes, **dict.fromkeys(self.silent, AcknowledgeResult())} if spoken else self.outcomes


def _check(batches: Iterable[AcknowledgementBatch], *, renews: bool, only_renews: bool) -> None:
    """Raise ``RequestRefusedError`` with INVALID_REQUEST for malformed acknowledgements."""
    previous = -1
    most = _RENEW if renews else _RENEW - 1
    for first, last, types in batches:
        count = len(types)
        wrong_count = count > 1 and last - first != count - 1
        if not previous <= first <= last or not count or wrong_count or min(types) < 0 or max(types) > most:
            raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
        if _RENEW in types and not only_renews:
            raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
        previous = last


def leader_of(call: ServerCall[Any], place: TopicIdPartition) -> dict[str, Any]:
    """Return the current leader of a partition, as the fields of a ``LeaderIdAndEpoch``."""
    state = call.cluster.image.partition(*place)
    if state is None:
        return {"leader_id": NO_LEADER, "leader_epoch": -1}
    return {"leader_id": state.leader, "leader_epoch": state.leader_epoch}


def leader_endpoints(call: ServerCall[Any], moved: Iterable[TopicIdPartition]) -> Iterable[dict[str, Any]]:
    """Yield the addresses of the current leaders of partitions, as the fields of a ``NodeEndpoint``."""
    return endpoints(call, (leader_of(call, place)["leader_id"] for place in moved))


def _acknowledge(call: ServerCall[ShareAcknowledgeRequest]) -> None:
    member = member_of(call)
    host, epoch = host_of(call), call.request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise RequestRefusedError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = host.sessions.get(member)
    if epoch != FINAL_EPOCH:
        session.advance(epoch)
    outcomes = Acknowledgements.begin(call, member).finish()
    if epoch == FINAL_EPOCH:
        host.end_session(member)
    call.respond(_response(call, outcomes))


def _response(
    call: ServerCall[ShareAcknowledgeRequest], outcomes: Mapping[TopicIdPartition, AcknowledgeResult]
) -> ShareAcknowledgeResponse:
    parts = group_by_key((place[0], _part(call, place, outcome)) for place, outcome in outcomes.items())
    moved = [place for place, outcome in outcomes.items() if outcome.error in MOVED]
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=host_of(call).config(call.request.group_id or "").share_record_lock_duration_ms,
        responses=tuple(
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in parts.items()
        ),
        node_endpoints=tuple(NodeEndpoint(**each) for each in leader_endpoints(call, moved)),
    )


def _part(
    call: ServerCall[ShareAcknowledgeRequest], place: TopicIdPartition, outcome: AcknowledgeResult
) -> PartitionData:
    leader = LeaderIdAndEpoch(**leader_of(call, place)) if outcome.error in MOVED else LeaderIdAndEpoch()
    return PartitionData(
        partition_index=place[1],
        error_code=outcome.error,
        error_message=outcome.message,
        current_leader=leader,
    )


HANDLERS: Final = (ApiHandler(ShareAcknowledgeRequest, _acknowledge),)
