"""Values for listed and described groups, and their conversion from responses.

Classic, consumer and share groups share one description, because they have the same content: members with topic
partitions. Members of streams groups have tasks: ``streams_groups`` defines their description.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from attrs import frozen

from kafka_msgs.admin.streams_groups import StreamsGroupDescription
from kafka_msgs.client.cluster_metadata import Broker, TopicPartition
from kafka_msgs.enums import AclOperation, GroupState, GroupType, decode_authorized_operations
from kafka_msgs.internal_topics.consumer_protocol import EmbeddedMessage, decode_embedded
from kafka_msgs.messages import consumer_group_describe_response as consumer
from kafka_msgs.messages import describe_groups_response as classic
from kafka_msgs.messages import share_group_describe_response as share
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.list_groups_response import ListedGroup

__all__ = [
    "AnyGroupDescription",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "describe_from_classic_group",
    "describe_from_consumer_group",
    "describe_from_share_group",
    "listing_from_response",
]

_CONSUMERS: Final = "consumer"
"""The protocol type of consumer groups. Kafka Connect and other applications have their own."""


@frozen
class GroupListing:
    """A group as listed by its coordinator.

    Brokers before Kafka 2.6 do not return the state. Brokers before Kafka 3.8 do not return the type.
    """

    group_id: str
    type: GroupType
    state: GroupState
    protocol_type: str


@frozen(kw_only=True)
class GroupMember:
    """A member of a classic, consumer or share group.

    ``epoch`` and ``target_assignment`` are None in classic groups. ``classic`` is whether the member uses the classic
    protocol, or None if the broker does not report it. ``problem`` is the fault in the bytes that a classic member
    sent.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    epoch: int | None = None
    subscribed_topics: tuple[str, ...] = ()
    subscribed_regex: str | None = None
    assignment: tuple[TopicPartition, ...] = ()
    target_assignment: tuple[TopicPartition, ...] | None = None
    classic: bool | None = None
    problem: str | None = None


@frozen(kw_only=True)
class GroupDescription:
    """A classic, consumer or share group.

    ``assignor`` is the name of the partition assignor, or of the protocol that the members of a classic group agreed
    on. The epochs are None in classic groups. ``coordinator`` is None if its address is unknown.
    ``authorized_operations`` is None if the request did not ask for them.
    """

    group_id: str
    type: GroupType
    state: GroupState
    protocol_type: str = _CONSUMERS
    assignor: str
    epoch: int | None = None
    assignment_epoch: int | None = None
    members: tuple[GroupMember, ...]
    coordinator: Broker | None
    authorized_operations: frozenset[AclOperation] | None = None


AnyGroupDescription: TypeAlias = GroupDescription | StreamsGroupDescription
"""The description of a group of any type."""


def listing_from_response(group: ListedGroup) -> GroupListing:
    """Return a listed group."""
    return GroupListing(
        group_id=group.group_id,
        type=GroupType.parse(group.group_type),
        state=GroupState.parse(group.group_state),
        protocol_type=group.protocol_type,
    )


def describe_from_consumer_group(group: consumer.DescribedGroup, coordinator: Broker | None) -> GroupDescription:
    """Return the description of a group of the consumer protocol (KIP-848)."""
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CONSUMER,
        state=GroupState.parse(group.group_state),
        assignor=group.assignor_name,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(
            GroupMember(
                member_id=each.member_id,
                instance_id=each.instance_id,
                rack_id=each.rack_id,
                client_id=each.client_id,
                client_host=each.client_host,
                epoch=each.member_epoch,
                subscribed_topics=each.subscribed_topic_names,
                subscribed_regex=each.subscribed_topic_regex,
                assignment=_partitions(each.assignment.topic_partitions),
                target_assignment=_partitions(each.target_assignment.topic_partitions),
                classic=_MEMBER_IS_CLASSIC.get(each.member_type),
            )
            for each in group.members
        ),
        coordinator=coordinator,
        authorized_operations=decode_authorized_operations(group.authorized_operations),
    )


_MEMBER_IS_CLASSIC: Final = {0: True, 1: False}


def describe_from_share_group(group: share.DescribedGroup, coordinator: Broker | None) -> GroupDescription:
    """Return the description of a share group."""
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.SHARE,
        state=GroupState.parse(group.group_state),
        protocol_type="share",
        assignor=group.assignor_name,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(
            GroupMember(
                member_id=each.member_id,
                rack_id=each.rack_id,
                client_id=each.client_id,
                client_host=each.client_host,
                epoch=each.member_epoch,
                subscribed_topics=each.subscribed_topic_names,
                assignment=_partitions(each.assignment.topic_partitions),
            )
            for each in group.members
        ),
        coordinator=coordinator,
        authorized_operations=decode_authorized_operations(group.authorized_operations),
    )


def _partitions(
    topics: Iterable[consumer.TopicPartitions] | Iterable[share.TopicPartitions],
) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.topic_name, each) for topic in topics for each in topic.partitions)


def describe_from_classic_group(group: classic.DescribedGroup, coordinator: Broker | None) -> GroupDescription:
    """Return the description of a classic group. In consumer groups, the bytes of members are decoded."""
    opened = group.protocol_type == _CONSUMERS
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CLASSIC,
        state=GroupState.parse(group.group_state),
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        members=tuple(_classic_member(each, opened=opened) for each in group.members),
        coordinator=coordinator,
        authorized_operations=decode_authorized_operations(group.authorized_operations),
    )


def _classic_member(member: classic.DescribedGroupMember, *, opened: bool) -> GroupMember:
    """Return a member. Its bytes, if present, are decoded if the group is a consumer group."""
    wanted = bool(opened and member.member_metadata)
    subscribed = decode_embedded(ConsumerProtocolSubscription, member.member_metadata) if wanted else EmbeddedMessage()
    wanted = bool(opened and member.member_assignment)
    assigned = decode_embedded(ConsumerProtocolAssignment, member.member_assignment) if wanted else EmbeddedMessage()
    topics = assigned.message.assigned_partitions if assigned.message else ()
    faults = [str(each.fault) for each in (subscribed, assigned) if each.fault]
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topics=subscribed.message.topics if subscribed.message else (),
        assignment=tuple(TopicPartition(topic.topic, each) for topic in topics for each in topic.partitions),
        classic=True,
        problem="; ".join(faults) or None,
    )
