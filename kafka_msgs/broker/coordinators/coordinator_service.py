"""A coordinator of one broker, connected to the log of its topic, the leaders of its partitions and the clock."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.controller.image import NO_LEADER, MetadataDelta
from kafka_msgs.broker.coordinators.leadership import check_in_sync, find_log, iter_batches
from kafka_msgs.broker.log_manager import PartitionWatch
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.broker.storage import AppendOrigin, PartitionLog, VerificationGuard
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError, RecordWriteError
from kafka_msgs.groups.runtime.coordinator_runtime import CoordinatorRuntime
from kafka_msgs.groups.runtime.output import BackgroundTask, CoordinatorOutput, MarkerAppend, RecordAppend
from kafka_msgs.groups.runtime.record_batches import encode_batch
from kafka_msgs.groups.runtime.timer_queue import TimerHandle
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.records import RecordBatch

__all__ = ["CoordinatorService"]

C = TypeVar("C", bound=CoordinatorRuntime[Any, Any])


class CoordinatorService(ABC, Generic[C]):
    """A coordinator of one broker. A subclass creates ``coordinator``, whose ``append`` is ``self.append``.

    It is elected for a partition when its broker becomes the leader, and resigns when another broker does. In Kafka,
    ``BrokerMetadataPublisher`` does this. ``topic`` is the internal topic, and ``coordinator_epoch`` the epoch in the
    markers that the coordinator appends.
    """

    topic: ClassVar[str]
    coordinator: C

    def __init__(self, cluster: BrokerInterface, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.coordinator_epoch = 0
        self._logs: dict[int, tuple[PartitionLog, int]] = {}
        self._watches: dict[int, PartitionWatch] = {}
        self._timer: TimerHandle | None = None

    @classmethod
    def attach(cls, cluster: BrokerInterface) -> None:
        """Make the coordinators of a cluster follow its metadata, its clock, and the leaders of their topic."""
        cluster.image_listeners.append(partial(cls._for_each, cluster, lambda each, delta: each.apply_delta(delta)))
        cluster.clock_jump_listeners.append(
            partial(cls._for_each, cluster, lambda each, ms: each.coordinator.shift_timers(ms))
        )
        cluster.image_listeners.append(partial(cls._follow_leaders, cluster))

    @classmethod
    def _follow_leaders(cls, cluster: BrokerInterface, delta: MetadataDelta) -> None:
        for change in delta.leader_changes():
            before, after = change.before, change.after
            if change.topic == cls.topic and before is not None and before.leader != NO_LEADER:
                epoch = None if after is None else after.leader_epoch
                cls.of_broker(cluster, before.leader).resign(before.partition, epoch)
            if change.topic == cls.topic and after is not None and after.leader != NO_LEADER:
                log = find_log(cluster, change.topic, after.partition)
                if log is not None:
                    cls.of_broker(cluster, after.leader).elect(after.partition, after.leader_epoch, log)

    @classmethod
    def _for_each(cls, cluster: BrokerInterface, follow: Any, change: Any) -> None:
        for broker in cluster.brokers.values():
            service = broker.components.get(cls)
            if service is not None:
                follow(service, change)

    @classmethod
    def of_broker(cls, cluster: BrokerInterface, broker_id: int) -> Self:
        """Return the coordinator of a broker."""
        return cluster.brokers[broker_id].component(cls, lambda: cls(cluster, broker_id))

    @classmethod
    def of_call(cls, call: ServerCall[Any]) -> Self:
        """Return the coordinator of the broker that a request was sent to."""
        return cls.of_broker(call.cluster, call.session.broker_id)

    # Leadership

    def elect(self, partition: int, epoch: int, log: PartitionLog) -> None:
        """Load a partition that this broker leads."""
        self._logs[partition] = (log, epoch)
        if self.coordinator.elect(partition, epoch, now=self.cluster.now):
            self.cluster.long_work.begin(self._load(partition, log, epoch))

    def _load(self, partition: int, log: PartitionLog, epoch: int) -> Iterator[None]:
        """Load a partition one record at a time. Stop when another broker becomes the leader."""
        try:
            for batch in iter_batches(log):
                offset = batch.base_offset if isinstance(batch, RecordBatch) else None
                for record in decode_batches(log.topic, [batch]):
                    if self._logs.get(partition) != (log, epoch):
                        return
                    self.coordinator.load(partition, (record,), offset)
                    offset = None
                    yield
        except Exception:
            if self._logs.get(partition) == (log, epoch):
                self.settle(self.coordinator.load_failed(partition, now=self.cluster.now))
            raise
        if self._logs.get(partition) == (log, epoch):
            self.settle(self.coordinator.loaded(partition, log.log_end_offset, now=self.cluster.now))

    def resign(self, partition: int, epoch: int | None) -> None:
        """Unload a partition whose leader changed at an epoch. None means that the partition was deleted."""
        self.settle(self.coordinator.resign(partition, epoch, now=self.cluster.now))
        self._logs.pop(partition, None)
        watch = self._watches.pop(partition, None)
        if watch is not None:
            watch.cancel()

    def leads(self, partition: int) -> bool:
        """Return whether this broker leads a partition."""
        return partition in self._logs

    def apply_delta(self, delta: MetadataDelta) -> None:
        """Follow a change of the metadata."""

    # Interface for the coordinator

    def append(self, batch: RecordAppend | MarkerAppend) -> int:
        """Append a batch of the coordinator, and return the offset after it. Raises ``ApiError``."""
        log, epoch = self._logs[batch.partition]
        now = self.cluster.now
        check_in_sync(self.cluster, log)
        try:
            data = encode_batch(batch, timestamp=now, coordinator_epoch=self.coordinator_epoch)
            log.append(data, leader_epoch=epoch, now=now, origin=AppendOrigin.COORDINATOR, guard=self.guard(batch))
        except RecordWriteError as error:  # a marker with a producer id or epoch that no log accepts
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        self.coordinator.committed(batch.partition, log.high_watermark)
        if log.high_watermark < log.log_end_offset and batch.partition not in self._watches:
            follow = partial(self._follow_commits, batch.partition, log)
            self._watches[batch.partition] = self.cluster.log_manager.watch([(log.topic_id, log.partition)], follow)
        return log.log_end_offset

    def guard(self, batch: RecordAppend | MarkerAppend) -> VerificationGuard | None:
        """Return the guard of a batch in a transaction, or None."""
        return None

    def _follow_commits(self, partition: int, log: PartitionLog) -> None:
        """Complete the operations whose records are committed, until there are no uncommitted ones."""
        if log.high_watermark == log.log_end_offset:
            self._watches.pop(partition).cancel()
        self.settle(self.coordinator.committed(partition, log.high_watermark, now=self.cluster.now))

    # Coordinator output

    def settle(self, output: CoordinatorOutput | None = None) -> None:
        """Send the responses, run the background tasks, and schedule the next timer.

        Without an argument, the output of calls such as ``write``, which return none, is used.
        """
        if output is None:
            output = self.coordinator.take_output(now=self.cluster.now)
        while True:
            for answer in output.answers:
                answer.opaque(answer)
            if not output.background:
                break
            output = self._run_background(output.background)
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        due, timer = self.coordinator.next_timer, self._timer
        if timer is None or not timer.waiting:
            if due is not None:
                self._timer = self.cluster.timers.schedule(due, self._tick)
        elif due is None:
            timer.cancel()
        elif timer.at != due:
            timer.move(due)

    def _tick(self) -> None:
        self.settle(self.coordinator.tick(self.cluster.now))

    def _run_background(self, tasks: list[BackgroundTask]) -> CoordinatorOutput:
        """Run background tasks. Return their combined output."""
        merged = CoordinatorOutput()
        for task in tasks:
            value, error = None, None
            try:
                value = task.run()
            except Exception as failure:
                error = failure
            after = self.coordinator.complete_background_task(task, value, error, now=self.cluster.now)
            merged.answers += after.answers
            merged.background += after.background
        return merged
