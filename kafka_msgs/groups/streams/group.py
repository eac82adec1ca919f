"""A streams group: its recorded state and the state derived from it. Kafka's ``StreamsGroup``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Final
from uuid import UUID

from attrs import frozen

from kafka_msgs.groups.group import CommitCheck, Committer
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_group import (
    LEAVE_EPOCH,
    DeadlineAndEpoch,
    ModernGroup,
    check_assignment_epoch,
    committing_member,
    stale,
)
from kafka_msgs.groups.operation import ShardState
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.groups.streams.configured_topology import ConfiguredTopology
from kafka_msgs.groups.streams.member import MemberState, StreamsGroupMember
from kafka_msgs.groups.streams.records import group_tombstones
from kafka_msgs.groups.streams.soft_state import StreamsSoftState
from kafka_msgs.groups.streams.tasks import NO_TARGET, NO_TASKS, TaskId, TasksTuple
from kafka_msgs.groups.streams.topology import StreamsTopology
from kafka_msgs.internal_topics.replay import GroupKind
from kafka_msgs.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kafka_msgs.messages.streams_group_metadata_value import LastAssignmentConfig, StreamsGroupMetadataValue

__all__ = ["NO_EPOCH", "UNCERTAIN", "RefinedAssignment", "StreamsGroup", "StreamsGroupState", "initial_rebalance_key"]

NO_EPOCH: Final = -1
"""The epoch of a missing topology or description."""

UNCERTAIN: Final = -2
"""The stored epoch while the effect of a plugin call is unknown."""


class StreamsGroupState(StrEnum):
    """The states of a streams group, as Kafka writes them."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@frozen
class RefinedAssignment:
    """The assignment that members reconcile to, for an assignment epoch. It does not change while the epoch stays."""

    epoch: int
    tasks: Mapping[str, TasksTuple]
    targets_version: object = None


_NOT_REFINED: Final = RefinedAssignment(-1, {})


