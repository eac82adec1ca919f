"""The context of handlers, timers and background tasks: one operation against one shard.

A handler is a function. It reads the state, emits records, and returns the response or a future of it::

    def heartbeat(
        op: OperationContext, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse | Future[HeartbeatResponse]:
        group = op.state.groups.get(request.group_id)
        if group is None:
            raise GroupError(error=ErrorCode.GROUP_ID_NOT_FOUND, message=f"Group {request.group_id} not found.")
        op.emit(key, value)
        op.timers.schedule(f"heartbeat-{group.group_id}", 10_000, expire)
        return HeartbeatResponse()

The response is sent when the records are committed. A handler whose response waits for other members returns
``op.new_future()``, and the response is sent when that future is settled. A ``GroupError`` becomes a response with its
error code, after all changes of the operation are undone. Any other exception is a bug: it also undoes the operation,
and propagates to the caller. Changes of soft state and of timers are not undone, except for ``stop_timer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_msgs.errors import GroupError
from kafka_msgs.groups.config import CoordinatorConfig, ForcedTarget, GroupConfig
from kafka_msgs.groups.coordinator_timer import CoordinatorTimer
from kafka_msgs.groups.future import Future
from kafka_msgs.groups.metrics import Metrics
from kafka_msgs.groups.profiles import Profile, Quirks
from kafka_msgs.groups.shard_state import ShardState, SoftState
from kafka_msgs.groups.share_persister import SharePersister
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.internal_topics.records import NO_PRODUCER, TopicRecord
from kafka_msgs.message import Message

if TYPE_CHECKING:
    from kafka_msgs.groups.shard import Shard

__all__ = ["OFFSETS_TOPIC", "OperationContext"]

T = TypeVar("T")

OFFSETS_TOPIC: Final = "__consumer_offsets"


class OperationContext:
    """One operation against one shard.

    ``image`` has the topics of the cluster. ``state`` is hard state, which only ``emit`` changes. ``soft`` is soft
    state. ``timers`` are the timers of the shard. ``atomic`` may be set to False if the records may be split into
    several batches.
    """

    __slots__ = (
        "_reply",
        "_shard",
        "_stopped",
        "atomic",
        "callbacks",
        "config",
        "image",
        "metrics",
        "producer_id",
        "profile",
        "quirks",
        "records",
        "soft",
        "state",
        "timers",
        "topics_to_create",
    )

    def __init__(
        self, shard: Shard, producer_id: int = NO_PRODUCER, reply: Callable[[Future[Any]], None] | None = None
    ) -> None:
        self._shard = shard
        self._reply = reply
        self._stopped: list[Callable[[], None]] = []
        self.producer_id = producer_id
        self.image: TopicsImage = shard.image
        self.config: CoordinatorConfig = shard.runtime.config
        self.profile: Profile = shard.runtime.profile
        self.quirks: Quirks = shard.runtime.quirks
        self.metrics: Metrics = shard.runtime.metrics
        self.state: ShardState = shard.state
        self.soft: SoftState = shard.soft
        self.timers: CoordinatorTimer = shard.timers
        self.records: list[TopicRecord] = []
        self.callbacks: list[Callable[[GroupError | None], None]] = []
        self.topics_to_create: list[Any] = []
        self.atomic = True

    @property
    def partition(self) -> int:
        """The partition of ``__consumer_offsets`` of this shard."""
        return self._shard.partition

    @property
    def now(self) -> int:
        """The time in milliseconds. In a callback it is the time of the callback."""
        return self._shard.runtime.clock.now

    @property
    def topology_plugin(self) -> Any:
        """The coordinator's plugin for topology descriptions, or None."""
        return self._shard.runtime.plugin

    @property
    def share_persister(self) -> SharePersister:
        """The store for the state of share partitions."""
        return self._shard.runtime.share_states

    def forced_target(self, group_id: str) -> ForcedTarget | None:
        """Return the target assignment that a test forces on a consumer group, or None."""
        return self._shard.runtime.forced_targets.get(group_id)

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the config of a group."""
        return self._shard.runtime.group_config(group_id)

    def new_future(self) -> Future[Any]:
        """Return a future for the response to the request of this operation. The handler returns it."""
        promise: Future[Any] = Future()
        if self._reply is not None:
            promise.add_done_callback(self._reply)
        return promise

    def new_id(self) -> str:
        """Return a new id: the text of a random UUID."""
        return self._shard.runtime.new_id()

    def emit(self, key: Message, value: Message | None, version: int | None = None) -> None:
        """Append a record, and apply it immediately. A value of None is a tombstone.

        ``version`` is the version of the value; the default is the highest version.
        """
        if version is None and value is not None:
            version = value.INFO.versions.highest
        self._shard.replay(key, value, len(self.records), self.producer_id)
        self.records.append(
            TopicRecord(topic=OFFSETS_TOPIC, key=key, value=value, version=version, producer_id=self.producer_id)
        )

    def at_last_commit(self, check: Callable[[OperationContext], T]) -> T:
        """Return the result of ``check`` for the state as of the last committed record. Call it before any ``emit``."""
        return self._shard.read(check)

    def set_derived(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute that is derived from hard state and from the topics of the cluster, and is not recorded.

        It is undone if an append fails, and the state as of the last committed record does not have it before the next
        batch is committed.
        """
        self._shard.set_derived(target, attribute, value)

    def keep_simple_group(self, group_id: str) -> None:
        """Create a group without a record, for ``Quirks.commit_makes_group`` only."""
        self._shard.create_simple_group(group_id)

    def forget_group(self, group_id: str) -> None:
        """Remove a group without a record, for the quirk ``late_join_forgets_group``."""
        self._shard.forget_group(group_id)

    def detach_group(self, group_id: str, topics: Iterable[str]) -> None:
        """Remove a group from the state before its tombstones are emitted. The tombstones then have no effect.

        Earlier changes of this operation to the group are undone: Kafka applies no record of an operation in which a
        group of another kind replaces the group. ``topics`` is the group's own table of its subscriptions.
        """
        self._shard.detach_group(group_id, topics)

    def on_committed(self, callback: Callable[[GroupError | None], None]) -> None:
        """Call ``callback`` with None when the records of this operation are committed, or with the error if they fail.

        After an error the changes are undone already. The callback repairs soft state.
        """
        self.callbacks.append(callback)

    def stop_timer(self, key: str) -> None:
        """Cancel the timer of a key. If the append of this operation fails, the timer is restored."""
        put_back = self.timers.cancel_restorable(key)
        if put_back is not None and not self.quirks.failed_append_stops_timers:
            self._stopped.append(put_back)

    def restore_timers(self) -> None:
        """Restore the timers that this operation stopped. The shard calls this after it undoes the operation."""
        for put_back in self._stopped:
            put_back()

    def count_metric(self, name: str, number: int = 1) -> None:
        """Count events for the metrics when the records of this operation are committed."""
        self.on_committed(lambda error: self.metrics.record(name, number) if error is None else None)

    def create_topics(self, topics: Iterable[Any]) -> None:
        """Request topics from the broker (``CreatableTopic`` of CreateTopics), as part of the reply."""
        self.topics_to_create.extend(topics)

    def submit(self, operation: Callable[[OperationContext], T | Future[T]]) -> Future[T]:
        """Run another operation after this one. Return the future of its result.

        This also works after the operation has ended, such as in a callback.
        """
        return self._shard.submit(operation)

    def run_after(self, event: Callable[[], None]) -> None:
        """Call ``event`` after the current operation, and after events that were enqueued before."""
        self._shard.runtime.enqueue(event)

    def run_at_next_tick(self, event: Callable[[], None]) -> None:
        """Call ``event`` after all current work: at the next tick, even if the shard has resigned from the partition.

        The event runs its operations with ``submit``.
        """
        self._shard.postpone(event)

    def run_in_background(
        self, key: str, work: Callable[[], T], then: Callable[[OperationContext, T | None, Exception | None], None]
    ) -> bool:
        """Run ``work`` in the background, then run ``then`` as an operation with the result or the exception.

        Return False, without starting the work, if a task with that key is pending.
        """
        return self._shard.start_work(key, work, then)

    def has_background_task(self, key: str) -> bool:
        """Return whether a task with that key is pending."""
        return key in self._shard.work

    def cancel_background_task(self, key: str) -> None:
        """Cancel the task of a key. Its result is ignored."""
        self._shard.work.pop(key, None)

    def record_plugin_call(self, call: str) -> None:
        """Add a call of the plugin for topology descriptions to the output."""
        self._shard.runtime.outcome.plugin.append(call)
