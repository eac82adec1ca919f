"""The logic of a consumer: what it subscribes to, and what a poll does. No socket, clock or thread.

Three kinds of work run by themselves while a poll waits (in the form for asyncio: all the time): the membership in the
group, one fetch loop for each broker, and the upkeep of metadata, positions and automatic commits. A poll takes what
they found. ``shells`` has the public forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.consumer.assignment import Assignment
from kafka_msgs.client.consumer.classic import ClassicMembership
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.fetcher import Fetcher
from kafka_msgs.client.consumer.membership import Membership
from kafka_msgs.client.consumer.modern import ModernMembership
from kafka_msgs.client.consumer.offsets import CommittedOffset
from kafka_msgs.client.consumer.partitions import Partition
from kafka_msgs.client.consumer.positions import Positions
from kafka_msgs.client.consumer.reading import take_records
from kafka_msgs.client.consumer.state import Callback, ConsumerState, Offsets, Subscription, refused
from kafka_msgs.client.consumer.upkeep import Upkeep
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.schedule import Task
from kafka_msgs.client.waiting import Steps, Wait
from kafka_msgs.errors import ClientError, PositionError, RecordError
from kafka_msgs.records import ConsumerRecord, ReadOptions

if TYPE_CHECKING:
    from kafka_msgs.client.consumer.tables import TableBuilder

__all__ = ["ConsumerCore"]


def monotonic_of(network: Any) -> float:
    """Return the time of a network."""
    now: float = network.now()
    return now


_AT_ONCE: Final = 0.0
_SHORTEST: Final = 0.0005
"""How long, in seconds, a poll waits at least if it has nothing, so that many short polls get on, too."""


class ConsumerCore:
    """The logic of one consumer."""

    def __init__(
        self,
        client: ClientCore,
        config: ConsumerConfig,
        *,
        random: Random | None = None,
        background: bool = False,
    ) -> None:
        self.client = client
        self.config = config
        self.state = ConsumerState.of(client, config)
        self.partitions = self.state.partitions
        self.positions = Positions(self.state)
        self.closed = False
        self._random = random or Random()
        self._assignment = Assignment(self.state, self.positions, background=background)
        self._fetcher = Fetcher(client, config, self.partitions, self.state)
        self._keeper = Upkeep(self.state, self.positions, self._fetcher)
        self._options = ReadOptions(check_crc=config.check_crc)
        self._member: Task[None] | None = None
        self._upkeep: Task[None] | None = None
        self._iterated: Partition | None = None
        self._reading: Any = None

    @property
    def tasks(self) -> list[Task[None]]:
        """What runs by itself."""
        return [task for task in (self._member, self._upkeep, *self._fetcher.tasks) if task is not None]

    # What the user asks for

    def subscribe(
        self,
        topics: Collection[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Ask for topics, in a group. The group is joined by the next poll."""
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

    def unsubscribe(self, deadline: float) -> Steps[None]:
        """Give up all partitions, and leave the group."""
        if self._member is not None:
            self._member.cancel()
            self._member = None
        membership = self.state.membership
        if membership is not None:
            if self.partitions.names:
                yield from self._assignment.revoke_now(self.partitions.names)
            with suppress(ClientError):  # if it does not hear of it, the coordinator waits for the end of the session
                yield from membership.leave(deadline)
            self.state.membership = None
        self.state.subscription = Subscription()
        self.state.drop()

    def set_partitions(self, names: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, without a group. Positions of those that stay are kept."""
        if self.state.subscription:
            raise refused("partitions", sorted(names), "the consumer has a subscription; unsubscribe first")
        wanted = frozenset(TopicPartition(*name) for name in names)
        self.partitions.remove(self.partitions.names - wanted)
        self.partitions.add(sorted(wanted))
        self.state.metadata_at = 0.0
        self.state.changed.give()

    def seek(self, offsets: Offsets) -> None:
        """Go on at these offsets."""
        for name, offset in offsets.items():
            place = CommittedOffset(offset) if isinstance(offset, int) else offset
            if place.offset < 0:
                raise PositionError(topic=name[0], partition=name[1], reason=f"{place.offset} is not an offset")
            self.partitions[TopicPartition(*name)].seek(place.offset, place.leader_epoch)
        self.state.changed.give()

    def reset(self, names: Iterable[tuple[str, int]], to: int) -> None:
        """Go on at the start, at the end, or at a time (ms), which is looked up when it is needed."""
        for name in names:
            self.partitions[TopicPartition(*name)].reset(to)
        self.state.changed.give()

    def pause(self, names: Iterable[tuple[str, int]], *, paused: bool) -> None:
        """Stop or go on returning and fetching records of partitions."""
        for name in names:
            self.partitions[TopicPartition(*name)].paused = paused
        self.state.changed.give()

    def close(self, deadline: float, done: bool = True) -> Steps[None]:
        """Commit if that is wanted, leave the group, end the fetch sessions."""
        if self.closed:
            return
        self.closed = True
        if done:
            for each in self.partitions:
                each.handled = each.position
        try:
            if self.state.membership is None:
                yield from self.positions.commit_by_itself()
            yield from self.unsubscribe(deadline)
        finally:
            if self._upkeep is not None:
                self._upkeep.cancel()
        yield from self._fetcher.close(deadline)

    # Polling

    def poll(self, deadline: float, room: int) -> Steps[list[ConsumerRecord]]:
        """Return up to ``room`` records, as soon as there are some; an empty list at the deadline."""
        while (yield from self.fill(deadline)):
            if records := self.take(room):
                return records
        return []

    @property
    def needs_poll(self) -> bool:
        """Whether something waits for a poll that runs in the logic, and not only for one that takes records."""
        assignment = self._assignment
        ended = (self._member is None and self.state.subscription) or (self._member is not None and self._member.done)
        keeper = self._upkeep is None or self._upkeep.done
        return bool(assignment.waiting or assignment.is_changing or assignment.faults or ended or keeper or self.closed)

    @property
    def _has_lease(self) -> bool:
        membership = self.state.membership
        return membership is None or monotonic_of(self.client.network) < membership.lease_ends

    def take(self, room: int) -> list[ConsumerRecord]:
        """Take up to ``room`` buffered records, without waiting; move the positions behind them.

        It runs in the frame of the caller, so that nobody can get lost between here and there. If an exception of a
        signal handler comes in between, the positions stay where they were.
        """
        records: list[ConsumerRecord] = []
        with self.state.lock:
            self._assignment.polled_at = monotonic_of(self.client.network)
            if not self._has_lease:
                return records
            before = [(each, each.position, each.position_epoch) for each in self.partitions]
            for each, position, _ in before:
                each.handled = position
            try:
                self._collect(room, records)
            except (RecordError, ClientError):
                raise
            except BaseException:
                for each, position, epoch in before:
                    if position is not None:
                        each.seek(position, epoch)
                raise
        return records

    def take_next(self) -> ConsumerRecord | None:
        """Take the next buffered record, without waiting. The one before counts as handled now."""
        assignment, now = self._assignment, monotonic_of(self.client.network)
        with self.state.lock:
            assignment.polled_at = now
            last, reading = self._iterated, self._reading
            if last is not None:
                last.handled = last.position
            membership = self.state.membership
            if assignment.waiting or assignment.faults or (membership is not None and now >= membership.lease_ends):
                return None
            if reading is not None and last is not None and last.decoding is reading and not last.paused:
                record = reading.next_record(last)
                if record is not None:
                    return record
            if self.needs_poll:
                return None
            into: list[ConsumerRecord] = []
            self._collect(1, into)
            if not into:
                return None
            self._iterated = last = self.partitions.get(TopicPartition(into[0].topic, into[0].partition))
            self._reading = None if last is None else last.decoding
            return into[0]

    def poll_table(self, deadline: float, room: int, columns: Sequence[str] | None) -> Steps[Any]:
        """Return about ``room`` records as an Arrow table, as soon as there are some; an empty one at the deadline."""
        from kafka_msgs.client.consumer.tables import TableBuilder

        builder = TableBuilder(columns)
        while not builder.rows and (yield from self.fill(deadline)):
            self._collect_table(room, builder)
        return builder.table()

    def fill(self, deadline: float) -> Steps[bool]:
        """Wait until something is buffered. Then let the next requests leave. Return False at the deadline."""
        network = self.client.network
        self._begin()
        deadline = max(deadline, network.now() + _SHORTEST)
        try:
            while True:
                if self._assignment.is_changing:
                    yield Wait((self.state.arrived.pending,), None)
                    continue
                self._raise_fault()
                self._fetcher.arrange()
                if any(self._readable(partition) for partition in self.partitions) and self._has_lease:
                    yield Wait((), _AT_ONCE)
                    if self._assignment.is_changing:
                        continue
                    self._raise_fault()
                    return True
                if network.now() >= deadline:
                    return False
                yield Wait((self.state.arrived.pending, self.state.changed.pending, *self.tasks), deadline)
        finally:
            self._assignment.in_poll = False
            self._assignment.polled_at = network.now()

    def _begin(self) -> None:
        """Begin what runs by itself, as far as it is needed."""
        if self.closed:
            raise refused("consumer", "closed", "the consumer is closed")
        if self._assignment.in_poll:
            raise refused("poll", "running", "another poll of this consumer is running")
        self._assignment.in_poll = True
        with self.state.lock:
            for each in self.partitions:
                each.handled = each.position
        self.state.polled.give()
        if self.state.subscription and self.state.membership is None:
            self.state.membership = self._make_membership()
            self._member = self.client.network.spawn(self.state.membership.run())
        if self._upkeep is None and (self.state.subscription or len(self.partitions)):
            self._upkeep = self.client.network.spawn(self._keeper.run())
        self.state.drained.give()

    def _make_membership(self) -> Membership:
        group_id = str(self.config.group_id)
        if self.config.group_protocol == "consumer":
            return ModernMembership(self._assignment, group_id, self._random)
        return ClassicMembership(self._assignment, group_id)

    def _readable(self, partition: Partition) -> bool:
        if partition.paused or not partition.ready:
            return False
        return not partition.empty or partition.error is not None

    def _raise_fault(self) -> None:
        """Raise what went wrong in the background, once."""
        if self._assignment.faults:
            raise self._assignment.faults.popleft()
        if self._member is not None and self._member.done:
            member, self._member, self.state.membership = self._member, None, None
            self.state.drop()
            member.result()
        if self._upkeep is not None and self._upkeep.done:
            upkeep, self._upkeep = self._upkeep, None
            upkeep.result()

    def _collect(self, room: int, into: list[ConsumerRecord]) -> None:
        """Take up to ``room`` records."""
        self._take(
            lambda: room - len(into), lambda part, left: take_records(part, left, self._options, into), lambda: into
        )

    def _collect_table(self, room: int, builder: TableBuilder) -> None:
        """Take about ``room`` records as columns."""
        self._take(
            lambda: room - builder.rows,
            lambda part, left: builder.take(part, left, self._options),
            lambda: builder.rows,
        )

    def _take(
        self, left: Callable[[], int], take: Callable[[Partition, int], None], found: Callable[[], object]
    ) -> None:
        """Take buffered records of the partitions in turn.

        An error of a partition is raised if there is nothing else to return. Otherwise the next poll raises it.
        """
        for partition in self.partitions.in_turn():
            if left() <= 0:
                return
            if self._readable(partition):
                try:
                    if partition.error is not None and partition.empty:
                        raise partition.error
                    take(partition, left())
                except (RecordError, ClientError) as error:
                    if partition.position is not None:
                        partition.seek(partition.position, partition.position_epoch)
                    partition.error = error if found() else None
                    if not found():
                        raise
