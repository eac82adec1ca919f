"""The definition of a coordinator, and the services of the runtime that its shards share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen

from kafka_msgs.groups.runtime.coordinator_timer import TimerClock
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import CoordinatorOutput, MarkerAppend, RecordAppend
from kafka_msgs.groups.runtime.shard_operation import ShardAccess, ShardOperation
from kafka_msgs.groups.runtime.uncommitted_changes import DeferredWrite, UncommittedChanges
from kafka_msgs.groups.runtime.undo_log import Applier, Changes, HardState
from kafka_msgs.message import Message

__all__ = ["CoordinatorDefinition", "OperationT", "ShardRuntime", "StateT"]

StateT = TypeVar("StateT", bound=HardState)
OperationT = TypeVar("OperationT", bound=ShardOperation)


@frozen(kw_only=True)
class CoordinatorDefinition(Generic[StateT, OperationT]):
    """The parts that differ between coordinators: Kafka's ``CoordinatorShard`` and its builder.

    ``topic`` is the internal topic. ``new_state`` and ``new_operation`` create the hard state of a shard and the
    context of an operation. ``appliers`` has the applier of each key class. ``apply_end_transaction`` applies the end
    of a transaction: its arguments are the state, the changes, the producer id, and whether the transaction committed.
    ``on_loaded`` runs as an operation after a partition was loaded, and ``on_unloaded`` when the shard resigns from it.
    An uncommitted write fails after ``write_timeout_ms``.

    ``new_changes`` creates the uncommitted changes of a shard, and ``timers_outlive_leadership`` keeps timers after a
    resignation, both for comparisons with Kafka's runtime.
    """

    topic: str
    new_state: Callable[[], StateT]
    new_operation: Callable[[ShardAccess, int, Callable[[Future[Any]], None] | None], OperationT]
    appliers: Mapping[type[Message], Applier]
    write_timeout_ms: int
    apply_end_transaction: Callable[[StateT, Changes, int, bool], None] = lambda *end: None
    on_loaded: Callable[[OperationT], None] = lambda op: None
    on_unloaded: Callable[[OperationT], None] = lambda op: None
    timers_outlive_leadership: bool = False
    new_changes: Callable[[], UncommittedChanges] = UncommittedChanges


@define(kw_only=True, eq=False)
class ShardRuntime(Generic[StateT, OperationT]):
    """The services of a runtime that its shards share.

    ``events`` run after the current operation, in order. ``waiting`` has the uncommitted writes of all shards, in the
    order of their deadlines.
    """

    definition: CoordinatorDefinition[StateT, OperationT]
    append: Callable[[RecordAppend | MarkerAppend], int]
    postpone: Callable[[Callable[[], None]], None]
    clock: TimerClock = field(factory=TimerClock)
    events: deque[Callable[[], None]] = field(factory=deque)
    waiting: deque[DeferredWrite] = field(factory=deque)
    output: CoordinatorOutput = field(factory=CoordinatorOutput)

    def defer(self, write: DeferredWrite) -> None:
        """Defer the completion of an operation until the commit, for ``write_timeout_ms`` at most."""
        write.deadline = self.clock.now + self.definition.write_timeout_ms
        write.order = self.clock.next_order()
        self.waiting.append(write)

    def first_waiting(self) -> DeferredWrite | None:
        """Return the uncommitted write with the first deadline, or None."""
        waiting = self.waiting
        while waiting and waiting[0].completed:
            waiting.popleft()
        return waiting[0] if waiting else None