class StreamsGroup(ModernGroup[StreamsGroupMember, TasksTuple]):
    """A group of the streams protocol. Appliers set its state; the other methods read it.

    ``validated_epoch`` is the epoch of the topology that was validated against the topics. ``configs`` are the configs
    of the last assignment. ``stored_description`` and ``failed_description`` are epochs of topology descriptions
    (KIP-1331). ``configured`` is the topology with partition counts, or None before the first heartbeat after a load.
    ``endpoint_members`` are the members with an endpoint, ``classic_members`` the members of the classic protocol.
    ``settled`` counts members in state ``STABLE`` by their epoch, so that the state of the group needs no iteration
    over its members. ``targets_version`` is replaced by a new object after each change of ``targets``.
    """

    __slots__ = (
        "active_processes",
        "classic_members",
        "configs",
        "configured",
        "endpoint_members",
        "failed_description",
        "refined",
        "settled",
        "standby_processes",
        "stored_description",
        "targets_version",
        "topology",
        "validated_epoch",
        "warmup_processes",
    )

    kind: ClassVar[GroupKind] = "streams"
    protocol_type: ClassVar[str] = "streams"
    soft_class: ClassVar[type[DeadlineAndEpoch]] = StreamsSoftState
    member_class: ClassVar[type[Any]] = StreamsGroupMember
    no_assignment: ClassVar[Mapping[str, Any]] = {"assigned": NO_TASKS, "revoking": NO_TASKS}

    soft: StreamsSoftState

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_epoch = NO_EPOCH
        self.configs: Mapping[str, str] = {}
        self.stored_description = NO_EPOCH
        self.failed_description = NO_EPOCH
        self.topology: StreamsTopology | None = None
        self.configured: ConfiguredTopology | None = None
        self.refined = _NOT_REFINED
        self.targets_version = object()
        self.settled: dict[int, int] = {}
        self.endpoint_members: dict[str, None] = {}
        self.classic_members: dict[str, None] = {}
        self.active_processes: dict[TaskId, str] = {}
        self.standby_processes: dict[TaskId, frozenset[str]] = {}
        self.warmup_processes: dict[TaskId, frozenset[str]] = {}

    def new_member(self, member_id: str) -> StreamsGroupMember:
        """Return a member whose metadata record has not been applied yet."""
        return StreamsGroupMember(member_id=member_id, epoch=LEAVE_EPOCH)

    def recount(
        self, state: ShardState, changes: Changes, old: StreamsGroupMember | None, new: StreamsGroupMember | None
    ) -> None:
        """Update the counts of members, and the processes that run a task."""
        if old is not None:
            self._release(changes, old)
            self._settle(changes, old, -1)
        if new is not None:
            self._hold(changes, new)
            self._settle(changes, new, 1)
        member = new or old
        assert member is not None
        self.soft.endpoints.pop(member.member_id, None)
        for is_one, table in (
            (new is not None and new.metadata.user_endpoint is not None, self.endpoint_members),
            (new is not None and new.classic is not None, self.classic_members),
        ):
            if is_one:
                changes.set(table, member.member_id, None)
            else:
                changes.delete(table, member.member_id)
        if new is None:
            self.soft.forget_member(member.member_id)
            self.forget_shutdown()

    def forget_shutdown(self) -> None:
        """End a request to shut down with the last member. Kafka checks this with each record of the group."""
        if not self.members:
            self.soft.shutdown_member = None

    def _settle(self, changes: Changes, member: StreamsGroupMember, step: int) -> None:
        if member.state == MemberState.STABLE:
            count = self.settled.get(member.epoch, 0) + step
            if count:
                changes.set(self.settled, member.epoch, count)
            else:
                changes.delete(self.settled, member.epoch)

    def _hold(self, changes: Changes, member: StreamsGroupMember) -> None:
        process_id = member.metadata.process_id
        for tasks in (member.assigned, member.revoking):
            for task in tasks.active:
                changes.set(self.active_processes, task, process_id)
            for held, table in ((tasks.standby, self.standby_processes), (tasks.warmup, self.warmup_processes)):
                for task in held:
                    changes.set(table, task, table.get(task, frozenset()) | {process_id})

    def _release(self, changes: Changes, member: StreamsGroupMember) -> None:
        process_id = member.metadata.process_id
        for tasks in (member.assigned, member.revoking):
            for task in tasks.active:
                if self.active_processes.get(task) == process_id:
                    changes.delete(self.active_processes, task)
            for held, table in ((tasks.standby, self.standby_processes), (tasks.warmup, self.warmup_processes)):
                for task in held:
                    left = table.get(task, frozenset()) - {process_id}
                    if left:
                        changes.set(table, task, left)
                    else:
                        changes.delete(table, task)

    @property
    def topology_epoch(self) -> int:
        """The epoch of the topology, or -1 without a topology."""
        return NO_EPOCH if self.topology is None else self.topology.epoch

    @property
    def state(self) -> StreamsGroupState:
        """The state of the group, derived from its records."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if self.settled.get(self.assignment_epoch, 0) < len(self.members):
            return StreamsGroupState.RECONCILING
        return StreamsGroupState.STABLE

    def state_name(self) -> str:
        """Return the name of the state as Kafka writes it."""
        return self.state.value

    def state_filter(self, op: GroupOperation) -> str:
        """Return the name of the state in lower case, see ``Quirks.streams_not_ready_apart``."""
        is_apart = op.quirks.streams_not_ready_apart and self.state is StreamsGroupState.NOT_READY
        return "not_ready" if is_apart else super().state_filter(op)

    def target_of(self, member_id: str) -> TasksTuple:
        """Return the tasks that a member reconciles to at the current assignment epoch."""
        refined = self.refined
        tasks = refined.tasks if refined.epoch == self.assignment_epoch else self.targets
        return tasks.get(member_id, NO_TARGET)

    # For reconciliation.

    def active_process(self, task: TaskId) -> str | None:
        """Return the process that runs the active task."""
        return self.active_processes.get(task)

    def has_standby(self, task: TaskId, process_id: str) -> bool:
        """Return whether a member of the process runs the standby task."""
        return process_id in self.standby_processes.get(task, ())

    def has_warmup(self, task: TaskId, process_id: str) -> bool:
        """Return whether a member of the process runs the warm-up task."""
        return process_id in self.warmup_processes.get(task, ())

    # For offsets.

    def validate_offset_commit(self, op: GroupOperation, committer: Committer) -> CommitCheck | None:
        """Check that a member may commit. At an older epoch it may commit the active tasks that it already had then."""
        member = committing_member(self, committer)
        if member is None:
            return None
        if self.topology is None:
            raise stale(member, "Topology is not available for offset commit validation.")
        return partial(_check_commit, self.topology, member, committer.epoch)

    def metadata_record(self, **changes: Any) -> Record:
        """Return the record of the group's own metadata, with changes: fields of ``StreamsGroupMetadataValue``."""
        configs: Mapping[str, str] = changes.pop("last_assignment_configs", self.configs)
        known = {
            "epoch": self.epoch,
            "metadata_hash": self.metadata_hash,
            "validated_topology_epoch": self.validated_epoch,
            "stored_description_topology_epoch": self.stored_description,
            "failed_description_topology_epoch": self.failed_description,
        }
        value = StreamsGroupMetadataValue(
            **(known | changes),
            last_assignment_configs=tuple(LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)),
        )
        return StreamsGroupMetadataKey(group_id=self.group_id), value

    def emit_tombstones(self, op: GroupOperation) -> None:
        """Emit the tombstones of all records of the group."""
        op.emit_all(group_tombstones(self.group_id, iter_kafka_order(self.members)))

    def cancel_timers(self, op: GroupOperation) -> None:
        """Cancel the timer of the initial rebalance."""
        op.stop_timer(initial_rebalance_key(self.group_id))

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a group with members reads the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of_source

    def expires(self, op: GroupOperation) -> bool:
        """Return whether the group may expire: with a stored description it stays until the plugin has deleted it."""
        return op.services.plugin is None or self.stored_description == NO_EPOCH


def _check_commit(
    topology: StreamsTopology, member: StreamsGroupMember, epoch: int, topic: str, topic_id: UUID, partition: int
) -> None:
    """Check that a member already had the task of a partition at an older epoch."""
    subtopology = topology.subtopology_of_source.get(topic)
    if subtopology is None:
        raise stale(member, f"Topic {topic} is not in the topology.")
    task = (subtopology.subtopology_id, partition)
    assigned_at = member.assigned.active.get(task, member.revoking.active.get(task))
    check_assignment_epoch(member, f"task {task[0]}-{task[1]}", assigned_at, epoch)


def initial_rebalance_key(group_id: str) -> str:
    """Return the key of the timer that delays the first assignment of an empty group."""
    return f"initial-rebalance-timeout-{group_id}"
