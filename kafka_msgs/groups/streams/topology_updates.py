"""Topology updates: whether a member may send another topology, and which tasks members with an older one may keep."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.streams.tasks import NO_TARGET, TaskId, TasksTuple
from kafka_msgs.groups.streams.topology import StreamsTopology, canonical
from kafka_msgs.groups.streams.validation import invalid_request

__all__ = ["accepted_topology", "keep_tasks_of_old_topology"]


def accepted_topology(known: StreamsTopology, sent: StreamsTopology, *, updates: bool) -> StreamsTopology:
    """Return the topology of a group after a member joins: the existing one, or the one that the member sent.

    ``updates`` is ``StreamsRules.topology_updates``. Raises ``GroupError``.
    """
    if not updates:
        if known.epoch > sent.epoch or known.same_as(sent):
            return known
        raise invalid_request("Topology updates are not supported yet.")
    if sent.epoch == known.epoch + 1:
        return sent
    if sent.epoch == known.epoch and canonical(sent) == canonical(known):
        return known
    if sent.epoch < known.epoch:
        error, reason = ErrorCode.STREAMS_TOPOLOGY_FENCED, "is behind"
    elif sent.epoch == known.epoch:
        error, reason = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, "has another topology than"
    else:
        error, reason = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, "is more than one ahead of"
    raise GroupError(error=error, message=f"Topology epoch {sent.epoch} {reason} the group's epoch {known.epoch}.")


def keep_tasks_of_old_topology(
    computed: Mapping[str, TasksTuple], before: Mapping[str, TasksTuple], old: Collection[str]
) -> Mapping[str, TasksTuple]:
    """Return an assignment in which members with an older topology get no new tasks.

    Their new tasks go to the other members instead, first to the member with the fewest active tasks. Without other
    members, the tasks are not assigned.
    """
    kept = {each: _common(computed[each], before.get(each, NO_TARGET)) for each in computed if each in old}
    result = {**computed, **kept}
    others = [each for each in computed if each not in old]
    freed = [task for each in sorted(kept) for task in sorted(computed[each].active - kept[each].active)]
    for task in freed if others else ():
        taker = min(others, key=lambda each: (len(result[each].active), each))
        result[taker] = _with_active(result[taker], task)
    return result


def _common(tasks: TasksTuple, before: TasksTuple) -> TasksTuple:
    return TasksTuple(tasks.active & before.active, tasks.standby & before.standby, tasks.warmup & before.warmup)


def _with_active(tasks: TasksTuple, task: TaskId) -> TasksTuple:
    return TasksTuple(tasks.active | {task}, tasks.standby - {task}, tasks.warmup - {task})
