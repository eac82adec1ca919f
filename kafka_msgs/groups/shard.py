"""One partition of ``__consumer_offsets`` and its groups.

A shard runs operations: requests, timers, and results of background tasks. It appends the records of an operation as
one batch. The response waits until the batch is committed. If the append fails, the operation is undone. This module
defines the order of these events, following ``org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime``: load,
elect, resign, and deferred writes. The protocols define the operations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError, InternalError
from kafka_msgs.groups import shard_lifecycle
from kafka_msgs.groups.coordinator_timer import CoordinatorTimer, Operation, Timer
from kafka_msgs.groups.future import Future
from kafka_msgs.groups.group_protocol import ProducerIdAndEpoch, TopicChange
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.output import NO_EPOCH, BackgroundTask, MarkerAppend, RecordAppend
from kafka_msgs.groups.shard_runtime import VALID_TRANSITIONS, CoordinatorState, DeferredWrite, ShardRuntime
from kafka_msgs.groups.shard_state import ShardState, SoftState, subscribe
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.groups.uncommitted_changes import UncommittedChanges
from kafka_msgs.groups.undo_log import WITHOUT_UNDO
from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, UnknownRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.message import Message

__all__ = ["NO_TRANSACTION", "Shard"]

T = TypeVar("T")

NO_TRANSACTION: Final = ProducerIdAndEpoch(NO_PRODUCER, NO_EPOCH)
"""The producer of records outside a transaction."""

_SILENT: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID,
    }
)  # fmt: skip
"""Errors after which a timer is dropped: the shard no longer serves requests, or the member does not exist."""


class Shard:
    """A partition of ``__consumer_offsets`` with its groups. ``image`` has the topics of the cluster."""

    def __init__(self, partition: int, runtime: ShardRuntime, image: TopicsImage) -> None:
        self.partition = partition
        self.runtime = runtime
        self.image = image
        self.status = CoordinatorState.INITIAL
        self.epoch = -1
        self.timers = CoordinatorTimer(runtime.clock)
        self.work: dict[str, BackgroundTask] = {}
        self._reset()

    def _reset(self) -> None:
        self.state = ShardState(self.runtime.simple_group)
        self.soft = SoftState()
        self._changes = UncommittedChanges(repeats=self.runtime.quirks.failed_append_repeats)
        self.written = self.committed = 0
        self._waiting: deque[DeferredWrite] = deque()

    # Leadership

    def elect(self, epoch: int) -> bool:
        """Become the leader at an epoch. Return whether the records must be loaded now."""
        if epoch <= self.epoch:
            return False
        self.epoch = epoch
        if CoordinatorState.LOADING not in VALID_TRANSITIONS[self.status]:
            return False
        self._reset()
        self._move(CoordinatorState.LOADING)
        return True

    def load(self, records: Iterable[InternalRecord | TransactionEnd]) -> None:
        """Apply records of the log, in order. Records of types without an applier are ignored, as in Kafka."""
        state, appliers, position = self.state, self.runtime.appliers, self.written
        for record in records:
            if isinstance(record, TransactionEnd):
                self._apply_end_transaction(WITHOUT_UNDO, record.producer_id, record.committed)
            elif not isinstance(record, UnknownRecord):
                state.position = position
                state.now = self.runtime.clock.now
                state.producer_id = record.producer_id
                applier = appliers.get(type(record.key))  # type: ignore[arg-type]
                if applier is not None:
                    applier(state, WITHOUT_UNDO, record.key, record.value)
            position += 1
        self.written = self.committed = position

    def loaded(self, end: int) -> None:
        """Start to serve requests. ``end`` is the offset after the last record of the log."""
        self._move(CoordinatorState.ACTIVE)
        self.written = self.committed = max(end, self.written)
        self._run(shard_lifecycle.on_partition_loaded, self.runtime)

    def load_failed(self) -> None:
        """Record that the records could not be loaded."""
        self._unload(CoordinatorState.FAILED)

    def resign(self, epoch: int | None) -> bool:
        """Resign from the partition, unless a later epoch has it. Return whether the shard resigned."""
        if epoch is not None and self.epoch >= epoch:
            return False
        self._unload(CoordinatorState.CLOSED)
        return True

    def _move(self, status: CoordinatorState) -> None:
        if status not in VALID_TRANSITIONS[self.status]:
            reason = f"partition {self.partition} was {self.status.value} and cannot become {status.value}"
            raise InternalError(reason=reason)
        self.status = status

    def _unload(self, status: CoordinatorState) -> None:
        was_active = self.status is CoordinatorState.ACTIVE
        self._move(status)
        self.timers.cancel_all()
        self.work.clear()
        error = GroupError(error=ErrorCode.NOT_COORDINATOR)
        for step in self._changes.waiting():
            step.complete(error)
        if was_active:
            shard_lifecycle.on_partition_unloaded(OperationContext(self), self.runtime)
            if self.runtime.quirks.timers_outlive_leadership:
                return
            self.timers.cancel_all()
        self._reset()

    # Operations

    def require_active(self) -> None:
        """Raise ``GroupError`` if the shard does not serve requests."""
        if self.status is not CoordinatorState.ACTIVE:
            loading = self.status is CoordinatorState.LOADING
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR
            raise GroupError(error=code)

    def write(
        self,
        operation: Callable[[OperationContext], Any],
        done: Callable[[Any, GroupError | None], None],
        producer: ProducerIdAndEpoch = NO_TRANSACTION,
        reply: Callable[[Future[Any]], None] | None = None,
    ) -> None:
        """Run an operation. ``done`` is called with its value, or with its error, when all its records are committed.

        ``reply`` is called with the future of the operation when it is settled.
        """
        step = DeferredWrite(done)
        self._changes.begin()
        op = OperationContext(self, producer.id, reply)
        try:
            self.require_active()
            step.value = operation(op)
            step.callbacks = op.callbacks
            if op.records:
                self._append(op, producer, step)
        except GroupError as error:
            self._undo_operation(op)
            step.complete(error)
            return
        except BaseException:
            self._undo_operation(op)
            raise
        if not op.records:
            flight = self._changes.last
            if flight is None:
                step.complete(None)
            else:
                flight.waiting.append(step)
                self._wait(step)

    def _undo_operation(self, op: OperationContext) -> None:
        self._changes.undo_operation()
        op.restore_timers()

    def _append(self, op: OperationContext, producer: ProducerIdAndEpoch, step: DeferredWrite) -> None:
        batch = RecordAppend(
            partition=self.partition,
            records=tuple(op.records),
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            atomic=op.atomic,
        )
        self._append_and_defer(batch, step)
        self._wait(step)

    def _append_and_defer(self, batch: RecordAppend | MarkerAppend, step: DeferredWrite) -> None:
        """Append a batch. If that fails, all changes after the previous batch are undone."""
        try:
            self.written = self.runtime.append(batch)
        except GroupError:
            self._changes.fail_batch()
            raise
        self.runtime.outcome.batches.append(batch)
        self._changes.record_append(self.written, step)

    def _wait(self, step: DeferredWrite) -> None:
        """Defer the completion of an operation until the commit, for ``offsets.commit.timeout.ms`` at most."""
        clock = self.runtime.clock
        step.deadline = clock.now + self.runtime.config.offsets_commit_timeout_ms
        step.arrival = clock.arrive()
        self._waiting.append(step)

    def read(self, operation: Callable[[OperationContext], T]) -> T:
        """Run an operation on the state as of the last committed record. Raises ``GroupError``."""
        self.require_active()
        with self._changes.at_last_commit():
            return operation(OperationContext(self))

    def replay(self, key: Message, value: Message | None, index: int, producer_id: int) -> None:
        """Apply the record of that index in the batch of the current operation."""
        state = self.state
        state.position = self.written + index
        state.now = self.runtime.clock.now
        state.producer_id = producer_id
        try:
            self.runtime.appliers[type(key)](state, self._changes.journal, key, value)
        except GroupError:
            self._changes.mark_misapplied()
            raise

    def set_derived(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute that is not recorded. It counts as a change of the next batch.

        It stays if the current operation fails before it changes anything else.
        """
        self._changes.set_derived(target, attribute, value)

    def create_simple_group(self, group_id: str) -> None:
        """Create a group without a record, and keep it even if the current operation fails."""
        self._changes.journal.set(self.state.groups, group_id, self.state.new_simple_group(group_id))
        self._changes.keep()

    def forget_group(self, group_id: str) -> None:
        """Remove a group without a record, for the quirk ``late_join_forgets_group``."""
        self.detach_group(group_id, ())
        self._changes.keep()

    def detach_group(self, group_id: str, topics: Iterable[str]) -> None:
        """Undo the changes of the operation, and remove the group. Its tombstones then have no effect.

        ``topics`` is the group's own table of its subscriptions.
        """
        self._changes.undo_operation()
        self._changes.journal.delete(self.state.groups, group_id)
        subscribe(self.state, self._changes.journal, group_id, topics, ())

    def commit(self, offset: int) -> None:
        """Record that all records before ``offset`` are committed, and complete the operations that wait for them."""
        if self.status is not CoordinatorState.ACTIVE:
            return
        self.committed = max(self.committed, offset)
        for step in self._changes.committed(offset):
            step.complete(None)
        while self._waiting and self._waiting[0].completed:
            self._waiting.popleft()

    def end_transaction(
        self, producer: ProducerIdAndEpoch, committed: bool, done: Callable[[Any, GroupError | None], None]
    ) -> None:
        """Write the marker that ends a transaction, and apply it."""
        step = DeferredWrite(done)
        self._changes.begin()
        try:
            self.require_active()
            self._apply_end_transaction(self._changes.journal, producer.id, committed)
            marker = MarkerAppend(
                partition=self.partition, producer_id=producer.id, producer_epoch=producer.epoch, committed=committed
            )
            self._append_and_defer(marker, step)
        except GroupError as error:
            self._changes.undo_operation()
            step.complete(error)
        else:
            self._wait(step)

    def _apply_end_transaction(self, changes: Any, producer_id: int, committed: bool) -> None:
        for protocol in self.runtime.protocols:
            if protocol.apply_end_transaction is not None:
                protocol.apply_end_transaction(self.state, changes, producer_id, committed)

    def submit(self, operation: Callable[[OperationContext], T | Future[T]]) -> Future[T]:
        """Run an operation after the current one. Return the future of its value."""
        promise: Future[T] = Future()

        def settle(value: Any, error: GroupError | None) -> None:
            if error is not None:
                promise.fail(error)
            elif isinstance(value, Future):
                value.add_done_callback(promise.copy_from)
            else:
                promise.resolve(value)

        self.runtime.enqueue(lambda: self.write(operation, settle))
        return promise

    def postpone(self, event: Callable[[], None]) -> None:
        """Call ``event`` at the next tick of the coordinator."""
        self.runtime.postpone(event)

    # Timers and background tasks

    def next_deadline(self) -> tuple[int, int, Timer | DeferredWrite] | None:
        """Return the timer or deferred write that is due first: its deadline, its order, and itself."""
        waiting = self._waiting
        while waiting and waiting[0].completed:
            waiting.popleft()
        timer = self.timers.next()
        if waiting and (timer is None or (waiting[0].deadline, waiting[0].arrival) < (timer.deadline, timer.arrival)):
            return waiting[0].deadline, waiting[0].arrival, waiting[0]
        return None if timer is None else (timer.deadline, timer.arrival, timer)

    def shift(self, ms: int) -> None:
        """Move all timers, and the deadlines of deferred writes, by ``ms``."""
        self.timers.shift(ms)
        for step in self._waiting:
            step.deadline += ms

    def fire(self, due: Timer | DeferredWrite, *, replaced: bool = False) -> None:
        """Run a timer that is due, or fail a deferred write that has timed out.

        ``replaced`` is set if another shard serves the partition. A timer that outlived the leadership then runs on the
        groups of this former shard.
        """
        if isinstance(due, DeferredWrite):
            due.complete(GroupError(error=ErrorCode.REQUEST_TIMED_OUT))
            return
        operation = self.timers.pop(due)
        self.runtime.outcome.expired.append((due.key, self.runtime.clock.now))
        if replaced:
            operation(OperationContext(self))
        else:
            self.write(operation, lambda _, error: self._fired(due, operation, error))

    def _fired(self, timer: Timer, operation: Operation, error: GroupError | None) -> None:
        if error is not None and error.error not in _SILENT and timer.retry_backoff is not None:
            self.timers.schedule(timer.key, timer.retry_backoff, operation, retry_backoff_ms=timer.retry_backoff)

    def start_work(
        self, key: str, run: Callable[[], Any], then: Callable[[OperationContext, Any, Exception | None], None]
    ) -> bool:
        """Add a background task to the output, unless a task with that key is pending. Return whether it was added."""
        if key in self.work:
            return False
        work = BackgroundTask(partition=self.partition, key=key, run=run, on_done=then)
        self.work[key] = work
        self.runtime.outcome.background.append(work)
        return True

    def finish_work(self, work: BackgroundTask, value: Any, error: Exception | None) -> None:
        """Run the operation that follows a background task. Cancelled or replaced tasks are ignored."""
        if self.work.get(work.key) is not work:
            return

        def follow(op: OperationContext) -> None:
            del self.work[work.key]
            work.on_done(op, value, error)

        self._run(follow)
        if self.work.get(work.key) is work:
            del self.work[work.key]

    # Topics

    def change_image(self, change: TopicChange) -> None:
        """Set the new topics of the cluster, and notify the groups whose topics changed."""
        self.image = change.after
        if self.status is CoordinatorState.ACTIVE:
            self._run(shard_lifecycle.on_topics_changed, self.runtime, change)

    def delete_topics(self, change: TopicChange) -> None:
        """Run the operations that follow the deletion of topics."""
        for protocol in self.runtime.protocols:
            for follow in protocol.on_topics_deleted:
                self.runtime.enqueue(partial(self._run, follow, change))

    def creation_failed(self, group_id: str, reason: str) -> None:
        """Notify a group that its topics could not be created."""
        for protocol in self.runtime.protocols:
            if protocol.on_topic_creation_failed is not None:
                self._run(protocol.on_topic_creation_failed, group_id, reason)

    def clean_up(self) -> None:
        """Run the cleanup of the protocols."""
        for protocol in self.runtime.protocols:
            if protocol.cleanup is not None:
                self.runtime.enqueue(partial(self._run, protocol.cleanup))

    def _run(self, step: Callable[..., Any], *facts: Any) -> None:
        """Run an operation without a caller that waits for it."""
        self.write(lambda op: step(op, *facts), lambda _, error: None)
