"""User data of classic protocol members in a streams group: subscriptions and assignments as bytes.

KIP-1071 requires that the user data of Streams applications contains the coordinator's inputs, and does not specify its
layout. kafka-msgs defines this layout (``kafka_msgs.drafts.kip_1071_migration``): version 12 of a subscription's user
data has the heartbeat that the client would send, and the user data of an assignment has the response to it. Versions
of the release, up to 11, lack the topology; a member that sends one cannot be in a streams group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar
from uuid import UUID

from attrs import evolve

from kafka_msgs.codec import codec_for
from kafka_msgs.drafts.kip_1071_migration import AssignmentInfoData, SubscriptionInfoData
from kafka_msgs.errors import DecodeError, UnsupportedVersionError
from kafka_msgs.groups.consumer_protocol import decode_subscription, encode_assignment, read_assignment
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.heartbeat_response import all_endpoints, task_partitions
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TasksTupleWithEpochs, task_ids
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.message import Message
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse, TaskIds
from kafka_msgs.versioned import decode_versioned, encode_versioned

__all__ = [
    "NEVER",
    "probing_members",
    "read_answer",
    "read_heartbeat",
    "write_answer",
    "write_heartbeat",
    "written_assignment",
]

USER_DATA_VERSION: Final = 12
"""The first version of the user data that a streams group supports."""

NEVER: Final = 2**63 - 1
"""The time of the next rebalance of a member that does not have to rejoin."""

M = TypeVar("M", bound=Message)

_HEARTBEAT_VERSION: Final = 1
_VERSION_SIZE: Final = 4


def read_heartbeat(subscription: bytes) -> StreamsGroupHeartbeatRequest:
    """Return the heartbeat in a member's subscription, with the rack id of the subscription.

    Raises ``DecodeError``, including for user data of an old version.
    """
    read = decode_subscription(subscription)
    info = _read(SubscriptionInfoData, bytes(read.user_data or b""))
    request = _unwrapped(StreamsGroupHeartbeatRequest, info.heartbeat)
    return evolve(request, rack_id=read.rack_id) if read.rack_id else request


def write_heartbeat(request: StreamsGroupHeartbeatRequest) -> bytes:
    """Return the user data of a subscription with a heartbeat, as a client of the classic protocol sends it."""
    return SubscriptionInfoData(heartbeat=encode_versioned(request, _HEARTBEAT_VERSION)).encode(USER_DATA_VERSION)


def read_answer(assignment: bytes) -> tuple[StreamsGroupHeartbeatResponse, int]:
    """Return the response in an assignment, and the time of the next rebalance in ms. Raises ``DecodeError``."""
    info = _read(AssignmentInfoData, bytes(read_assignment(assignment).user_data or b""))
    return _unwrapped(StreamsGroupHeartbeatResponse, info.heartbeat), info.next_rebalance_ms


def write_answer(
    answer: StreamsGroupHeartbeatResponse,
    partitions: Mapping[UUID, Iterable[int]],
    image: TopicsImage,
    subscription: bytes,
    next_rebalance_ms: int = NEVER,
) -> bytes:
    """Return an assignment with a response, at the version of a member's ``subscription``.

    ``partitions`` are the partitions that the member reads, by topic id. Raises ``DecodeError`` if the subscription has
    no version.
    """
    info = AssignmentInfoData(
        next_rebalance_ms=next_rebalance_ms, heartbeat=encode_versioned(answer, _HEARTBEAT_VERSION)
    )
    return encode_assignment(partitions, image, subscription, info.encode(USER_DATA_VERSION))


def _read(cls: type[M], data: bytes) -> M:
    """Decode user data of version 12 or above. Additional fields of later versions are ignored."""
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    if len(data) < _VERSION_SIZE or version < USER_DATA_VERSION:
        reason = f"user data of version {USER_DATA_VERSION} or above is needed"
        raise DecodeError(message=cls.INFO.name, version=None, path="version", offset=0, reason=reason)
    message, _ = codec_for(cls, USER_DATA_VERSION).read(data)
    return message


def _unwrapped(cls: type[M], data: bytes) -> M:
    try:
        return decode_versioned(cls, data, newer="clamp").message
    except UnsupportedVersionError as error:
        raise DecodeError(message=cls.INFO.name, version=None, path="", offset=0, reason=str(error)) from error


def probing_members(group: StreamsGroup) -> list[str]:
    """Return the classic protocol members with warm-up tasks, in ascending order. The first one probes."""
    return sorted(each for each in group.classic_members if group.members[each].assigned.warmup)


def written_assignment(
    op: OperationContext, group: StreamsGroup, member: StreamsGroupMember, tasks: TasksTupleWithEpochs
) -> bytes:
    """Encode the assignment of a classic protocol member that has ``tasks``.

    Raises ``DecodeError`` if its subscription has no version.
    """
    classic = member.classic
    assert classic is not None
    config = op.group_config(group.group_id)
    answer = StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=config.streams_heartbeat_interval_ms,
        task_offset_interval_ms=config.streams_task_offset_interval_ms,
        acceptable_recovery_lag=config.streams_acceptable_recovery_lag,
        active_tasks=task_ids(TaskIds, tasks.active),
        standby_tasks=task_ids(TaskIds, tasks.standby | tasks.warmup),
        warmup_tasks=(),
        endpoint_information_epoch=group.soft.endpoint_epoch,
        partitions_by_user_endpoint=all_endpoints(op, group, member, None),
    )
    partitions: dict[UUID, set[int]] = {}
    for each in task_partitions(op, group, tasks.active):
        partitions.setdefault(op.image.topics[each.topic].id, set()).update(each.partitions)
    probes = probing_members(group)[:1] == [member.member_id]
    next_rebalance_ms = op.now + config.streams_task_offset_interval_ms if probes else NEVER
    ordered = {topic: sorted(numbers) for topic, numbers in partitions.items()}
    return write_answer(answer, ordered, op.image, classic.supported_protocols[0].metadata, next_rebalance_ms)
