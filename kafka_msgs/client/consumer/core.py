"""The logic of a consumer: subscription and polling, without sockets, clocks or threads.

Three kinds of background tasks run: the group membership, one fetch loop per broker, and the maintenance of metadata,
positions and automatic commits. A poll waits for their results (``fill``), and then takes records in its caller's frame
(``take``). It does not wait between the two steps, so no records are lost, and positions advance only with returned
records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assignment_manager import AssignmentManager
from kafka_msgs.client.consumer.classic import ClassicMembership
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.consumer_state import Callback, ConsumerState, Offsets, Subscription, refused
from kafka_msgs.client.consumer.fetcher import Fetcher
from kafka_msgs.client.consumer.housekeeping import Housekeeping
from kafka_msgs.client.consumer.membership import Membership
from kafka_msgs.client.consumer.modern import ModernMembership
from kafka_msgs.client.consumer.positions import Positions
from kafka_msgs.client.consumer.record_collector import Deserializer, RecordCollector
from kafka_msgs.client.consumer.record_taker import RecordTaker
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, Wait
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.scheduler import Task
from kafka_msgs.errors import (
    ClientClosedError,
    ClientError,
    OffsetPositionError,
)
from kafka_msgs.records import ConsumerRecord

if TYPE_CHECKING:
    from kafka_msgs.client.consumer.tables import TableBuilder

__all__ = ["ConsumerCore"]


_AT_ONCE: Final = 0.0
_SHORTEST: Final = 0.0005
"""The minimum wait of a poll without records, in seconds, so that even a series of short polls makes progress."""


class ConsumerCore:
    """The logic of one consumer."""

    def __init__(
        self,
        client: ClientCore,
        config: ConsumerConfig,
        *,
        random: Random | None = None,
        background: bool = False,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> None:
        self.client = client
        self.config = config
        self.state = ConsumerState.of(client, config)
        self.partitions = self.state.partitions
        self.positions = Positions(self.state)
        self.closed = False
        self._random = random or Random()
        self._assignment = AssignmentManager(self.state, self.positions, background=background)
        self._fetcher = Fetcher(client, config, self.partitions, self.state, self._assignment.report)
        self._keeper = Housekeeping(self.state, self.positions, self._fetcher)
        collector = RecordCollector(self.state, key_deserializer, value_deserializer)
        self.taker = RecordTaker(self.state, self._assignment, collector, lambda: self.needs_poll)
        self._member: Task[None] | None = None
        self._upkeep: Task[None] | None = None
        client.network.events.add(self)
        client.directory.metrics.add_gauge(self._gauges)

    @property
    def tasks(self) -> list[Task[None]]:
        """The running background tasks."""
        tasks = (self._member, self._upkeep, *self._fetcher.tasks)
        return [task for task in tasks if task is not None and not task.done]

    def _gauges(self, topic: str | None) -> dict[str, float]:
        """Return the current metrics of a topic or of all topics: the largest lag, and the number of partitions."""
        partitions = [each for each in self.partitions if topic in (None, each.name.topic)]
        lags = [each.lag for each in partitions if each.lag is not None]
        assigned = {"assigned-partitions": float(len(partitions))}
        return assigned | ({"records-lag-max": float(max(lags))} if lags else {})

    # Operations for the user

    def subscribe(
        self,
        topics: Collection[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics as a group member. The next poll joins the group."""
        if self.config.group_id is None:
            raise refused("group_id", None, "a subscription needs a group; without one, assign partitions")
        if bool(topics) == (pattern is not None):
            raise refused("topics", sorted(topics), "expected either topics or a pattern")
        if len(self.partitions) and self.state.membership is None:
            raise refused("topics", sorted(topics), "the consumer has assigned partitions; unassign them first")
        on_broker = isinstance(pattern, str) and self.config.group_protocol == "consumer"
        self.state.subscribe(
            Subscription(
                topics=frozenset(topics),
                pattern=None if pattern is None or on_broker else re.compile(pattern),
                broker_pattern=str(pattern) if on_broker else None,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
            )
        )

    def unsubscribe(self, deadline: float) -> Flow[None]:
        """Give up all partitions, and leave the group."""
        member, self._member = self._member, None
        if member is not None:
            member.cancel()
        membership = self.state.membership
        try:
            if membership is not None:
                if self.partitions.names:
                    yield from self._assignment.revoke_immediately(self.partitions.names)
                with suppress(ClientError):  # on failure, the coordinator waits until the session expires
                    yield from membership.leave(deadline)
        finally:
            self.state.membership, self.state.subscription = None, Subscription()
            self.state.drop()

    def set_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, without a group. Partitions already assigned keep their positions."""
        if self.state.subscription:
            raise refused("partitions", sorted(partitions), "the consumer has a subscription; unsubscribe first")
        wanted = frozenset(TopicPartition(*name) for name in partitions)
        with self.state.lock:
            self.partitions.remove(self.partitions.names - wanted)
            self.partitions.add(sorted(wanted))
        self.state.metadata_at = 0.0
        self.state.changed.notify()

    def seek(self, offsets: Offsets) -> None:
        """Continue at these offsets."""
        for name, offset in offsets.items():
            place = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            if place.offset < 0:
                raise OffsetPositionError(topic=name[0], partition=name[1], reason=f"{place.offset} is not an offset")
            partition = self.partitions[TopicPartition(*name)]
            with self.state.lock:
                partition.seek(place.offset, place.leader_epoch)
                self.state.note_returned(partition)
        self.state.changed.notify()

    def store_offsets(self, offsets: Offsets) -> None:
        """Store the offsets that the next commit commits. Any thread may call this."""
        if self.config.auto_offset_store:
            raise refused("auto_offset_store", True, "store_offsets needs auto_offset_store=False")
        with self.state.lock:
            for name, offset in offsets.items():
                partition = self.partitions[TopicPartition(*name)]
                if not self.state.is_current(partition):
                    reason = "the topic of the record was deleted and created again"
                    raise OffsetPositionError(topic=name[0], partition=name[1], reason=reason)
                partition.handled = offset

    def reset(self, names: Iterable[tuple[str, int]], to: int) -> None:
        """Continue at the start, at the end, or at a timestamp (ms). The offset is looked up later."""
        for name in names:
            partition = self.partitions[TopicPartition(*name)]
            with self.state.lock:
                partition.reset(to)
        self.state.changed.notify()

    def pause(self, names: Iterable[tuple[str, int]], *, paused: bool) -> None:
        """Pause or resume partitions: fetching and returning their records."""
        for name in names:
            self.partitions[TopicPartition(*name)].paused = paused
        self.state.changed.notify()

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The subscribed topics; for a client-side pattern, the known topics that match it."""
        return self._assignment.topics

    def close(self, deadline: float, *, done: bool = True) -> Flow[None]:
        """Auto-commit if enabled, leave the group, and end the fetch sessions.

        With ``done``, all returned records count as handled.
        """
        if self.closed:
            return
        self.closed = True
        self.client.network.events.discard(self)
        self.client.directory.metrics.remove_gauge(self._gauges)
        if done:
            self._mark_handled()
        try:
            if self.state.membership is None:
                yield from self.positions.auto_commit()
            yield from self.unsubscribe(deadline)
            if self._upkeep is not None:
                self._upkeep.cancel()
            self.state.arrived.notify()
            yield from self._fetcher.close(deadline)
        finally:
            for task in (self._member, self._upkeep):
                if task is not None:
                    task.cancel()
            self._fetcher.stop()
            self.state.arrived.notify()

    # Polling: waiting, in flows

    def fill(self, deadline: float) -> Flow[bool]:
        """Wait until records can be taken or an error can be raised. Return False at the deadline."""
        network = self.client.network
        self._begin()
        deadline = max(deadline, network.now() + _SHORTEST)
        try:
            while True:
                if self.closed:
                    raise ClientClosedError()
                if self._assignment.is_changing:
                    yield Wait((self.state.arrived.pending,), None)
                    continue
                self._fetcher.restart_loops()
                if self.taker.has_news:
                    yield Wait((), _AT_ONCE)
                    if not self._assignment.is_changing:
                        return True
                    continue
                if network.now() >= deadline:
                    return False
                yield Wait((self.state.arrived.pending, self.state.changed.pending), deadline)
        finally:
            self._assignment.in_poll = False
            self._assignment.polled_at = network.now()

    def _begin(self) -> None:
        """Start a poll, and start the required background tasks that are not running."""
        if self.closed:
            raise ClientClosedError()
        if self._assignment.in_poll:
            raise RuntimeError("another poll of this consumer is running")
        self._assignment.in_poll = True
        self._mark_handled()
        self.state.polled.notify()
        if self.state.subscription and self.state.membership is None:
            self.state.membership = self._make_membership()
            self._member = self._spawn(self.state.membership.run(), self._member_ended)
        if self._upkeep is None and (self.state.subscription or len(self.partitions)):
            self._upkeep = self._spawn(self._keeper.run(), self._upkeep_ended)
        self.state.drained.notify()

    def _spawn(self, flow: Flow[None], ended: Callable[[Task[None]], None]) -> Task[None]:
        """Run a flow in the background. The flow ends only by an error or by cancellation."""
        task = self.client.network.spawn(flow)
        if task.done:
            ended(task)
        else:
            task.add_done_callback(lambda: ended(task))
        return task

    def _member_ended(self, task: Task[None]) -> None:
        if not task.cancelled and task.error is not None:
            self._member = self.state.membership = None
            self.state.drop()
            self._assignment.report(task.error)

    def _upkeep_ended(self, task: Task[None]) -> None:
        if not task.cancelled and task.error is not None:
            self._upkeep = None
            self._assignment.report(task.error)

    def _mark_handled(self) -> None:
        if self.config.auto_offset_store:
            with self.state.lock:
                for each in self.partitions:
                    each.handled = each.position

    @property
    def needs_poll(self) -> bool:
        """Whether the next poll must run ``fill``, because taking buffered records is not enough."""
        assignment = self._assignment
        return bool(
            self.closed
            or self._upkeep is None
            or assignment.waiting
            or assignment.is_changing
            or (self._member is None and self.state.subscription)
        )

    def wakeup(self) -> None:
        """Interrupt the waiting poll, or the next poll: it raises ``WakeupError``."""
        self.taker.woken = True
        with suppress(ClientError):
            self.client.network.post(self.state.arrived.notify)

    def table_builder(self, columns: Sequence[str] | None) -> TableBuilder:
        """Return an empty table builder. Requires the extra ``arrow``."""
        from kafka_msgs.client.consumer.tables import TableBuilder

        return TableBuilder(columns)

    def poll(self, deadline: float, max_records: int) -> Flow[list[ConsumerRecord]]:
        """Wait for records and take them in one flow. If the flow may be cancelled, use ``fill`` and ``take``."""
        while (yield from self.fill(deadline)):
            if records := self.taker.take(max_records, []):
                return records
        return []

    def poll_table(self, deadline: float, max_records: int, columns: Sequence[str] | None) -> Flow[Any]:
        """Wait for records and return them as an Arrow table, in one flow."""
        builder = self.table_builder(columns)
        while not builder.rows and (yield from self.fill(deadline)):
            self.taker.take_table(max_records, builder, [])
        return builder.table()

    # External events (``NetworkUser``)

    def on_interrupt(self, error: Exception) -> None:
        """Reset the tasks after an external exception ended all flows. The next poll restarts them."""
        self._member = self._upkeep = None
        if self.state.membership is not None:
            self.state.membership = None
            self.state.drop()
        self._assignment.restart()
        self._fetcher.restart()

    def on_fork(self) -> None:
        """Refuse every call in a child process. A thread that exists in the parent only may have held the lock."""
        self.closed = True
        self.state.lock = RLock()

    def on_exit(self, deadline: float) -> Flow[None]:
        """Close the consumer when the process exits."""
        return self.close(deadline, done=False)

    def _make_membership(self) -> Membership:
        group_id = str(self.config.group_id)
        if self.config.group_protocol == "consumer":
            return ModernMembership(self._assignment, group_id, self._random)
        return ClassicMembership(self._assignment, group_id)
