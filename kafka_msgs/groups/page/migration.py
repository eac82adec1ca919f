"""Migration of live groups between the classic and the streams protocol (KIP-1071, ``page`` profile).

Upgrade: a member of the streams protocol turns a classic group of Streams applications into a streams group. The
members of the classic protocol stay, and the streams group serves their protocol. Downgrade: when only such members
remain, the group becomes a classic group again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from kafka_msgs.drafts.kip_1071_migration import StreamsGroupClassicMember
from kafka_msgs.drafts.kip_1071_migration.streams_group_classic_member import ClassicProtocol
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, GroupError
from kafka_msgs.groups.classic.conversion import create_classic_group, detach_members
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.members import ClassicGroupMember
from kafka_msgs.groups.member_timers import Fence, schedule_session, stop_member_timers
from kafka_msgs.groups.modern_group import JOIN_EPOCH
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.page.user_data import read_answer, read_heartbeat, written_assignment
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import NEW_METADATA, StreamsGroupMember, with_classic_member
from kafka_msgs.groups.streams.membership import reported
from kafka_msgs.groups.streams.records import RECORDS, topology_record
from kafka_msgs.groups.streams.soft_state import TaskOffsets, updated_offsets
from kafka_msgs.groups.streams.tasks import TasksTuple, TasksTupleWithEpochs, task_set
from kafka_msgs.groups.streams.topology import StreamsTopology, canonical, topology_value
from kafka_msgs.groups.streams.validation import check_translated
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest

__all__ = ["classic_metadata", "downgrade", "may_downgrade", "upgrade"]


def classic_metadata(request: JoinGroupRequest | ClassicGroupMember) -> StreamsGroupClassicMember:
    """Return the part of a member's JoinGroup request that its record preserves."""
    return StreamsGroupClassicMember(
        session_timeout_ms=request.session_timeout_ms,
        supported_protocols=tuple(
            ClassicProtocol(name=each.name, metadata=bytes(each.metadata)) for each in request.protocols
        ),
    )


# Upgrade.


def upgrade(op: OperationContext, group: ClassicGroup, fence: Fence) -> StreamsGroup:
    """Convert a classic group into a streams group. Raises ``GroupError`` with GROUP_ID_NOT_FOUND if that fails.

    The generation becomes the group epoch. The latest topology of the members becomes the group's topology. The group
    may have no members: while its first members are about to join, Kafka does not consider it empty.
    """
    group_id, epoch = group.group_id, group.live.generation
    classic = list(group.live.members)
    heartbeats = _heartbeats(op, group, classic)
    topology = _newest_topology(group_id, heartbeats)
    members = _with_tasks(epoch, classic, heartbeats)
    detach_members(group)
    group.emit_tombstones(op)
    op.emit_all(RECORDS.member(group_id, member) for member in members)
    op.emit(*StreamsGroup(group_id).metadata_record(epoch=epoch))
    if topology is not None:
        op.emit(*topology_record(group_id, topology.value))
    op.emit_all(RECORDS.target(group_id, member.member_id, member.assigned.without_epochs()) for member in members)
    op.emit(*RECORDS.target_metadata(group_id, epoch, 0))
    op.emit_all(RECORDS.current(group_id, member) for member in members)
    made = op.state.groups[group_id]
    assert isinstance(made, StreamsGroup)
    for member, heartbeat in zip(members, heartbeats, strict=True):
        assert member.classic is not None
        made.soft.offsets[member.member_id] = updated_offsets(TaskOffsets(), heartbeat)
        schedule_session(op, made, member.member_id, member.classic.session_timeout_ms, fence)
    return made


def _heartbeats(
    op: OperationContext, group: ClassicGroup, classic: Sequence[ClassicGroupMember]
) -> Sequence[StreamsGroupHeartbeatRequest]:
    """Return the heartbeats in the user data of all members."""
    if classic and not group.uses_consumer_protocol:
        raise _cannot_upgrade(group.group_id, "because it does not use the consumer embedded protocol")
    if len(classic) >= op.config.group_streams_max_size:
        raise _cannot_upgrade(group.group_id, "because it has as many members as a streams group may have")
    try:
        heartbeats = [read_heartbeat(bytes(member.protocols[0].metadata)) for member in classic]
        for heartbeat in heartbeats:
            check_translated(op.profile.streams, heartbeat)
    except (DecodeError, GroupError) as error:
        reason = f"because a member does not send what an assignment needs: {error}"
        raise _cannot_upgrade(group.group_id, reason) from error
    return heartbeats


