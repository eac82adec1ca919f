"""Group descriptions like a coordinator's, built from the records of the group.

This module interprets the records of all four kinds of groups, and derives the group state. A coordinator has further
facts that it does not record, such as joining members and restored tasks. The descriptions do not contain these.
``replay`` collects the records of a group. ``consumer_protocol`` decodes the bytes inside classic members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from attrs import frozen

from kafka_msgs.internal_topics.consumer_protocol import ConsumerMember, decode_member
from kafka_msgs.internal_topics.replay import GroupKind, ReplayedGroup
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_group_current_member_assignment_value import ConsumerGroupCurrentMemberAssignmentValue
from kafka_msgs.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kafka_msgs.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kafka_msgs.messages.consumer_group_target_assignment_member_value import ConsumerGroupTargetAssignmentMemberValue
from kafka_msgs.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_msgs.messages.share_group_current_member_assignment_value import ShareGroupCurrentMemberAssignmentValue
from kafka_msgs.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kafka_msgs.messages.share_group_metadata_value import ShareGroupMetadataValue
from kafka_msgs.messages.share_group_target_assignment_member_value import ShareGroupTargetAssignmentMemberValue
from kafka_msgs.messages.share_group_target_assignment_metadata_value import ShareGroupTargetAssignmentMetadataValue
from kafka_msgs.messages.streams_group_current_member_assignment_value import StreamsGroupCurrentMemberAssignmentValue
from kafka_msgs.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from kafka_msgs.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from kafka_msgs.messages.streams_group_target_assignment_member_value import StreamsGroupTargetAssignmentMemberValue
from kafka_msgs.messages.streams_group_target_assignment_metadata_value import StreamsGroupTargetAssignmentMetadataValue
from kafka_msgs.messages.streams_group_topology_value import StreamsGroupTopologyValue

__all__ = ["AssignedItem", "GroupDescription", "MemberDescription", "describe_group"]

Status: TypeAlias = Literal["current", "target", "revoking"]
Role: TypeAlias = Literal["partition", "active", "standby", "warmup"]


@frozen(kw_only=True)
class AssignedItem:
    """A partition, or a task of a streams group, that a member owns, will own, or must revoke.

    ``role`` is ``"partition"``, except for tasks. A partition has a ``topic`` in a classic group and a ``topic_id`` in
    the other groups. A task has a ``subtopology_id``. Each has its number.
    """

    status: Status
    role: Role
    topic: str | None = None
    topic_id: UUID | None = None
    subtopology_id: str | None = None
    partition: int


@frozen(kw_only=True)
class MemberDescription:
    """A member of a group. A field that its kind of group does not have is None.

    ``state`` is the progress of the member towards its target assignment. ``problem`` reports faults in the
    subscription and assignment of a classic member. Readable parts are present: as in Kafka's own tool, a malformed
    subscription does not hide the assignment.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    epoch: int | None = None
    previous_epoch: int | None = None
    state: str | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    process_id: str | None = None
    topology_epoch: int | None = None
    assigned: tuple[AssignedItem, ...] = ()
    problem: str | None = None


@frozen(kw_only=True)
class GroupDescription:
    """A group as its coordinator describes it.

    ``state`` is the broker's name of the state: ``Empty``, ``Stable`` and, for groups with epochs, ``Assigning``,
    ``Reconciling`` and ``NotReady``. For a classic group ``epoch`` is the generation, and ``protocol`` is the protocol
    that its members chose. A field that the kind of group does not have is None.
    """

    group_id: str
    kind: GroupKind
    state: str
    epoch: int | None = None
    assignment_epoch: int | None = None
    protocol_type: str
    protocol: str | None = None
    leader: str | None = None
    topology: StreamsGroupTopologyValue | None = None
    members: tuple[MemberDescription, ...] = ()


def describe_group(group: ReplayedGroup) -> GroupDescription:
    """Return the description of a group, as its coordinator would return it.

    As in the coordinator, a group that has only offsets is an empty classic group.
    """
    values = _ValuesByClass(group)
    if group.kind is None or group.kind == "classic":
        return _classic(group.group_id, values.one(GroupMetadataValue) or GroupMetadataValue())
    return _modern(group.group_id, group.kind, values)


class _ValuesByClass:
    """The values of a group's records by their class."""

    def __init__(self, group: ReplayedGroup) -> None:
        self._values: dict[type[Message], dict[str | None, Any]] = {}
        for record in group.records:
            if record.value is not None:
                by_member = self._values.setdefault(type(record.value), {})
                by_member[getattr(record.key, "member_id", None)] = record.value

    def one(self, cls: type[Message]) -> Any:
        """The only value of a class in the group, or None."""
        return self.by_member(cls).get(None)

    def by_member(self, cls: type[Message]) -> Mapping[str | None, Any]:
        """The values that the group has for each member."""
        return self._values.get(cls, {})


def _classic(group_id: str, value: GroupMetadataValue) -> GroupDescription:
    members = tuple(_classic_member(value, member) for member in value.members)
    return GroupDescription(
        group_id=group_id,
        kind="classic",
        state="Stable" if members else "Empty",
        epoch=value.generation,
        protocol_type=value.protocol_type,
        protocol=value.protocol,
        leader=value.leader,
        members=members,
    )


def _classic_member(group: GroupMetadataValue, member: MemberMetadata) -> MemberDescription:
    opened = decode_member(member) if group.protocol_type == "consumer" else ConsumerMember(metadata=member)
    subscription = opened.subscription.message
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        epoch=group.generation,
        subscribed_topics=subscription.topics if subscription else None,
        assigned=tuple(_classic_assigned(opened.assignment.message)),
        problem="; ".join(map(str, opened.faults)) or None,
    )


