"""The next step of a member towards its target: Kafka's ``CurrentAssignmentBuilder``.

A member gives up what it must, role by role, and gets what is free. These are the rules (KIP-1071, "Rebalance
Process", and Kafka 4.4.0):

* An active task is free if no member has it, and no other member of the same process has it as standby or warm-up.
* A standby task is free if no other member of the same process has it, in any role. A warm-up task likewise.
* A task that changes its role on the same member is not given up in between. To become active, it stays in its old
  role until the active task is free.
* A member goes to the epoch of the target when it has nothing to give up, even if it waits for tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.streams.member import MemberState, StreamsMember
from kafka_msgs.groups.streams.tasks import NO_TASKS, AssignedTasks, TargetTasks, Task

__all__ = ["Holders", "reconcile"]


class Holders(Protocol):
    """Which processes run a task, in which role."""

    def active_process(self, task: Task) -> str | None:
        """Return the process that runs the active task."""

    def has_standby(self, task: Task, process_id: str) -> bool:
        """Tell whether a member of the process runs the standby task."""

    def has_warmup(self, task: Task, process_id: str) -> bool:
        """Tell whether a member of the process runs the warm-up task."""


def reconcile(
    member: StreamsMember, epoch: int, target: TargetTasks, owned: TargetTasks | None, holders: Holders
) -> StreamsMember:
    """Return the member after the next step towards the target assignment of ``epoch``.

    ``owned`` is what the member says it runs, or None if it does not say. Raises ``GroupError`` with
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
                    error=ErrorCode.FENCED_MEMBER_EPOCH,
                    message="The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            return _step(member, epoch, epoch, target, owned, holders)
    return _step(member, member.epoch, epoch, target, owned, holders)


class _Role:
    """The tasks of one role in a step: kept, given up, and handed out. ``waits`` tells whether some are not free."""

    __slots__ = ("granted", "kept", "revoked", "waits")

    def __init__(self, current: set[Task], target: frozenset[Task], is_held: Callable[[Task], bool]) -> None:
        self.kept = current & target
        self.revoked = current - target
        wanted = target - current
        self.granted = {task for task in wanted if not is_held(task)}
        self.waits = len(self.granted) < len(wanted)

    def grant_now(self, tasks: set[Task]) -> set[Task]:
        """Hand out those of ``tasks`` that are free at once. Return them."""
        found = tasks & self.granted
        self.granted -= found
        self.kept |= found
        return found


def _step(
    member: StreamsMember,
    member_epoch: int,
    epoch: int,
    target: TargetTasks,
    owned: TargetTasks | None,
    holders: Holders,
) -> StreamsMember:
    current = member.assigned
    process = member.metadata.process_id

    def other_standby(task: Task) -> bool:
        return task not in current.standby and holders.has_standby(task, process)

    def other_warmup(task: Task) -> bool:
        return task not in current.warmup and holders.has_warmup(task, process)

    def active_here(task: Task) -> bool:
        return holders.active_process(task) == process

    active = _Role(
        set(current.active),
        target.active,
        lambda task: holders.active_process(task) is not None or other_standby(task) or other_warmup(task),
    )
    standby = _Role(
        set(current.standby),
        target.standby,
        lambda task: (
            (task not in current.active and active_here(task))
            or holders.has_standby(task, process)
            or other_warmup(task)
        ),
    )
    warmup = _Role(
        set(current.warmup),
        target.warmup,
        lambda task: active_here(task) or other_standby(task) or holders.has_warmup(task, process),
    )
    standby.grant_now(set(current.active))
    standby.revoked -= warmup.grant_now(set(current.standby))
    warmup.revoked -= standby.grant_now(set(current.warmup))
    standby.revoked -= target.active
    warmup.revoked -= target.active
    revoking = AssignedTasks(
        {task: current.active[task] for task in active.revoked}, frozenset(standby.revoked), frozenset(warmup.revoked)
    )
    must_revoke = bool(revoking) and (owned is None or owned.overlaps(revoking))
    promoted = set() if must_revoke else active.granted
    standby.kept |= (current.standby & target.active) - promoted
    warmup.kept |= (current.warmup & target.active) - promoted
    kept = {task: current.active[task] for task in active.kept}
    if must_revoke:
        assigned = AssignedTasks(kept, frozenset(standby.kept), frozenset(warmup.kept))
        return _moved(member, MemberState.UNREVOKED_TASKS, member_epoch, assigned, revoking)
    assigned = AssignedTasks(
        kept | dict.fromkeys(active.granted, epoch),
        frozenset(standby.kept | standby.granted),
        frozenset(warmup.kept | warmup.granted),
    )
    waits = active.waits or standby.waits or warmup.waits
    return _moved(member, MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE, epoch, assigned, NO_TASKS)


def _moved(
    member: StreamsMember, state: MemberState, epoch: int, assigned: AssignedTasks, revoking: AssignedTasks
) -> StreamsMember:
    return evolve(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking)
