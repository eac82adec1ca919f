"""One operation against one shard: a request, a timer, or the result of a background task.

An operation reads the state, emits records, and returns a value or a future of it. Its result is delivered when the
records are committed. An ``ApiError`` undoes all its changes. Any other exception is a bug: it also undoes the
operation, and propagates to the caller. Changes of soft state and of timers are not undone, except for ``stop_timer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar

from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.coordinator_timer import CoordinatorTimer
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import BackgroundTask, CoordinatorOutput
from kafka_msgs.groups.runtime.uncommitted_changes import UncommittedChanges
from kafka_msgs.groups.runtime.undo_log import SoftState
from kafka_msgs.internal_topics.records import NO_PRODUCER, TopicRecord
from kafka_msgs.message import Message

__all__ = ["Record", "ShardAccess", "ShardOperation"]

T = TypeVar("T")

Record: TypeAlias = tuple[Message, Message | None]
"""A key and its value, or None for a tombstone."""


class ShardAccess(Protocol):
    """The interface of a shard for its operations."""

    partition: int
    topic: str
    state: Any
    soft: SoftState
    timers: CoordinatorTimer
    work: dict[str, BackgroundTask]
    changes: UncommittedChanges

    @property
    def output(self) -> CoordinatorOutput: ...

    def replay(self, key: Message, value: Message | None, index: int, producer_id: int) -> None: ...

    def read(self, operation: Callable[[Any], T]) -> T: ...

    def submit(self, operation: Callable[[Any], T | Future[T]]) -> Future[T]: ...

    def enqueue(self, event: Callable[[], None]) -> None: ...

    def postpone(self, event: Callable[[], None]) -> None: ...

    def start_work(
        self, key: str, run: Callable[[], Any], then: Callable[[Any, Any, Exception | None], None]
    ) -> bool: ...


class ShardOperation:
    """The context of an operation. ``state`` is hard state, which only ``emit`` changes. ``soft`` is soft state.

    ``timers`` are the timers of the shard. ``atomic`` may be set to False if the records may be split into several
    batches.
    """

    __slots__ = (
        "_reply", "_shard", "_stopped", "atomic", "callbacks", "producer_id", "records", "soft", "state", "timers"
    )  # fmt: skip

    def __init__(
        self, shard: ShardAccess, producer_id: int = NO_PRODUCER, reply: Callable[[Future[Any]], None] | None = None
    ) -> None:
        self._shard = shard
        self._reply = reply
        self._stopped: list[Callable[[], None]] = []
        self.producer_id = producer_id
        self.state: Any = shard.state
        self.soft = shard.soft
        self.timers = shard.timers
        self.records: list[TopicRecord] = []
        self.callbacks: list[Callable[[ApiError | None], None]] = []
        self.atomic = True

    @property
    def partition(self) -> int:
        """The partition of this shard."""
        return self._shard.partition

    @property
    def now(self) -> int:
        """The time in milliseconds. In a callback it is the time of the callback."""
        return self.timers.clock.now

    def new_future(self) -> Future[Any]:
        """Return a future for the response to the request of this operation. The operation returns it."""
        promise: Future[Any] = Future()
        if self._reply is not None:
            promise.add_done_callback(self._reply)
        return promise

    def emit(self, key: Message, value: Message | None, version: int | None = None) -> None:
        """Append a record, and apply it immediately. A value of None is a tombstone.

        ``version`` is the version of the value; the default is the highest version.
        """
        if version is None and value is not None:
            version = value.INFO.versions.highest
        self._shard.replay(key, value, len(self.records), self.producer_id)
        self.records.append(
            TopicRecord(topic=self._shard.topic, key=key, value=value, version=version, producer_id=self.producer_id)
        )

    def emit_all(self, records: Iterable[Record]) -> None:
        """Append and apply records, in order."""
        for key, value in records:
            self.emit(key, value)

    def at_last_commit(self, check: Callable[[Any], T]) -> T:
        """Return the result of ``check`` for the state as of the last committed record. Call it before any ``emit``."""
        return self._shard.read(check)

    def set_derived(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute that is derived from hard state and from the topics of the cluster, and is not recorded.

        It counts as a change of the next batch: it is undone if an append fails, and the state as of the last committed
        record does not have it before the next batch is committed. It stays if the current operation fails before it
        changes anything else.
        """
        self._shard.changes.set_derived(target, attribute, value)

    def on_committed(self, callback: Callable[[ApiError | None], None]) -> None:
        """Call ``callback`` with None when the records of this operation are committed, or with the error if they fail.

        After an error the changes are undone already. The callback repairs soft state.
        """
        self.callbacks.append(callback)

    def stop_timer(self, key: str) -> None:
        """Cancel the timer of a key. If the append of this operation fails, the timer is restored."""
        put_back = self.timers.cancel_restorable(key)
        if put_back is not None:
            self._stopped.append(put_back)

    def restore_timers(self) -> None:
        """Restore the timers that this operation stopped. The shard calls this after it undoes the operation."""
        for put_back in self._stopped:
            put_back()

    def submit(self, operation: Callable[[Any], T | Future[T]]) -> Future[T]:
        """Run another operation after this one. Return the future of its result.

        This also works after the operation has ended, such as in a callback.
        """
        return self._shard.submit(operation)

    def run_after(self, event: Callable[[], None]) -> None:
        """Call ``event`` after the current operation, and after events that were enqueued before."""
        self._shard.enqueue(event)

    def run_at_next_tick(self, event: Callable[[], None]) -> None:
        """Call ``event`` after all current work: at the next tick, even if the shard has resigned from the partition.

        The event runs its operations with ``submit``.
        """
        self._shard.postpone(event)

    def run_in_background(
        self, key: str, work: Callable[[], T], then: Callable[[Any, T | None, Exception | None], None]
    ) -> bool:
        """Run ``work`` in the background, then run ``then`` as an operation with the result or the exception.

        Return False, without starting the work, if a task with that key is pending.
        """
        return self._shard.start_work(key, work, then)

    def has_background_task(self, key: str) -> bool:
        """Return whether a task with that key is pending."""
        return key in self._shard.work
