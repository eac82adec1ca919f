"""Kafka 4.4's ``StickyTaskAssignor``: tasks stay on their members as far as balance allows.

Active tasks first return to their previous members, then go to members that had them as standby tasks. The remaining
tasks go to the process with the smallest load, and within it to the member with the fewest tasks. Standby tasks follow
the same rules; no process gets a task twice. Racks and client tags have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from attrs import define, field

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors.java_hash_order import HashTable, hash_map_order, sized_capacity
from kafka_msgs.groups.assignors.java_priority_queue import add, distribute, new_heap, poll
from kafka_msgs.groups.assignors.spec import StreamsSpec, TaskAssignment
from kafka_msgs.groups.assignors.task_space import TaskSpace
from kafka_msgs.groups.runtime.timeline_map import java_hash_code

__all__ = ["assign_sticky"]


def assign_sticky(spec: StreamsSpec) -> dict[str, TaskAssignment]:
    """Assign active and standby tasks. Raises ``AssignorError`` if there are tasks but no members."""
    state = _State(spec)
    state.assign_active()
    if spec.standby_replicas > 0:
        state.assign_standby()
    return {
        member_id: TaskAssignment(state.space.tasks(active), state.space.tasks(standby))
        for member_id, active, standby in zip(spec.members, state.active, state.standby, strict=True)
    }


@define
class _Quota:
    """The number of tasks that a member may have: remaining tasks divided by members below their quota, rounded up."""

    tasks: int
    members: int
    limit: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.limit = -(-self.tasks // self.members) if self.members else 0

    def reached(self, count: int) -> None:
        """Update the quota for a member that now has ``count`` tasks. Only a count equal to the quota changes it."""
        if count == self.limit:
            self.members -= 1
            self.tasks -= count
            self.__attrs_post_init__()


class _State:
    """The state of one assignment. Members and processes are numbered in the order of their first appearance."""

    def __init__(self, spec: StreamsSpec) -> None:
        self.members = list(spec.members.values())
        self.space = TaskSpace(spec.subtopologies)
        self.standbys = spec.standby_replicas
        self.active: list[list[int]] = [[] for _ in self.members]
        self.standby: list[list[int]] = [[] for _ in self.members]
        self.counts = [0] * len(self.members)
        stateful = sum(each.partitions for each in spec.subtopologies if each.stateful)
        self.active_quota = _Quota(self.space.size, len(self.members))
        self.quota = _Quota(self.space.size + stateful * self.standbys, len(self.members))
        self._find_processes(list(spec.members))
        self.previous = self._previous_owners()
        self.candidates = self._standby_candidates()

    def _find_processes(self, member_ids: list[str]) -> None:
        """Number the processes; store them and their members in the order of Kafka's hash tables."""
        numbers: dict[str, int] = {}
        table: HashTable[str] = HashTable(java_hash_code, capacity=sized_capacity(len(self.members)))
        for member in self.members:
            table.compute(member.process_id)
            numbers.setdefault(member.process_id, len(numbers))
        self.process = [numbers[member.process_id] for member in self.members]
        self.processes = [numbers[process_id] for process_id in table.walk()]
        together: list[dict[str, int]] = [{} for _ in numbers]
        for number, process in enumerate(self.process):
            together[process][member_ids[number]] = number
        self.together = [[ids[each] for each in hash_map_order(ids)] for ids in together]
        self.sizes = [len(each) for each in together]
        self.ones = [1] * len(self.members)
        self.loads = [0] * len(together)
        self.heaps: list[list[int] | None] = [None] * len(together)
        self.held: list[set[int]] = [set() for _ in together]

    def _previous_owners(self) -> list[int]:
        """Return for each task the member that had it as an active task, or -1."""
        owners = [-1] * self.space.size
        for member, given in enumerate(self.members):
            for task in self.space.numbers(given.active):
                owners[task] = member
        return owners

    def _standby_candidates(self) -> dict[int, list[int]]:
        """Return candidates for each task: members that had it as a standby task, then members by offset sum."""
        ranked: dict[int, list[tuple[bool, int, int]]] = {}
        for member, given in enumerate(self.members):
            standby = dict.fromkeys(self.space.numbers(given.standby))
            offsets = dict(self.space.sums(given.offsets))
            for task in [*standby, *(task for task in offsets if task not in standby)]:
                ranked.setdefault(task, []).append((task not in standby, -offsets.get(task, 0), member))
        return {task: [member for _, _, member in sorted(each)] for task, each in ranked.items()}

    def assign_active(self) -> None:
        """Assign each task to one member."""
        left = self._return_active(self.space.by_partition())
        left = self._promote_standby(left)
        self._spread_active(sorted(left))

    def _return_active(self, tasks: list[int]) -> list[int]:
        """Return tasks to their previous members, within the quota. Return the remaining tasks."""
        left = []
        previous, counts, active = self.previous, self.counts, self.active
        quota, total = self.active_quota, self.quota
        for task in tasks:
            member = previous[task]
            if member >= 0 and counts[member] < quota.limit:
                counts[member] = count = counts[member] + 1
                active[member].append(task)
                if count == quota.limit:
                    quota.reached(count)
                if count == total.limit:
                    total.reached(count)
            else:
                left.append(task)
        self._count_processes()
        return left

    def _count_processes(self) -> None:
        self.loads = [sum(self.counts[member] for member in members) for members in self.together]

    def _promote_standby(self, tasks: list[int]) -> list[int]:
        """Give tasks to members that had them as standby tasks, within the quota. Return the remaining tasks."""
        if not self.candidates:
            return tasks
        left = []
        for task in tasks:
            member = self._least_loaded(self.candidates.get(task, ()), None)
            if member is not None and self.counts[member] < self.active_quota.limit:
                self.active_quota.reached(self._give(task, member, self.active))
                self.quota.reached(self.counts[member])
            else:
                left.append(task)
        return left

    def _give(self, task: int, member: int, assigned: list[list[int]]) -> int:
        """Give a task to a member and return how many tasks it has now."""
        process = self.process[member]
        assigned[member].append(task)
        self.held[process].add(task)
        self.loads[process] += 1
        self.counts[member] += 1
        return self.counts[member]

    def _least_loaded(self, candidates: Sequence[int], task: int | None) -> int | None:
        """Return the first candidate that no later candidate beats in both loads: process load and member load.

        Candidates whose process has the task are skipped.
        """
        best = None
        least = fewest = 0.0
        for member in candidates:
            process = self.process[member]
            if task is not None and task in self.held[process]:
                continue
            load, count = self.loads[process] / self.sizes[process], self.counts[member]
            if best is None or (load < least and count < fewest):
                best, least, fewest = member, load, count
        return best

    def _spread_active(self, tasks: list[int]) -> None:
        """Give tasks, in ascending order, to the process and the member with the smallest load."""
        if not tasks:
            return
        if not self.processes:
            raise AssignorError(reason=f"No process available to assign active task {self.space.name(tasks[0])}.")
        takers = distribute(self._process_heap(), self.loads, self.sizes, len(tasks))
        arrivals: list[list[int]] = [[] for _ in self.sizes]
        for task, process in zip(tasks, takers, strict=True):
            arrivals[process].append(task)
        before = list(self.counts)
        turns = [self._spread_within(process, arrived) for process, arrived in enumerate(arrivals)]
        if self.standbys:
            self._replay_quota(takers, turns, before)

    def _process_heap(self) -> list[int]:
        ranks = {process: self.loads[process] / self.sizes[process] for process in self.processes}
        return new_heap(self.processes, ranks)

    def _spread_within(self, process: int, tasks: list[int]) -> list[int]:
        """Give tasks to members of a process and return the receiving members, in order."""
        members = self._member_heap(process)
        takers = distribute(members, self.counts, self.ones, len(tasks))
        for task, member in zip(tasks, takers, strict=True):
            self.active[member].append(task)
        return takers

    def _member_heap(self, process: int) -> list[int]:
        """Return a heap of a process's members by number of tasks, rebuilt after a task goes to a specific member."""
        heap = self.heaps[process]
        if heap is None:
            heap = self.heaps[process] = new_heap(self.together[process], self.counts)
        return heap

    def _replay_quota(self, processes: list[int], turns: list[list[int]], counts: list[int]) -> None:
        """Apply the tasks given to processes to the overall quota, in order, starting from ``counts``."""
        members = [iter(each) for each in turns]
        for process in processes:
            member = next(members[process])
            counts[member] += 1
            self.quota.reached(counts[member])

    def assign_standby(self) -> None:
        """Assign the standby tasks, as many replicas as processes can take."""
        for process, members in enumerate(self.together):
            self.held[process].update(*(self.active[member] for member in members))
        left = []
        for task in reversed(self.space.by_partition(stateful=True)):
            for replica in range(self.standbys):
                if not self._keep_standby(task):
                    left.append((task, self.standbys - replica))
                    break
        heap = self._process_heap()
        ranks = {process: self.loads[process] / self.sizes[process] for process in self.processes}
        for task, replicas in sorted(left, reverse=True):
            for _ in range(replicas):
                if not self._place_standby(heap, ranks, task):
                    break

    def _keep_standby(self, task: int) -> bool:
        """Give a standby task to the member that had it as an active or standby task; return whether that worked."""
        member: int | None = self.previous[task]
        if member == -1 or not self._may_take(member, task):
            member = self._least_loaded(self.candidates.get(task, ()), task)
            if not self._may_take(member, task):
                return False
        process = self.process[member]
        self.heaps[process] = None
        self.quota.reached(self._give(task, member, self.standby))
        return True

    def _may_take(self, member: int | None, task: int) -> TypeGuard[int]:
        return (
            member is not None
            and task not in self.held[self.process[member]]
            and self.counts[member] < self.quota.limit
        )

    def _place_standby(self, heap: list[int], ranks: dict[int, float], task: int) -> bool:
        """Give a standby task to the least loaded process that does not have it; return whether that succeeded."""
        polled = []
        found = False
        while heap and not found:
            process = poll(heap, ranks)
            polled.append(process)
            found = task not in self.held[process]
        if found:
            members = self._member_heap(process)
            member = poll(members, self.counts)
            self.quota.reached(self._give(task, member, self.standby))
            add(members, member, self.counts)
            ranks[process] = self.loads[process] / self.sizes[process]
        for process in reversed(polled):
            add(heap, process, ranks)
        return found
