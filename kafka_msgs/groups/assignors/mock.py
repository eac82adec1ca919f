"""Active tasks in turn, for tests: ``MockAssignor`` of Kafka, which a broker offers under its class name only."""

from __future__ import annotations

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors.java_hash_order import HashTable, hash_map_order
from kafka_msgs.groups.assignors.java_priority_queue import add, new_heap, poll
from kafka_msgs.groups.assignors.spec import AssignmentMemberSpec, StreamsSpec, TaskAssignment
from kafka_msgs.groups.runtime.timeline_map import java_hash_code, string_key

__all__ = ["assign_mock"]


def assign_mock(spec: StreamsSpec) -> dict[str, TaskAssignment]:
    """Keep the active tasks of members and give the remaining tasks to the member with the fewest tasks.

    Raises ``AssignorError`` if two members have the same task, if a member has a task that the topology does not have,
    or if there are tasks but no members.
    """
    owners: dict[str, list[str | None]] = {
        each.id: [None] * each.partitions for each in sorted(spec.subtopologies, key=lambda each: string_key(each.id))
    }
    for member_id, member in spec.members.items():
        _keep(owners, member_id, member)
    ids = _table_order(spec)
    counts = [_count(spec.members[member_id]) for member_id in ids]
    heap = new_heap(range(len(ids)), counts)
    for subtopology in hash_map_order(each.id for each in spec.subtopologies):
        for partition, owner in enumerate(owners[subtopology]):
            if owner is None:
                if not heap:
                    raise AssignorError(
                        reason=f"No member available to assign task {partition} of subtopology {subtopology}"
                    )
                taker = poll(heap, counts)
                owners[subtopology][partition] = ids[taker]
                counts[taker] += 1
                add(heap, taker, counts)
    given: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in spec.members}
    for subtopology, taken in owners.items():
        for partition, owner in enumerate(taken):
            if owner is not None:
                given[owner].setdefault(subtopology, []).append(partition)
    return {member_id: TaskAssignment(tasks) for member_id, tasks in given.items()}


def _keep(owners: dict[str, list[str | None]], member_id: str, member: AssignmentMemberSpec) -> None:
    for subtopology, partitions in member.active.items():
        taken = owners.get(subtopology, [])
        for partition in partitions:
            if partition >= len(taken):
                raise AssignorError(reason=f"Task {partition} of subtopology {subtopology} does not exist")
            if taken[partition] is not None:
                raise AssignorError(
                    reason=f"Task {partition} of subtopology {subtopology} is assigned to multiple members"
                )
            taken[partition] = member_id


def _count(member: AssignmentMemberSpec) -> int:
    return sum(map(len, member.active.values()))


def _table_order(spec: StreamsSpec) -> list[str]:
    """Return member ids in the order of Kafka's ``HashSet`` of pairs of id and task count."""

    def code(member_id: str) -> int:
        return 31 * java_hash_code(member_id) + _count(spec.members[member_id])

    return HashTable(code, hash_map_order(spec.members)).walk()
