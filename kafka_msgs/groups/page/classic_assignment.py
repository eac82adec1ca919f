"""The assignment of a classic protocol member in a streams group, encoded for SyncGroup responses.

The classic protocol has no warm-up tasks: they are standby tasks there. Its clients report their progress only when
they join. So the coordinator periodically makes one member with warm-up tasks rejoin, in a probing rebalance, and its
join makes the other such members rejoin (``StreamsSoftState.probed``).
"""

from __future__ import annotations

from uuid import UUID

from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.page.user_data import NEVER, write_answer
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.heartbeat_response import all_endpoints, task_ids, task_partitions
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TasksTupleWithEpochs
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

__all__ = ["probing_members", "written_assignment"]


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
        active_tasks=task_ids(tasks.active),
        standby_tasks=task_ids(tasks.standby | tasks.warmup),
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