def _newest_topology(group_id: str, heartbeats: Iterable[StreamsGroupHeartbeatRequest]) -> StreamsTopology | None:
    newest: StreamsTopology | None = None
    for heartbeat in heartbeats:
        assert heartbeat.topology is not None
        topology = StreamsTopology(topology_value(heartbeat.topology))
        if newest is None or topology.epoch > newest.epoch:
            newest = topology
        elif topology.epoch == newest.epoch and canonical(topology) != canonical(newest):
            raise _cannot_upgrade(group_id, "because its members have different topologies")
    return newest


def _cannot_upgrade(group_id: str, reason: str) -> GroupError:
    message = f"Cannot upgrade classic group {group_id} to streams group {reason}."
    return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _with_tasks(
    epoch: int, classic: Sequence[ClassicGroupMember], heartbeats: Sequence[StreamsGroupHeartbeatRequest]
) -> Sequence[StreamsGroupMember]:
    """Return the members with their tasks: their assignment, and the tasks that they had when they joined.

    The latter may be more, because a member revokes tasks when it receives its assignment. A task that several members
    claim belongs to the member that it is assigned to.
    """
    assigned = [_assigned(member) for member in classic]
    taken = {task for tasks in assigned for task in tasks.active}
    members = []
    for member, heartbeat, tasks in zip(classic, heartbeats, assigned, strict=True):
        owned = task_set(heartbeat.active_tasks or ()) - taken
        taken |= owned
        active = dict.fromkeys(tasks.active | owned, epoch)
        standby = (tasks.standby | task_set(heartbeat.standby_tasks or ())) - active.keys()
        members.append(_streams_member(member, heartbeat, epoch, TasksTupleWithEpochs(active, standby)))
    return members


def _assigned(member: ClassicGroupMember) -> TasksTuple:
    """Return the tasks that the leader assigned to a member, or no tasks if the assignment cannot be decoded."""
    try:
        answer, _ = read_answer(member.assignment)
    except DecodeError:
        return TasksTuple()
    return TasksTuple(task_set(answer.active_tasks or ()), task_set(answer.standby_tasks or ()))


def _streams_member(
    member: ClassicGroupMember, heartbeat: StreamsGroupHeartbeatRequest, epoch: int, assigned: TasksTupleWithEpochs
) -> StreamsGroupMember:
    context = RequestContext(version=0, client_id=member.client_id, client_host=member.client_host)
    joining = evolve(
        heartbeat,
        member_epoch=JOIN_EPOCH,
        instance_id=member.instance_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
    )
    metadata = with_classic_member(reported(NEW_METADATA, context, joining), classic_metadata(member))
    return StreamsGroupMember(
        member_id=member.member_id, metadata=metadata, epoch=epoch, previous_epoch=epoch, assigned=assigned
    )


# Downgrade.


def may_downgrade(op: OperationContext, group: StreamsGroup, leaving: Sequence[StreamsGroupMember] = ()) -> bool:
    """Return whether a group is downgraded when members leave, because only classic protocol members remain."""
    left = len(group.members) - len(leaving)
    classic = len(group.classic_members) - sum(member.classic is not None for member in leaving)
    return 0 < left == classic and left <= op.config.group_max_size


def downgrade(op: OperationContext, group: StreamsGroup, leaving: Sequence[StreamsGroupMember] = ()) -> None:
    """Convert a streams group into a classic group of the remaining members, which must rejoin."""
    group_id, epoch = group.group_id, group.epoch
    members = iter_kafka_order(group.members)
    gone = {member.member_id for member in leaving}
    staying = [group.members[member_id] for member_id in members if member_id not in gone]
    assignments = {each.member_id: written_assignment(op, group, each, each.holding) for each in staying}
    group.emit_tombstones(op)
    group.cancel_timers(op)
    for member_id in members:
        stop_member_timers(op, group_id, member_id)
    create_classic_group(op, group_id, epoch, staying, lambda member, _: assignments[member.member_id], rebalance=True)
