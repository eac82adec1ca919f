"""The assignor ``highly_available`` of KIP-1071: stateful tasks run on processes that have their state.

The release does not include this assignor; the KIP refers to ``HighAvailabilityTaskAssignor`` of Kafka Streams
(KIP-441). This assignor follows the same idea. It first makes a balanced plan that ignores current owners. If the
planned process of a stateful task is not caught up, the task temporarily stays on a process that is caught up, and the
planned process gets a warm-up task while warm-up tasks are available. When the warm-up task has caught up, the next
assignment moves the task.

A process is caught up on a task if its lag is at most ``acceptable_recovery_lag``, or if it runs the task and has
reported no offset. If no process is caught up, a running task stays on its process, and a task that does not run goes
to the process with the greatest offset sum. The order of the members does not affect the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush, heapreplace

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors.spec import AssignmentMemberSpec, StreamsSpec, TaskAssignment
from kafka_msgs.groups.assignors.task_space import TaskSpace

__all__ = ["assign_highly_available"]


def assign_highly_available(spec: StreamsSpec) -> dict[str, TaskAssignment]:
    """Assign active, standby and warm-up tasks. Raises ``AssignorError`` if there are tasks but no members."""
    space = TaskSpace(spec.subtopologies)
    if not spec.members:
        if space.size:
            raise AssignorError(reason=f"No member available to assign active task {space.name(0)}.")
        return {}
    together: dict[str, dict[str, AssignmentMemberSpec]] = {}
    for member_id, member in sorted(spec.members.items()):
        together.setdefault(member.process_id, {})[member_id] = member
    processes = [_Process(members, space) for _, members in sorted(together.items())]
    plan = _Plan(processes)
    stateful = sorted(space.by_partition(stateful=True))
    plan.spread(stateful)
    plan.replicate(stateful, min(spec.standby_replicas, len(processes) - 1))
    plan.wait_for_state(stateful, spec)
    plan.spread(sorted(set(range(space.size)).difference(stateful)))
    assigned = {member_id: tasks for process in processes for member_id, tasks in process.divide(space).items()}
    return {member_id: assigned[member_id] for member_id in spec.members}


class _Process:
    """A process: the previous tasks and reported offsets of its members, and the tasks that they get together."""

    def __init__(self, members: Mapping[str, AssignmentMemberSpec], space: TaskSpace) -> None:
        self.members = list(members)
        self.active: set[int] = set()
        self.standby: set[int] = set()
        self.warmup: set[int] = set()
        self.owners: dict[int, str] = {}
        self.running: set[int] = set()
        self.offsets: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        for member_id, member in members.items():
            self.running.update(space.numbers(member.active))
            for had in (member.active, member.standby, member.warmup):
                for task in space.numbers(had):
                    self.owners.setdefault(task, member_id)
            for reported, sums in ((member.offsets, self.offsets), (member.end_offsets, self.ends)):
                for task, offset in space.sums(reported):
                    sums[task] = max(offset, sums.get(task, 0))

    @property
    def count(self) -> int:
        """The number of tasks that it is to get, without warm-up tasks."""
        return len(self.active) + len(self.standby)

    @property
    def load(self) -> float:
        """The number of tasks of a member."""
        return self.count / len(self.members)

    def divide(self, space: TaskSpace) -> dict[str, TaskAssignment]:
        """Divide the tasks among the members; a task stays with the member that had it, if balance allows."""
        counts = dict.fromkeys(self.members, 0)
        active, standby, warmup = (
            self._divided(tasks, counts) for tasks in (self.active, self.standby, self.warmup)
        )  # fmt: skip
        return {
            member: TaskAssignment(
                space.tasks(active[member]), space.tasks(standby[member]), space.tasks(warmup[member])
            )
            for member in self.members
        }

    def _divided(self, tasks: Iterable[int], counts: dict[str, int]) -> dict[str, list[int]]:
        """Return the part of ``tasks`` that each member gets. ``counts`` has each member's number of tasks so far."""
        listed = sorted(tasks)
        quota = -(-(sum(counts.values()) + len(listed)) // len(counts))
        given: dict[str, list[int]] = {member: [] for member in counts}
        left = []
        for task in listed:
            owner = self.owners.get(task)
            if owner is None or counts[owner] >= quota:
                left.append(task)
                continue
            given[owner].append(task)
            counts[owner] += 1
        heap = [(count, member) for member, count in counts.items()]
        heapify(heap)
        for task in left:
            count, member = heap[0]
            given[member].append(task)
            counts[member] = count + 1
            heapreplace(heap, (count + 1, member))
        return given


class _Progress:
    """The progress of each task's state: the process that runs the task, and the offsets of each process."""

    def __init__(self, processes: list[_Process]) -> None:
        self.running: dict[int, list[int]] = {}
        self.offsets: dict[int, dict[int, int]] = {}
        self.ends: dict[int, int] = {}
        for place, process in enumerate(processes):
            for task in process.running:
                self.running.setdefault(task, []).append(place)
            for task, offset in process.offsets.items():
                self.offsets.setdefault(task, {})[place] = offset
            for task, offset in process.ends.items():
                self.ends[task] = max(offset, self.ends.get(task, 0))

    def caught_up(self, task: int, acceptable: int) -> list[int]:
        """Return the processes that are caught up on a task. An end offset reported by one process applies to all."""
        offsets = self.offsets.get(task, {})
        found = [place for place in self.running.get(task, ()) if place not in offsets]
        if task in self.ends:
            least = self.ends[task] - acceptable
            found += (place for place, offset in offsets.items() if offset >= least)
        return found


class _Plan:
    """The tasks of all processes while they are planned. Processes are numbered in the order of their ids."""

    def __init__(self, processes: list[_Process]) -> None:
        self.processes = processes
        self.holder: dict[int, int] = {}

    def spread(self, tasks: Iterable[int]) -> None:
        """Give active tasks to the processes with the smallest load, in turn."""
        heap = [(process.load, place) for place, process in enumerate(self.processes)]
        heapify(heap)
        for task in tasks:
            place = heap[0][1]
            self.processes[place].active.add(task)
            self.holder[task] = place
            heapreplace(heap, (self.processes[place].load, place))

    def replicate(self, tasks: Iterable[int], replicas: int) -> None:
        """Give standby tasks to processes that do not have the task, those with the smallest load first."""
        heap = [self._turn(place) for place in range(len(self.processes))]
        heapify(heap)
        for task in tasks:
            passed = []
            for _ in range(replicas):
                while True:
                    turn = heappop(heap)
                    process = self.processes[turn[2]]
                    if task not in process.active and task not in process.standby:
                        break
                    passed.append(turn)
                process.standby.add(task)
                passed.append(self._turn(turn[2]))
            for turn in passed:
                heappush(heap, turn)

    def _turn(self, place: int) -> tuple[float, int, int]:
        """Return the rank of a process for standby tasks.

        Processes with the same load take turns, and the turns shift by one with each task, so that the standby tasks
        for one process spread over all others.
        """
        process = self.processes[place]
        return (process.load, (place + process.count - 1) % len(self.processes), place)

    def wait_for_state(self, tasks: Iterable[int], spec: StreamsSpec) -> None:
        """Leave tasks on processes that have their state, and warm up the planned processes, rarest state first."""
        warmups = spec.warmup_replicas
        progress = _Progress(self.processes)
        caught_up = {task: progress.caught_up(task, spec.acceptable_recovery_lag) for task in tasks}
        for task in sorted(caught_up, key=lambda task: (len(caught_up[task]), task)):
            planned = self.holder[task]
            keeper = self._keeper(task, planned, caught_up[task], progress)
            if keeper == planned:
                continue
            if task in self.processes[keeper].standby:
                self.processes[keeper].standby.remove(task)
                self.processes[planned].standby.add(task)
            elif warmups > 0:
                warmups -= 1
                self.processes[planned].warmup.add(task)
            self.processes[planned].active.remove(task)
            self.processes[keeper].active.add(task)
            self.holder[task] = keeper

    def _keeper(self, task: int, planned: int, caught_up: list[int], progress: _Progress) -> int:
        """Return the process that is to run a task now."""
        if planned in caught_up:
            return planned
        candidates = caught_up or progress.running.get(task, [])
        if candidates:
            return min(candidates, key=lambda place: self._preference(task, place))
        offsets = progress.offsets.get(task, {})
        return max(offsets, key=lambda place: (offsets[place], place == planned, -place), default=planned)

    def _preference(self, task: int, place: int) -> tuple[bool, float, int]:
        process = self.processes[place]
        return (task not in process.running, process.load, place)
