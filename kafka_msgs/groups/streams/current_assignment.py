"""The next step of a member towards its target: Kafka's ``CurrentAssignmentBuilder``.

A member revokes tasks, role by role, and gets free tasks. The rules (KIP-1071, "Rebalance Process", and Kafka 4.4.0):

* An active task is free if no member has it, and no other member of the same process has it as standby or warm-up.
* A standby task is free if no other member of the same process has it, in any role. A warm-up task likewise.
* A task that changes its role on the same member is not revoked. To become active, it stays in its old
  role until the active task is free.
* A member moves to the epoch of the target when it has no tasks to revoke, even if it waits for tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.streams.member import MemberState, StreamsGroupMember
from kafka_msgs.groups.streams.tasks import NO_TASKS, TaskId, TasksTuple, TasksTupleWithEpochs

__all__ = ["reconcile"]


class TaskOwners(Protocol):
    """The processes that run a task, by role."""

    def active_process(self, task: TaskId) -> str | None:
        """Return the process that runs the active task."""

    def has_standby(self, task: TaskId, process_id: str) -> bool:
        """Return whether a member of the process runs the standby task."""

    def has_warmup(self, task: TaskId, process_id: str) -> bool:
        """Return whether a member of the process runs the warm-up task."""


def reconcile(
    member: StreamsGroupMember, epoch: int, target: TasksTuple, owned: TasksTuple | None, holders: TaskOwners
) -> StreamsGroupMember:
    """Return the member after the next step towards the target assignment of ``epoch``.

    ``owned`` are the tasks that the member reports, or None if the request omits them. Raises ``GroupError`` with
    ``FENCED_MEMBER_EPOCH`` for a member in an unknown state that has tasks.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == epoch:
            return member
        case MemberState.UNREVOKED_TASKS:
            if owned is None or owned.overlaps(member.revoking):
                return member
            return _step(member, member.epoch + 1, epoch, target, owned, holders)
        case MemberState.UNKNOWN:
            if owned is None or owned.active or owned.standby or owned.warmup:
                raise GroupError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
                )
            return _step(member, epoch, epoch, target, owned, holders)
    return _step(member, member.epoch, epoch, target, owned, holders)


class _Role:
    """The tasks of one role in a step: kept, revoked, and granted. ``waits`` is set if some tasks are not free."""

    __slots__ = ("granted", "kept", "revoked", "waits")

    def __init__(self, current: Iterable[TaskId], target: frozenset[TaskId], is_held: Callable[[TaskId], bool]) -> None:
        self.kept = target.intersection(current)
        self.revoked = frozenset(current) - target
        wanted = target.difference(current)
        self.granted = frozenset(task for task in wanted if not is_held(task))
        self.waits = len(self.granted) < len(wanted)

    def grant_now(self, tasks: Iterable[TaskId]) -> frozenset[TaskId]:
        """Grant those ``tasks`` that are free immediately. Return the granted tasks."""
        found = self.granted.intersection(tasks)
        self.granted -= found
        self.kept |= found
        return found


class _Roles:
    """The three roles of a member in a step."""

    __slots__ = ("active", "current", "standby", "target", "warmup")

    def __init__(self, member: StreamsGroupMember, target: TasksTuple, holders: TaskOwners) -> None:
        current, process = member.assigned, member.metadata.process_id
        self.current, self.target = current, target

        def active_here(task: TaskId) -> bool:
            return holders.active_process(task) == process

        def other_standby(task: TaskId) -> bool:
            return task not in current.standby and holders.has_standby(task, process)

        def other_warmup(task: TaskId) -> bool:
            return task not in current.warmup and holders.has_warmup(task, process)

        def active_held(task: TaskId) -> bool:
            return holders.active_process(task) is not None or other_standby(task) or other_warmup(task)

        def standby_held(task: TaskId) -> bool:
            other_active = task not in current.active and active_here(task)
            return other_active or holders.has_standby(task, process) or other_warmup(task)

        def warmup_held(task: TaskId) -> bool:
            return active_here(task) or other_standby(task) or holders.has_warmup(task, process)

        self.active = _Role(current.active, target.active, active_held)
        self.standby = _Role(current.standby, target.standby, standby_held)
        self.warmup = _Role(current.warmup, target.warmup, warmup_held)
        self._change_roles()

    def _change_roles(self) -> None:
        """Change the roles of tasks that stay on the member, without revoking them."""
        standby, warmup = self.standby, self.warmup
        standby.grant_now(self.current.active)
        standby.revoked -= warmup.grant_now(self.current.standby) | self.target.active
        warmup.revoked -= standby.grant_now(self.current.warmup) | self.target.active

    @property
    def revoking(self) -> TasksTupleWithEpochs:
        """The tasks that the member must revoke."""
        active = {task: self.current.active[task] for task in self.active.revoked}
        return TasksTupleWithEpochs(active, self.standby.revoked, self.warmup.revoked)

    @property
    def waits(self) -> bool:
        """Whether a task is not free yet."""
        return self.active.waits or self.standby.waits or self.warmup.waits

    def while_revoking(self) -> TasksTupleWithEpochs:
        """Return the member's tasks while it revokes tasks, without new ones."""
        return self._assigned({}, frozenset(), frozenset(), promoted=frozenset())

    def granting(self, epoch: int) -> TasksTupleWithEpochs:
        """Return the member's tasks with all free tasks added, assigned at ``epoch``."""
        new = self.active.granted
        return self._assigned(dict.fromkeys(new, epoch), self.standby.granted, self.warmup.granted, promoted=new)

    def _assigned(
        self,
        active: dict[TaskId, int],
        standby: frozenset[TaskId],
        warmup: frozenset[TaskId],
        *,
        promoted: frozenset[TaskId],
    ) -> TasksTupleWithEpochs:
        """Return kept and new tasks. Tasks that wait to become active keep their old role."""
        waiting = self.target.active - promoted
        return TasksTupleWithEpochs(
            {task: self.current.active[task] for task in self.active.kept} | active,
            self.standby.kept | (self.current.standby & waiting) | standby,
            self.warmup.kept | (self.current.warmup & waiting) | warmup,
        )


def _step(
    member: StreamsGroupMember,
    member_epoch: int,
    epoch: int,
    target: TasksTuple,
    owned: TasksTuple | None,
    holders: TaskOwners,
) -> StreamsGroupMember:
    roles = _Roles(member, target, holders)
    revoking = roles.revoking
    if revoking and (owned is None or owned.overlaps(revoking)):
        return _moved(member, MemberState.UNREVOKED_TASKS, member_epoch, roles.while_revoking(), revoking)
    state = MemberState.UNRELEASED_TASKS if roles.waits else MemberState.STABLE
    return _moved(member, state, epoch, roles.granting(epoch), NO_TASKS)


def _moved(
    member: StreamsGroupMember,
    state: MemberState,
    epoch: int,
    assigned: TasksTupleWithEpochs,
    revoking: TasksTupleWithEpochs,
) -> StreamsGroupMember:
    return evolve(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking)
