"""The common base of consumer groups, share groups and streams groups: ``ModernGroup`` of Kafka.

Each of these groups has a group epoch, a target assignment with a separate epoch, and members that follow the target by
their member epochs. This module implements that state, ``modern_records`` its records, and ``member_timers`` the timers
of the members. Each kind defines its members' assignments and their steps towards the target.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from attrs import define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order
from kafka_msgs.groups.group import Committer, ExpiryCondition, Group, is_expired
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.operation import OperationContext, ShardState
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.internal_topics.replay import GroupKind

__all__ = [
    "JOIN_EPOCH",
    "LEAVE_EPOCH",
    "STATIC_LEAVE_EPOCH",
    "DeadlineAndEpoch",
    "ModernGroup",
    "ModernMember",
    "can_compute_assignment",
    "check_assignment_epoch",
    "check_capacity",
    "check_names",
    "committing_member",
    "current_target",
    "fenced_epoch",
    "find_group",
    "invalid_request",
    "members_after",
    "stale",
    "unreleased_instance",
]

JOIN_EPOCH: Final = 0
"""The epoch that a member sends to join."""
LEAVE_EPOCH: Final = -1
"""The epoch that a member sends to leave. A member has it between the tombstones of its records."""
STATIC_LEAVE_EPOCH: Final = -2
"""The epoch that a static member sends to leave temporarily. Its membership is preserved."""

_FIRST_EPOCH: Final = 1
_REFRESH_INTERVAL_MS: Final = 2**31 - 1
_BLANKS: Final = "".join(map(chr, range(33)))
"""The characters that Java's ``String.trim`` removes."""


class ModernMember(Protocol):
    """The member interface that this module requires."""

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None:
        """The name of a static member; None for a dynamic one."""

    @property
    def epoch(self) -> int:
        """The epoch that the coordinator expects in the next heartbeat."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target of that epoch."""


M = TypeVar("M", bound=ModernMember)
A = TypeVar("A")
G = TypeVar("G", bound="ModernGroup[Any, Any]")


@define
class DeadlineAndEpoch:
    """Soft state: the expiry time of the topics' metadata hash in ms, and the group epoch from which it is valid.

    A new group, and a group that was loaded, computes the hash at the next heartbeat.
    """

    deadline_ms: int = 0
    epoch: int = 0