def _classic_assigned(assignment: ConsumerProtocolAssignment | None) -> Iterator[AssignedItem]:
    for topic in assignment.assigned_partitions if assignment else ():
        for number in topic.partitions:
            yield AssignedItem(status="current", role="partition", topic=topic.topic, partition=number)


_AssignmentField: TypeAlias = tuple[Status, Role, str]
"""The role of the assigned items, and the name of the field that lists them."""


@frozen(kw_only=True)
class _Kind:
    """The messages of a kind of group, and the fields that list assigned items."""

    group: type[Message]
    target: type[Message]
    member: type[Message]
    current: type[Message]
    member_target: type[Message]
    member_states: Mapping[int, str]
    fields: tuple[_AssignmentField, ...]
    target_fields: tuple[_AssignmentField, ...]


_MEMBER_STATES: Final = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}

_MODERN: Final[Mapping[GroupKind, _Kind]] = {
    "consumer": _Kind(
        group=ConsumerGroupMetadataValue,
        target=ConsumerGroupTargetAssignmentMetadataValue,
        member=ConsumerGroupMemberMetadataValue,
        current=ConsumerGroupCurrentMemberAssignmentValue,
        member_target=ConsumerGroupTargetAssignmentMemberValue,
        member_states=_MEMBER_STATES,
        fields=(
            ("current", "partition", "assigned_partitions"),
            ("revoking", "partition", "partitions_pending_revocation"),
        ),
        target_fields=(("target", "partition", "topic_partitions"),),
    ),
    "share": _Kind(
        group=ShareGroupMetadataValue,
        target=ShareGroupTargetAssignmentMetadataValue,
        member=ShareGroupMemberMetadataValue,
        current=ShareGroupCurrentMemberAssignmentValue,
        member_target=ShareGroupTargetAssignmentMemberValue,
        member_states=_MEMBER_STATES,
        fields=(("current", "partition", "assigned_partitions"),),
        target_fields=(("target", "partition", "topic_partitions"),),
    ),
    "streams": _Kind(
        group=StreamsGroupMetadataValue,
        target=StreamsGroupTargetAssignmentMetadataValue,
        member=StreamsGroupMemberMetadataValue,
        current=StreamsGroupCurrentMemberAssignmentValue,
        member_target=StreamsGroupTargetAssignmentMemberValue,
        member_states={1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"},
        fields=(
            ("current", "active", "active_tasks"),
            ("current", "standby", "standby_tasks"),
            ("current", "warmup", "warmup_tasks"),
            ("revoking", "active", "active_tasks_pending_revocation"),
            ("revoking", "standby", "standby_tasks_pending_revocation"),
            ("revoking", "warmup", "warmup_tasks_pending_revocation"),
        ),
        target_fields=(
            ("target", "active", "active_tasks"),
            ("target", "standby", "standby_tasks"),
            ("target", "warmup", "warmup_tasks"),
        ),
    ),
}


def _modern(group_id: str, name: GroupKind, values: _ValuesByClass) -> GroupDescription:
    kind = _MODERN[name]
    group, target = values.one(kind.group), values.one(kind.target)
    assignment_epoch = target.assignment_epoch if target else 0
    members = tuple(_member(kind, str(member_id), values) for member_id in values.by_member(kind.member))
    topology = values.one(StreamsGroupTopologyValue)
    ready = name != "streams" or (topology is not None and topology.epoch == group.validated_topology_epoch)
    if not members:
        state = "Empty"
    elif name == "share":
        state = "Stable"
    else:
        state = _state(group.epoch, assignment_epoch, members) if ready else "NotReady"
    return GroupDescription(
        group_id=group_id,
        kind=name,
        state=state,
        epoch=group.epoch,
        assignment_epoch=assignment_epoch,
        protocol_type=name,
        topology=topology,
        members=members,
    )


def _state(epoch: int, assignment_epoch: int, members: Iterable[MemberDescription]) -> str:
    if epoch > assignment_epoch:
        return "Assigning"
    reconciled = all(member.state == "STABLE" and member.epoch == assignment_epoch for member in members)
    return "Stable" if reconciled else "Reconciling"


def _member(kind: _Kind, member_id: str, values: _ValuesByClass) -> MemberDescription:
    """Return a member. Without an assignment record, it is new: it has epoch 0 and no partitions to revoke."""
    metadata = values.by_member(kind.member)[member_id]
    current = values.by_member(kind.current).get(member_id)
    target = values.by_member(kind.member_target).get(member_id)
    return MemberDescription(
        member_id=member_id,
        instance_id=getattr(metadata, "instance_id", None),
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        epoch=current.member_epoch if current else 0,
        previous_epoch=current.previous_member_epoch if current else None,
        state=kind.member_states.get(current.state, "UNKNOWN") if current else "STABLE",
        subscribed_topics=getattr(metadata, "subscribed_topic_names", None),
        subscribed_regex=getattr(metadata, "subscribed_topic_regex", None),
        process_id=getattr(metadata, "process_id", None),
        topology_epoch=getattr(metadata, "topology_epoch", None),
        assigned=(*_assigned(current, kind.fields), *_assigned(target, kind.target_fields)),
    )


def _assigned(value: Any, fields: Iterable[_AssignmentField]) -> Iterator[AssignedItem]:
    for status, role, attribute in fields if value else ():
        for each in getattr(value, attribute):
            for number in each.partitions:
                yield AssignedItem(
                    status=status,
                    role=role,
                    topic_id=getattr(each, "topic_id", None),
                    subtopology_id=getattr(each, "subtopology_id", None),
                    partition=number,
                )
