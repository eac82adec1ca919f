"""Migration of live groups between the classic and the consumer protocol.

Upgrade: a member of the consumer protocol turns a classic group of consumers into a consumer group. The members of the
classic protocol stay, and the consumer group serves their protocol. Downgrade: when only such members remain, the group
becomes a classic group again. ``group.consumer.migration.policy`` allows each direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, GroupError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order, number_order, set_order, sorted_strings
from kafka_msgs.groups.assignors.spec import Partitions
from kafka_msgs.groups.classic.conversion import create_classic_group, detach_members
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.members import ClassicGroupMember
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import RECORDS, ConsumerGroupMember
from kafka_msgs.groups.consumer_protocol import decode_subscription, encode_assignment, read_assignment
from kafka_msgs.groups.member_timers import Fence, schedule_session
from kafka_msgs.groups.message_fields import with_fields_of
from kafka_msgs.groups.operation import OperationContext, ShardState
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import WITHOUT_UNDO
from kafka_msgs.groups.topics_image import TopicsImage, group_hash
from kafka_msgs.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kafka_msgs.messages.join_group_request import JoinGroupRequest

__all__ = [
    "accepts_classic_members",
    "classic_metadata",
    "downgrade",
    "may_downgrade",
    "may_downgrade_replacing",
    "upgrade",
]

_UPGRADES: Final = ("upgrade", "bidirectional")
_DOWNGRADES: Final = ("downgrade", "bidirectional")
_DISABLED: Final = "disabled"


def accepts_classic_members(op: OperationContext) -> bool:
    """Return whether members of the classic protocol may join a consumer group."""
    return _policy(op) != _DISABLED


def _policy(op: OperationContext) -> str:
    return op.config.group_consumer_migration_policy.lower()


def may_downgrade(op: OperationContext, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember]) -> bool:
    """Return whether a group is downgraded when members leave, because only classic protocol members remain."""
    classic = group.classic_members - sum(member.classic is not None for member in leaving)
    return _may_downgrade(op, len(group.members) - len(leaving), classic)


def may_downgrade_replacing(op: OperationContext, group: ConsumerGroup, replaced: ConsumerGroupMember | None) -> bool:
    """Return whether a group is downgraded when a static member rejoins with the classic protocol."""
    changes = replaced is not None and replaced.classic is None
    return changes and _may_downgrade(op, len(group.members), group.classic_members + 1)


def _may_downgrade(op: OperationContext, members: int, classic: int) -> bool:
    return 0 < members == classic and _policy(op) in _DOWNGRADES and members <= op.config.group_max_size


def downgrade(
    op: OperationContext,
    group: ConsumerGroup,
    members: Sequence[str],
    staying: Sequence[ConsumerGroupMember],
    *,
    rebalance: bool,
    written: Sequence[Record] = (),
) -> None:
    """Convert a consumer group into a classic group.

    ``members`` are the ids of its members, in the order of their tombstones, and ``staying`` the members of the classic
    group, in the order in which they join it. ``rebalance`` is set if they must rejoin. ``written`` are the records of
    the request so far.
    """
    generation, tombstones = group.epoch, list(group.tombstones(members))
    op.emit_all(written)
    targets = {member.member_id: group.targets.get(member.member_id, {}) for member in staying}
    op.detach_group(group.group_id, group.topics)
    op.emit_all(tombstones)
    try:
        create_classic_group(
            op,
            group.group_id,
            generation,
            staying,
            lambda member, metadata: encode_assignment(targets[member.member_id], op.image, metadata),
            rebalance=rebalance,
        )
    except DecodeError as error:
        message = f"Cannot downgrade the classic group {group.group_id}: {error}."
        raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, message) from error


def upgrade(op: OperationContext, group: ClassicGroup, fence: Fence) -> tuple[ConsumerGroup, list[Record]]:
    """Convert a classic group into a consumer group. Return the group before its records, and these records.

    Raises ``GroupError`` with GROUP_ID_NOT_FOUND if the conversion is not possible.
    """
    group_id, generation = group.group_id, group.live.generation
    _require_upgradable(op, group)
    detach_members(group)
    made, apart = ConsumerGroup(group_id), ShardState(op.state.new_simple_group)
    try:
        for each in group.live.members:
            made.put_member(apart, WITHOUT_UNDO, _consumer_member(each, group, op.image))
    except DecodeError as error:
        raise _cannot_upgrade(group_id, "because the embedded consumer protocol is malformed.") from error
    members = [made.members[member_id] for member_id in iter_kafka_order(made.members)]
    made.epoch = made.assignment_epoch = generation
    made.metadata_hash = group_hash(op.image, made.topics)
    group.emit_tombstones(op)
    for member in members:
        made.targets[member.member_id] = {topic: set_order(list(epochs)) for topic, epochs in member.assigned.items()}
        assert member.classic is not None
        schedule_session(op, made, member.member_id, member.classic.session_timeout_ms, fence)
    return made, [
        *(RECORDS.member(group_id, member) for member in members),
        RECORDS.epoch(group_id, generation, made.metadata_hash),
        *(RECORDS.target(group_id, member_id, target) for member_id, target in made.targets.items()),
        RECORDS.target_metadata(group_id, generation, 0),
        *(RECORDS.current(group_id, member) for member in members),
    ]


def _require_upgradable(op: OperationContext, group: ClassicGroup) -> None:
    if _policy(op) not in _UPGRADES:
        raise _cannot_upgrade(group.group_id, "because online upgrade is disabled.")
    if not group.uses_consumer_protocol:
        raise _cannot_upgrade(group.group_id, "because the group does not use the consumer embedded protocol.")
    if len(group.live.members) > op.config.group_consumer_max_size:
        raise _cannot_upgrade(group.group_id, "because the group size exceeds the consumer group maximum size.")


def _cannot_upgrade(group_id: str, reason: str) -> GroupError:
    message = f"Cannot upgrade classic group {group_id} to consumer group {reason}"
    return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def classic_metadata(source: JoinGroupRequest | ClassicGroupMember) -> ClassicMemberMetadata:
    """Return the part of a member's JoinGroup request that its record preserves."""
    protocols = tuple(with_fields_of(ClassicProtocol, protocol) for protocol in source.protocols)
    return ClassicMemberMetadata(session_timeout_ms=source.session_timeout_ms, supported_protocols=protocols)


def _consumer_member(member: ClassicGroupMember, group: ClassicGroup, image: TopicsImage) -> ConsumerGroupMember:
    epoch = group.live.generation
    assigned = _assigned(member, group.group_id, image)
    subscription = decode_subscription(member.metadata(group.live.protocol_name))
    return ConsumerGroupMember(
        member_id=member.member_id,
        metadata=ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted_strings(set(subscription.topics))),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=None,
            classic_member_metadata=classic_metadata(member),
        ),
        epoch=epoch,
        previous_epoch=epoch,
        assigned={topic: dict.fromkeys(each, epoch) for topic, each in assigned.items()},
    )


def _assigned(member: ClassicGroupMember, group_id: str, image: TopicsImage) -> Partitions:
    if not member.assignment:
        return {}
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _cannot_upgrade(
            group_id,
            "because an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
            "default assignor before re-attempting the upgrade.",
        )
    found = {
        image.topics[each.topic].id: number_order(list(dict.fromkeys(each.partitions)))
        for each in assignment.assigned_partitions
        if each.topic in image.topics
    }
    return {topic: found[topic] for topic in hash_map_order(found)}