class ModernGroup(Group, Generic[M, A]):
    """A group with epochs. ``M`` is its member class, ``A`` the class of a member's target assignment.

    ``targets`` has the target assignment by member. ``static_members`` has the member id by instance id.
    ``assignment_timestamp`` is in ms; 0 means that the target may be computed immediately.

    A kind sets ``member_class``, and ``no_assignment``: the fields of a member without partitions or tasks.
    """

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp",
        "epoch",
        "members",
        "metadata_hash",
        "static_members",
        "targets",
    )
    soft: DeadlineAndEpoch

    soft_class: ClassVar[type[DeadlineAndEpoch]] = DeadlineAndEpoch
    member_class: ClassVar[type[Any]]
    no_assignment: ClassVar[Mapping[str, Any]]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_timestamp = 0
        self.members: TimelineHashMap[str, M] = TimelineHashMap()
        self.static_members: TimelineHashMap[str, str] = TimelineHashMap()
        self.targets: TimelineHashMap[str, A] = TimelineHashMap()
        self.soft = self.soft_class()

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def state_name(self) -> str:
        """The name of the state, derived from the epochs of the group and of its members."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def validate_offset_fetch(self, op: GroupOperation, *, member_id: str | None, epoch: int) -> None:
        """Check that a member sends its own epoch to fetch offsets. A request without a member may fetch all."""
        if member_id is None and epoch < 0:
            return
        if member_id is None and op.quirks.fetch_needs_member_id:
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
        member: Any = self.member(member_id or "")
        if epoch != member.epoch:
            known = f"the expected member epoch {member.epoch}"
            raise stale(member, f"The received {epoch_name(member)} {epoch} does not match {known}.")

    def validate_offset_delete(self, op: GroupOperation) -> None:
        """Accept: topics that the group reads are excluded one by one."""

    def validate_delete(self, op: GroupOperation) -> None:
        """Check that the group has no members."""
        if self.members:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def cancel_timers(self, op: GroupOperation) -> None:
        """Do nothing: an empty group has no timers."""

    def offset_expiration(self) -> ExpiryCondition | None:
        """Return the condition for an offset to be expired: it depends on the time of the commit."""
        return is_expired

    def member(self, member_id: str) -> M:
        """Return a member. Raises ``GroupError`` with UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def new_member(self, member_id: str) -> M:
        """Return a member without any record."""
        made: M = self.member_class(member_id=member_id)
        return made

    def static_member(self, instance_id: str | None) -> M | None:
        """Return the member that has an instance id, or None."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def sender(self, member_id: str, instance_id: str | None) -> M:
        """Return the member that sent a request.

        Raises ``GroupError``: UNKNOWN_MEMBER_ID for an unknown id, FENCED_INSTANCE_ID if another member has it.
        """
        if instance_id is None:
            return self.member(member_id)
        member = self.static_member(instance_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            owner = member.member_id
            message = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner}."
            raise GroupError(ErrorCode.FENCED_INSTANCE_ID, message)
        return member

    def put_member(self, state: ShardState, changes: Changes, member: M) -> None:
        """Add or replace a member, and update the derived state. For appliers."""
        old = self.members.get(member.member_id)
        changes.set(self.members, member.member_id, member)
        if old is not None and old.instance_id is not None:
            changes.delete(self.static_members, old.instance_id)
        if member.instance_id is not None:
            changes.set(self.static_members, member.instance_id, member.member_id)
        self.recount(state, changes, old, member)

    def remove_member(self, state: ShardState, changes: Changes, member: M) -> None:
        """Remove a member, and update the derived state. For appliers."""
        changes.delete(self.members, member.member_id)
        if member.instance_id is not None:
            changes.delete(self.static_members, member.instance_id)
        self.recount(state, changes, member, None)

    @abstractmethod
    def recount(self, state: ShardState, changes: Changes, old: M | None, new: M | None) -> None:
        """Update the state that is derived from the members, after a member was added, replaced or removed."""

    def request_refresh(self) -> None:
        """Compute the hash of the topics' metadata at the next heartbeat."""
        self.soft.deadline_ms = self.soft.epoch = 0

    def needs_refresh(self, now: int) -> bool:
        """Return whether the hash must be computed: it has expired, or the epoch stored with it was undone."""
        return now >= self.soft.deadline_ms or self.epoch < self.soft.epoch

    def refreshed(self, now: int, epoch: int) -> None:
        """Record that the hash was computed for a group epoch."""
        self.soft.deadline_ms = now + _REFRESH_INTERVAL_MS
        self.soft.epoch = epoch


def find_group(op: OperationContext, cls: type[G], group_id: str, name: str = "Group") -> G:
    """Return a group of one kind. Raises ``GroupError`` with GROUP_ID_NOT_FOUND, whose message calls it ``name``."""
    group = op.state.groups.get(group_id)
    if isinstance(group, cls):
        return group
    message = f"{name} {group_id} not found." if group is None else f"Group {group_id} is not a {cls.kind} group."
    raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def members_after(group: ModernGroup[M, Any], member: M | None, replaced: str | None) -> dict[str, M]:
    """Return the members after a request, in the order of Kafka's ``HashMap`` of them.

    ``member`` is the updated member that sent the request, and ``replaced`` the id of the member that it replaces.
    """
    members = {each: group.members[each] for each in iter_kafka_order(group.members) if each != replaced}
    if member is not None:
        members[member.member_id] = member
    return {each: members[each] for each in hash_map_order(members)}


