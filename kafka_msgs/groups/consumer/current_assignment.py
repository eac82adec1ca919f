"""The step of a consumer group member towards its target: ``CurrentAssignmentBuilder`` of Kafka.

A member first revokes partitions that it must not keep. Then it moves to the epoch of the target, and gets the target
partitions that no other member owns. It waits for the remaining partitions.

Topics and partitions have the order of Kafka's maps, because it is visible in records and responses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from attrs import evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import (
    DEFAULT_CAPACITY,
    HashTable,
    copied,
    copy_capacity,
    hash_map_order,
    number_order,
    set_order,
)
from kafka_msgs.groups.consumer.member import NO_PARTITIONS, ConsumerGroupMember, MemberState, Owned
from kafka_msgs.groups.runtime.timeline_map import java_hash_code

__all__ = ["ReconcileInput", "Reported", "reconcile"]

Reported: TypeAlias = Mapping[UUID, Collection[int]]
"""The partitions that a member reports as owned, by topic id."""


_UNKNOWN_STATE: Final = (
    "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
)


@frozen(kw_only=True)
class ReconcileInput:
    """The inputs of a member's next step.

    ``target`` has the partitions of the target assignment by topic. ``subscribed`` returns whether the member currently
    subscribes to a topic id; ``subscribes_to_nothing`` is set if it names no topic. ``is_owned`` returns whether a
    partition has an owner. ``reported`` is None if the request does not list the member's partitions.
    """

    target_epoch: int
    target: Mapping[UUID, Sequence[int]]
    subscription_changed: bool
    subscribed: Callable[[UUID], bool]
    subscribes_to_nothing: bool
    is_owned: Callable[[UUID, int], bool]
    reported: Reported | None


def reconcile(member: ConsumerGroupMember, step: ReconcileInput) -> ConsumerGroupMember:
    """Return the member after its next step, or the same member if it has no step to take.

    Raises ``GroupError`` with FENCED_MEMBER_EPOCH for a member in an unknown state that still owns partitions.
    """
    if member.state is MemberState.UNKNOWN:
        if step.reported is None or step.reported:
            raise GroupError(ErrorCode.FENCED_MEMBER_EPOCH, _UNKNOWN_STATE)
        return _advance(member, step, step.target_epoch)
    waits = member.state is MemberState.UNREVOKED_PARTITIONS and owns_any(step.reported, member.revoking)
    at_target = member.state is MemberState.STABLE and member.epoch == step.target_epoch
    if waits or at_target:
        return _drop_unsubscribed(member, step) if step.subscription_changed else member
    return _advance(member, step, member.epoch)


def owns_any(reported: Reported | None, owned: Owned) -> bool:
    """Return whether a member owns any of these partitions. An unknown report counts as owning them."""
    if reported is None:
        return True
    return any(partition in owned.get(topic, ()) for topic, partitions in reported.items() for partition in partitions)


def _drop_unsubscribed(member: ConsumerGroupMember, step: ReconcileInput) -> ConsumerGroupMember:
    """Remove topics that the member no longer subscribes to. The epoch stays."""
    dropped = [topic for topic in member.assigned if not step.subscribed(topic)]
    assigned: Owned = NO_PARTITIONS
    revoking = member.assigned
    if member.revoking or not step.subscribes_to_nothing:
        if not dropped:
            return member
        keys = hash_map_order(member.assigned, capacity=copied(member.assigned))
        assigned = {topic: member.assigned[topic] for topic in keys if topic not in dropped}
        revoking = _with(member.revoking, {topic: member.assigned[topic] for topic in dropped})
    if revoking and owns_any(step.reported, revoking):
        return member.with_assignment(member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    return evolve(member, previous_epoch=member.epoch, assigned=assigned)


def _with(revoking: Owned, dropped: Owned) -> Owned:
    both = {**revoking}
    table = HashTable(java_hash_code, revoking, capacity=copied(revoking))
    for topic, epochs in dropped.items():
        if topic in both:
            merged = {**both[topic], **epochs}
            epochs = {each: merged[each] for each in number_order(list(merged), copied(both[topic]))}
        both[topic] = epochs
        table.compute(topic)
    return {topic: both[topic] for topic in table.walk()}


def _advance(member: ConsumerGroupMember, step: ReconcileInput, waiting_epoch: int) -> ConsumerGroupMember:
    """Revoke partitions outside the target, or add free ones. ``waiting_epoch`` is the epoch while revoking."""
    assigned: dict[UUID, Mapping[int, int]] = {}
    revoking: dict[UUID, Mapping[int, int]] = {}
    pending: dict[UUID, Sequence[int]] = {}
    unreleased = False
    for topic in _topics(step.target, member.assigned):
        owned = member.assigned.get(topic, {})
        target: Sequence[int] = step.target.get(topic, ()) if step.subscribed(topic) else ()
        keys = number_order(list(owned), copied(owned))
        if kept := {each: owned[each] for each in keys if each in target}:
            assigned[topic] = kept
        if given_up := {each: owned[each] for each in keys if each not in target}:
            revoking[topic] = given_up
        ordered = set_order(target)
        wanted = [each for each in ordered if each not in kept]
        own = member.revoking.get(topic, ())
        free = [each for each in wanted if each in own or not step.is_owned(topic, each)]
        unreleased = unreleased or len(free) < len(wanted)
        if free:
            pending[topic] = free
    if revoking and owns_any(step.reported, revoking):
        kept_topics = {topic: assigned[topic] for topic in hash_map_order(assigned)}
        lost_topics = {topic: revoking[topic] for topic in hash_map_order(revoking)}
        return member.with_assignment(waiting_epoch, MemberState.UNREVOKED_PARTITIONS, kept_topics, lost_topics)
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return member.with_assignment(
        step.target_epoch, state, _joined(member, assigned, pending, step.target_epoch), NO_PARTITIONS
    )


def _joined(member: ConsumerGroupMember, kept: Owned, added: Mapping[UUID, Sequence[int]], epoch: int) -> Owned:
    """Return the kept partitions together with the partitions added at an epoch."""
    both = dict(kept)
    table = HashTable(java_hash_code, kept)
    for topic in hash_map_order(added):
        table.compute(topic)
        epochs = {**both.get(topic, {}), **dict.fromkeys(added[topic], epoch)}
        capacity = copied(member.assigned[topic]) if topic in both else DEFAULT_CAPACITY
        both[topic] = {each: epochs[each] for each in number_order(list(epochs), capacity)}
    return {topic: both[topic] for topic in table.walk()}


def _topics(target: Iterable[UUID], owned: Iterable[UUID]) -> Iterable[UUID]:
    wanted = list(target)
    return hash_map_order(dict.fromkeys([*wanted, *owned]), capacity=copy_capacity(len(wanted)))
