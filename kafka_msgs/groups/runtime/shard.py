"""One partition of a coordinator's topic and its state.

A shard runs operations: requests, timers, and results of background tasks. It appends the records of an operation as
one batch. The response waits until the batch is committed. If the append fails, the operation is undone. This module
defines the order of these events, following ``org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime``: load,
elect, resign, and deferred writes. The coordinators define the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError, InternalError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.coordinator_timer import CoordinatorTimer, Operation, Timer
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import (
    BackgroundTask,
    CoordinatorOutput,
    MarkerAppend,
    ProducerIdAndEpoch,
    RecordAppend,
)
from kafka_msgs.groups.runtime.shard_runtime import OperationT, ShardRuntime, StateT
from kafka_msgs.groups.runtime.uncommitted_changes import DeferredWrite
from kafka_msgs.groups.runtime.undo_log import WITHOUT_UNDO, SoftState
from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, UnknownRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.message import Message

__all__ = ["NO_TRANSACTION", "VALID_TRANSITIONS", "CoordinatorState", "Shard"]


class CoordinatorState(Enum):
    """The state of a shard."""

    INITIAL = "Initial"
    """The shard exists, but has not been elected."""
    LOADING = "Loading"
    """The shard is loading the records of the partition."""
    ACTIVE = "Active"
    """The shard serves requests."""
    FAILED = "Failed"
    """The records could not be loaded. A later election tries again."""
    CLOSED = "Closed"
    """The shard has resigned from the partition."""


VALID_TRANSITIONS: Final[Mapping[CoordinatorState, frozenset[CoordinatorState]]] = {
    CoordinatorState.INITIAL: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.LOADING: frozenset({CoordinatorState.ACTIVE, CoordinatorState.FAILED, CoordinatorState.CLOSED}),
    CoordinatorState.ACTIVE: frozenset({CoordinatorState.CLOSED}),
    CoordinatorState.FAILED: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.CLOSED: frozenset(),
}
"""The valid transitions from each state of a shard."""


T = TypeVar("T")

NO_TRANSACTION: Final = ProducerIdAndEpoch()
"""The producer of records outside a transaction."""

_SILENT: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID,
    }
)  # fmt: skip
"""Errors after which a timer is dropped: the shard no longer serves requests, or the member does not exist."""


class Shard(Generic[StateT, OperationT]):
    """A partition of the topic with its state. ``fire`` runs a timer of the shard."""

    def __init__(
        self,
        partition: int,
        runtime: ShardRuntime[StateT, OperationT],
        fire: Callable[[Shard[StateT, OperationT], Timer], None],
    ) -> None:
        self.partition = partition
        self.runtime = runtime
        self.topic = runtime.definition.topic
        self.status = CoordinatorState.INITIAL
        self.epoch = -1
        self.timers = CoordinatorTimer(runtime.clock, lambda timer: fire(self, timer))
        self.work: dict[str, BackgroundTask] = {}
        self._new_operation = runtime.definition.new_operation
        self._reset()

    def _reset(self) -> None:
        self.state = self.runtime.definition.new_state()
        self.soft = SoftState()
        self.changes = self.runtime.definition.new_changes()
        self.written = self.committed = 0

    @property
    def output(self) -> CoordinatorOutput:
        """The output of the coordinator so far."""
        return self.runtime.output

    @property
    def is_active(self) -> bool:
        """Whether the shard serves requests."""
        return self.status is CoordinatorState.ACTIVE

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

    def load(self, records: Iterable[InternalRecord | TransactionEnd], first_offset: int | None) -> None:
        """Apply records of the log, in order. Records of types without an applier are ignored, as in Kafka."""
        state, definition = self.state, self.runtime.definition
        position = self.written if first_offset is None else first_offset
        for record in records:
            if isinstance(record, TransactionEnd):
                definition.apply_end_transaction(state, WITHOUT_UNDO, record.producer_id, record.committed)
            elif not isinstance(record, UnknownRecord):
                state.position = position
                state.now = self.runtime.clock.now
                state.producer_id = record.producer_id
                applier = definition.appliers.get(type(record.key))  # type: ignore[arg-type]
                if applier is not None:
                    applier(state, WITHOUT_UNDO, record.key, record.value)
            position += 1
        self.written = self.committed = position

    def loaded(self, end: int) -> None:
        """Start to serve requests. ``end`` is the offset after the last record of the log."""
        self._move(CoordinatorState.ACTIVE)
        self.written = self.committed = max(end, self.written)
        self.run(self.runtime.definition.on_loaded)

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
        error = GroupError(ErrorCode.NOT_COORDINATOR)
        for step in self.changes.waiting():
            step.complete(error)
        if was_active:
            definition = self.runtime.definition
            definition.on_unloaded(self.new_operation())
            if definition.timers_outlive_leadership:
                return
            self.timers.cancel_all()
        self._reset()

    # Operations

    def new_operation(self) -> OperationT:
        """Return the context of an operation without a request."""
        return self._new_operation(self, NO_PRODUCER, None)

    def require_active(self) -> None:
        """Raise ``GroupError`` if the shard does not serve requests."""
        if self.status is not CoordinatorState.ACTIVE:
            loading = self.status is CoordinatorState.LOADING
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR
            raise GroupError(code)

    def write(
        self,
        operation: Callable[[OperationT], Any],
        done: Callable[[Any, ApiError | None], None],
        producer: ProducerIdAndEpoch = NO_TRANSACTION,
        reply: Callable[[Future[Any]], None] | None = None,
    ) -> None:
        """Run an operation. ``done`` is called with its value, or with its error, when all its records are committed.

        ``reply`` is called with the future of the operation when it is settled.
        """
        step = DeferredWrite(done)
        self.changes.begin()
        op = self._new_operation(self, producer.id, reply)
        try:
            if self.status is not CoordinatorState.ACTIVE:
                self.require_active()
            step.value = operation(op)
            step.callbacks = op.callbacks
            if op.records:
                self._append(op, producer, step)
        except ApiError as error:
            self._undo_operation(op)
            step.complete(error)
            return
        except BaseException:
            self._undo_operation(op)
            raise
        if not op.records:
            flight = self.changes.last
            if flight is None:
                step.complete(None)
            else:
                flight.waiting.append(step)
                self.runtime.defer(step)

    def run(self, operation: Callable[[OperationT], Any]) -> None:
        """Run an operation without a caller that waits for it."""
        self.write(operation, lambda _, error: None)

    def _undo_operation(self, op: OperationT) -> None:
        self.changes.undo_operation()
        op.restore_timers()

    def _append(self, op: OperationT, producer: ProducerIdAndEpoch, step: DeferredWrite) -> None:
        batch = RecordAppend(
            partition=self.partition,
            records=tuple(op.records),
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            atomic=op.atomic,
        )
        self._append_and_defer(batch, step)

    def _append_and_defer(self, batch: RecordAppend | MarkerAppend, step: DeferredWrite) -> None:
        """Append a batch. If that fails, all changes after the previous batch are undone."""
        try:
            self.written = self.runtime.append(batch)
        except ApiError:
            self.changes.fail_batch()
            raise
        self.runtime.output.batches.append(batch)
        self.changes.record_append(self.written, step)
        self.runtime.defer(step)

    def read(self, operation: Callable[[OperationT], T]) -> T:
        """Run an operation on the state as of the last committed record. Raises ``ApiError``."""
        self.require_active()
        with self.changes.at_last_commit():
            return operation(self.new_operation())

    def replay(self, key: Message, value: Message | None, index: int, producer_id: int) -> None:
        """Apply the record of that index in the batch of the current operation."""
        state = self.state
        state.position = self.written + index
        state.now = self.runtime.clock.now
        state.producer_id = producer_id
        try:
            self.runtime.definition.appliers[type(key)](state, self.changes.journal, key, value)
        except ApiError:
            self.changes.mark_misapplied()
            raise

    def commit(self, offset: int) -> None:
        """Record that all records before ``offset`` are committed, and complete the operations that wait for them."""
        if self.status is not CoordinatorState.ACTIVE:
            return
        self.committed = max(self.committed, offset)
        for step in self.changes.committed(offset):
            step.complete(None)

    def end_transaction(
        self, producer: ProducerIdAndEpoch, committed: bool, done: Callable[[Any, ApiError | None], None]
    ) -> None:
        """Write the marker that ends a transaction, and apply it."""
        step = DeferredWrite(done)
        self.changes.begin()
        try:
            self.require_active()
            self.runtime.definition.apply_end_transaction(self.state, self.changes.journal, producer.id, committed)
            marker = MarkerAppend(
                partition=self.partition, producer_id=producer.id, producer_epoch=producer.epoch, committed=committed
            )
            self._append_and_defer(marker, step)
        except ApiError as error:
            self.changes.undo_operation()
            step.complete(error)

    def submit(self, operation: Callable[[OperationT], T | Future[T]]) -> Future[T]:
        """Run an operation after the current one. Return the future of its value."""
        promise: Future[T] = Future()

        def settle(value: Any, error: ApiError | None) -> None:
            if error is not None:
                promise.fail(error)
            elif isinstance(value, Future):
                value.add_done_callback(promise.copy_from)
            else:
                promise.resolve(value)

        self.runtime.events.append(lambda: self.write(operation, settle))
        return promise

    def enqueue(self, event: Callable[[], None]) -> None:
        """Call ``event`` after the current operation."""
        self.runtime.events.append(event)

    def postpone(self, event: Callable[[], None]) -> None:
        """Call ``event`` at the next tick of the coordinator."""
        self.runtime.postpone(event)

    # Timers and background tasks

    def fire(self, timer: Timer, *, replaced: bool) -> None:
        """Run a timer that is due.

        ``replaced`` is set if another shard serves the partition. A timer that outlived the leadership then runs on the
        state of this former shard.
        """
        operation = self.timers.pop(timer)
        self.runtime.output.expired.append((timer.key, self.runtime.clock.now))
        if replaced:
            operation(self.new_operation())
        else:
            self.write(operation, lambda _, error: self._fired(timer, operation, error))

    def _fired(self, timer: Timer, operation: Operation, error: ApiError | None) -> None:
        if error is not None and error.error not in _SILENT and timer.retry_backoff is not None:
            self.timers.schedule(timer.key, timer.retry_backoff, operation, retry_backoff_ms=timer.retry_backoff)

    def start_work(
        self, key: str, run: Callable[[], Any], then: Callable[[OperationT, Any, Exception | None], None]
    ) -> bool:
        """Add a background task to the output, unless a task with that key is pending. Return whether it was added."""
        if key in self.work:
            return False
        work = BackgroundTask(partition=self.partition, key=key, run=run, on_done=then)
        self.work[key] = work
        self.runtime.output.background.append(work)
        return True

    def finish_work(self, work: BackgroundTask, value: Any, error: Exception | None) -> None:
        """Run the operation that follows a background task. Cancelled or replaced tasks are ignored."""
        if self.work.get(work.key) is not work:
            return

        def follow(op: OperationT) -> None:
            del self.work[work.key]
            work.on_done(op, value, error)

        self.run(follow)
        if self.work.get(work.key) is work:
            del self.work[work.key]