def current_target(group: ModernGroup[Any, A], member_id: str, replaced: str | None) -> Mapping[str, A]:
    """Return the targets by member, after a member has replaced the member with the id ``replaced``."""
    if replaced is None:
        return group.targets
    targets = dict(group.targets)
    target = targets.pop(replaced, None)
    if target is not None:
        targets[member_id] = target
    return targets


def invalid_request(message: str) -> GroupError:
    """Return the error of a request that breaks a rule."""
    return GroupError(ErrorCode.INVALID_REQUEST, message)


def check_names(*names: tuple[str, str | None]) -> None:
    """Refuse a name that is set but blank. Each name comes with its label."""
    for label, name in names:
        if name is not None and not name.strip(_BLANKS):
            raise invalid_request(f"{label} can't be empty.")


def check_capacity(group: ModernGroup[Any, Any], size: int, member_id: str, instance_id: str | None = None) -> None:
    """Refuse a new member of a full group with GROUP_MAX_SIZE_REACHED. One that replaces a static member is not new."""
    known = member_id in group.members or (instance_id is not None and instance_id in group.static_members)
    if not known and len(group.members) >= size:
        message = f"The {group.kind} group has reached its maximum capacity of {size} members."
        raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def fenced_epoch(kind: GroupKind, epoch: int, known: int, also: str = "") -> GroupError:
    """Return the error for a heartbeat at another epoch than the one that the coordinator knows."""
    message = (
        f"The {kind} group member has a {'greater' if epoch > known else 'smaller'} member epoch ({epoch}) than the "
        f"one known by the group coordinator ({known}){also}. The member must abandon all its partitions and rejoin."
    )
    return GroupError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def unreleased_instance(member_id: str, instance_id: str | None, owner_id: str) -> GroupError:
    """Return the error for a member that joins with the instance id of another current member."""
    message = (
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is "
        f"owned by {owner_id} member."
    )
    return GroupError(ErrorCode.UNRELEASED_INSTANCE_ID, message)


def can_compute_assignment(group: ModernGroup[Any, Any], interval_ms: int, now: int) -> bool:
    """Return whether the target assignment may be computed: ``interval_ms`` must have passed since the last time."""
    return not group.assignment_timestamp or not interval_ms or now >= group.assignment_timestamp + interval_ms


_FIRST_COMMIT_BY_EPOCH: Final = 9


def committing_member(group: ModernGroup[Any, Any], committer: Committer) -> Any:
    """Return the member that commits with an epoch older than its own. None if the commit needs no more checks.

    Raises ``GroupError`` for a member that may not commit.
    """
    if committer.epoch < 0 and not group.members:
        return None
    is_anonymous = committer.epoch == LEAVE_EPOCH and not committer.member_id and committer.instance_id is None
    if committer.transactional and is_anonymous:
        return None
    member = group.member(committer.member_id)
    if not committer.transactional and member.classic is None and committer.version < _FIRST_COMMIT_BY_EPOCH:
        message = f"OffsetCommit version 9 or above must be used by members using the {group.kind} group protocol"
        raise GroupError(ErrorCode.UNSUPPORTED_VERSION, message)
    if committer.epoch > member.epoch:
        known = f"newer than current member epoch {member.epoch}"
        raise stale(member, f"Received {epoch_name(member)} {committer.epoch} is {known}.")
    return None if committer.epoch == member.epoch else member


def check_assignment_epoch(member: Any, name: str, assigned: int | None, epoch: int) -> None:
    """Refuse a commit of a partition or task at an epoch before its assignment to the member."""
    if assigned is None:
        raise stale(member, f"{name[0].upper()}{name[1:]} is not assigned or pending revocation for member.")
    if epoch < assigned:
        raise stale(
            member, f"Received {epoch_name(member)} {epoch} is older than assignment epoch {assigned} for {name}."
        )


def epoch_name(member: Any) -> str:
    """Return the name of a member's epoch in its protocol."""
    return "member epoch" if member.classic is None else "generation id"


def stale(member: Any, message: str) -> GroupError:
    """Return the error of a member's protocol for a wrong epoch."""
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return GroupError(code, message)
