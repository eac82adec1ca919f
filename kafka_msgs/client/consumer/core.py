"""The logic of a consumer: what it subscribes to, its positions, and what a poll does. No socket, clock or thread.

Three kinds of work run by themselves while a poll waits (in the form for asyncio: all the time): the membership in the
group, one fetch loop for each broker, and the upkeep of metadata, positions and automatic commits. A poll takes what
they found. ``blocking`` and ``aio`` are the shells.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.consumer.classic import ClassicMembership
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.fetcher import Fetcher
from kafka_msgs.client.consumer.membership import Identity, Membership, Signal
from kafka_msgs.client.consumer.modern import ModernMembership
from kafka_msgs.client.consumer.offsets import CommittedOffset, commit_offsets, fetch_committed, look_up_offsets
from kafka_msgs.client.consumer.partitions import RESETS, Partition, Partitions
from kafka_msgs.client.consumer.reading import take_records
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.failures import broker_error
from kafka_msgs.client.schedule import Task
from kafka_msgs.client.waiting import Pending, Steps, Wait
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ClientError, DeadlineError, OptionError, PositionError, RecordError
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.records import ConsumerRecord, ReadOptions

if TYPE_CHECKING:
    from kafka_msgs.client.consumer.tables import TableBuilder

__all__ = ["Callback", "ConsumerCore", "Offsets"]

Callback: TypeAlias = Callable[[list[TopicPartition]], Any]
"""A function of the user for assignment or revocation. In the form for asyncio it may be a coroutine function."""

Offsets: TypeAlias = Mapping[TopicPartition, "int | CommittedOffset"]
"""Positions to commit or to go to."""

_REFUSALS: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})
"""Error codes of a topic in metadata that no further trial can mend."""
_AT_ONCE: Final = 0.0
_SHORTEST: Final = 0.0005
"""How long, in seconds, a poll waits at least if it has nothing, so that many short polls get on, too."""
_SWEEP: Final = 0.1
"""How often, in seconds, a poll that has records at hand still looks at the connections."""


class ConsumerCore:
    """The logic of one consumer. It is the ``Host`` of its membership."""

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
        self.partitions = Partitions()
        self.changed = Signal()
        self.arrived = Signal()
        self.drained = Signal()
        self.polled = Signal()
        self.closed = False
        self._random = random or Random()
        self._background = background
        self._fetcher = Fetcher(client, config, self.partitions, self)
        self._options = ReadOptions(check_crc=config.check_crc)
        self._subscribed: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._broker_pattern: str | None = None
        self._on_assigned: Callback | None = None
        self._on_revoked: Callback | None = None
        self._on_lost: Callback | None = None
        self._membership: Membership | None = None
        self._member: Task[None] | None = None
        self._upkeep: Task[None] | None = None
        self._faults: deque[Exception] = deque()
        self._polled_at = client.network.now()
        self._swept_at = self._polled_at
        self._commit_at = self._polled_at + config.auto_commit_interval
        self._metadata_at = self._refreshed_at = 0.0
        self._in_poll = False
        self._changing = 0

    # What the membership needs

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the consumer subscribes to, as far as they are known."""
        if self._pattern is None:
            return self._subscribed
        found = self.client.cluster.topics.values()
        return frozenset(each.name for each in found if not each.internal and self._pattern.search(each.name))

    @property
    def broker_pattern(self) -> str | None:
        """The pattern of topics that the broker resolves (KIP-848), or None."""
        return self._broker_pattern

    @property
    def poll_by(self) -> float | None:
        """The moment at which the consumer must have polled again to stay in the group."""
        return self._polled_at + self.config.rebalance_timeout if self._background and not self._in_poll else None

    def assign(self, names: Collection[TopicPartition]) -> Steps[None]:
        """Begin to read partitions after the function of the user has returned."""
        return self._in_a_poll(self._assign(names))

    def revoke(self, names: Collection[TopicPartition]) -> Steps[None]:
        """Commit if that is wanted, call the function of the user, then stop reading partitions."""
        return self._in_a_poll(self._revoke(names))

    def lose(self, names: Collection[TopicPartition]) -> Steps[None]:
        """Stop reading partitions that others may have already."""
        return self._in_a_poll(self._lose(names))

    def _in_a_poll(self, steps: Steps[None]) -> Steps[None]:
        """Change the assignment while a poll runs, which then does not end before this.

        So a commit between two polls is about the partitions whose records the first one returned.
        """
        while not self._in_poll:
            yield Wait((self.polled.pending,), None)
        self._changing += 1
        try:
            yield from steps
        finally:
            self._changing -= 1
            self.arrived.give()

    def _assign(self, names: Collection[TopicPartition]) -> Steps[None]:
        self.partitions.add(names, ready=False)
        yield from self._call(self._on_assigned, names)
        for name in names:
            if (partition := self.partitions.get(name)) is not None:
                partition.ready = True
        self.changed.give()

    def _revoke(self, names: Collection[TopicPartition]) -> Steps[None]:
        yield from self._commit_by_itself(names)
        yield from self._call(self._on_revoked, names)
        self._drop(names)

    def _lose(self, names: Collection[TopicPartition]) -> Steps[None]:
        if names:
            self._drop(names)
            yield from self._call(self._on_lost or self._on_revoked, names)

    def _commit_by_itself(self, names: Collection[TopicPartition]) -> Steps[None]:
        """Commit positions if that is wanted. After a failure the records are read again by whoever has them next."""
        if self._commits():
            with suppress(ClientError):
                yield from self.commit(self._positions(names), self.client.deadline(None))

    def _drop(self, names: Collection[TopicPartition]) -> None:
        self.partitions.remove(names)
        self.changed.give()

    def _call(self, function: Callback | None, names: Collection[TopicPartition]) -> Steps[None]:
        """Call a function of the user. Its exception is raised by the poll."""
        if function is None:
            return
        pending = self.client.network.perform(function, sorted(names))
        if not pending.done:
            yield Wait((pending,), None)
        if pending.error is not None:
            self._faults.append(pending.error)

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
            raise _refused("group_id", None, "a subscription needs a group; without one, assign partitions")
        if bool(topics) == (pattern is not None):
            raise _refused("topics", sorted(topics), "expected either topics or a pattern")
        if len(self.partitions) and self._membership is None:
            raise _refused("topics", sorted(topics), "the consumer has assigned partitions; unassign them first")
        on_broker = isinstance(pattern, str) and self.config.group_protocol == "consumer"
        self._broker_pattern = str(pattern) if on_broker else None
        self._pattern = None if pattern is None or on_broker else re.compile(pattern)
        self._subscribed = frozenset(topics)
        self._on_assigned, self._on_revoked, self._on_lost = on_assigned, on_revoked, on_lost
        self._metadata_at = 0.0
        self.changed.give()

    def unsubscribe(self, deadline: float) -> Steps[None]:
        """Give up all partitions, and leave the group."""
        if self._member is not None:
            self._member.cancel()
            self._member = None
        if self._membership is not None:
            if self.partitions.names:
                yield from self._revoke(self.partitions.names)
            with suppress(ClientError):  # if it does not hear of it, the coordinator waits for the end of the session
                yield from self._membership.leave(deadline)
            self._membership = None
        self._subscribed, self._pattern, self._broker_pattern = frozenset(), None, None
        self._drop(self.partitions.names)

    def set_partitions(self, names: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, without a group. Positions of those that stay are kept."""
        if self._subscribed or self._pattern or self._broker_pattern:
            raise _refused("partitions", sorted(names), "the consumer has a subscription; unsubscribe first")
        wanted = frozenset(TopicPartition(*name) for name in names)
        self.partitions.remove(self.partitions.names - wanted)
        self.partitions.add(sorted(wanted))
        self._metadata_at = 0.0
        self.changed.give()

    def seek(self, offsets: Offsets) -> None:
        """Go on at these offsets."""
        for name, offset in offsets.items():
            place = CommittedOffset(offset) if isinstance(offset, int) else offset
            if place.offset < 0:
                raise PositionError(topic=name[0], partition=name[1], reason=f"{place.offset} is not an offset")
            self.partitions[TopicPartition(*name)].seek(place.offset, place.leader_epoch)
        self.changed.give()

    def reset(self, names: Iterable[tuple[str, int]], to: int) -> None:
        """Go on at the start, at the end, or at a time (ms), which is looked up when it is needed."""
        for name in names:
            self.partitions[TopicPartition(*name)].reset(to)
        self.changed.give()

    def pause(self, names: Iterable[tuple[str, int]], *, paused: bool) -> None:
        """Stop or go on returning and fetching records of partitions."""
        for name in names:
            self.partitions[TopicPartition(*name)].paused = paused
        self.changed.give()

    def position(self, name: TopicPartition, deadline: float) -> Steps[int]:
        """Return the offset of the next record; look it up if it is not known."""
        partition = self.partitions[TopicPartition(*name)]
        if partition.position is None:
            yield from self._find_positions([partition], deadline)
        if partition.error is not None:
            error, partition.error = partition.error, None
            raise error
        assert partition.position is not None
        return partition.position

    def commit(self, offsets: Offsets | None, deadline: float) -> Steps[None]:
        """Commit offsets, by default the positions of all partitions. A consumer that lost its place cannot."""
        self._check_commit()
        if self._membership is not None and not self._membership.is_member:
            raise broker_error(ErrorCode.UNKNOWN_MEMBER_ID, api="OffsetCommit", subject=self.config.group_id)
        wanted = self._positions(self.partitions.names) if offsets is None else offsets
        values = {
            TopicPartition(*name): CommittedOffset(offset) if isinstance(offset, int) else offset
            for name, offset in wanted.items()
        }
        yield from commit_offsets(self.client, str(self.config.group_id), self.identity, values, deadline=deadline)

    def commit_later(self, offsets: Offsets | None) -> Task[None]:
        """Begin to commit, and go on."""
        self._check_commit()
        wanted = self._positions(self.partitions.names) if offsets is None else dict(offsets)
        return self.client.network.spawn(self.commit(wanted, self.client.deadline(None)))

    def committed(
        self, names: Collection[TopicPartition], deadline: float
    ) -> Steps[dict[TopicPartition, CommittedOffset]]:
        """Return what the group has committed. Partitions without a commit are left out."""
        self._check_commit()
        stable = self.config.isolation_level == "read_committed"
        return (
            yield from fetch_committed(
                self.client, str(self.config.group_id), self.identity,
                [TopicPartition(*name) for name in names], stable=stable, deadline=deadline,
            )
        )  # fmt: skip

    def _check_commit(self) -> None:
        if self.config.group_id is None:
            raise _refused("group_id", None, "commits need a group")
        if self.config.offsets_storage != "kafka":
            raise _refused("offsets_storage", self.config.offsets_storage, "the positions are kept outside of Kafka")

    @property
    def identity(self) -> Identity:
        """Who commits: the member of the group, or nobody in particular."""
        return Identity() if self._membership is None else self._membership.identity

    def _positions(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int | CommittedOffset]:
        found = (self.partitions.get(name) for name in names)
        return {
            each.name: CommittedOffset(each.position, each.position_epoch)
            for each in found
            if each is not None and each.position is not None
        }

    # Polling

    def poll(self, deadline: float, room: int) -> Steps[list[ConsumerRecord]]:
        """Return up to ``room`` records, as soon as there are some; an empty list at the deadline."""
        records: list[ConsumerRecord] = []
        while (yield from self._fill(deadline)):
            self._collect(room, records)
            if records:
                break
        return records

    def poll_table(self, deadline: float, room: int, columns: Sequence[str] | None) -> Steps[Any]:
        """Return about ``room`` records as an Arrow table, as soon as there are some; an empty one at the deadline."""
        from kafka_msgs.client.consumer.tables import TableBuilder

        builder = TableBuilder(columns)
        while not builder.rows and (yield from self._fill(deadline)):
            self._collect_table(room, builder)
        return builder.table()

    def _fill(self, deadline: float) -> Steps[bool]:
        """Wait until something is buffered. Then let the next requests leave. Return False at the deadline."""
        network = self.client.network
        self._begin()
        deadline = max(deadline, network.now() + _SHORTEST)
        try:
            while True:
                if self._changing:
                    yield Wait((self.arrived.pending,), None)
                    continue
                self._raise_fault()
                self._fetcher.arrange()
                now = network.now()
                if any(self._readable(partition) for partition in self.partitions):
                    sweep = now - self._swept_at > _SWEEP
                    self._swept_at = now if sweep else self._swept_at
                    yield Wait((), now + _SHORTEST if sweep else _AT_ONCE)
                    if self._changing:
                        continue
                    self._raise_fault()
                    return True
                if now >= deadline:
                    return False
                yield Wait(self._awaited(), deadline)
        finally:
            self._in_poll = False
            self._polled_at = network.now()

    def _begin(self) -> None:
        """Begin what runs by itself, as far as it is needed."""
        if self.closed:
            raise _refused("consumer", "closed", "the consumer is closed")
        if self._in_poll:
            raise _refused("poll", "running", "another poll of this consumer is running")
        self._in_poll = True
        self.polled.give()
        subscribed = bool(self._subscribed or self._pattern or self._broker_pattern)
        if subscribed and self._membership is None:
            self._membership = self._make_membership()
            self._member = self.client.network.spawn(self._membership.run())
        if self._upkeep is None and (subscribed or len(self.partitions)):
            self._upkeep = self.client.network.spawn(self._keep_up())
        self.drained.give()

    def _make_membership(self) -> Membership:
        group_id = str(self.config.group_id)
        if self.config.group_protocol == "consumer":
            return ModernMembership(self, group_id, self._random)
        return ClassicMembership(self, group_id)

    def _awaited(self) -> list[Pending[Any]]:
        tasks = (self._member, self._upkeep, *self._fetcher.tasks)
        return [self.arrived.pending, self.changed.pending, *(task for task in tasks if task is not None)]

    def _readable(self, partition: Partition) -> bool:
        if partition.paused or not partition.ready:
            return False
        return not partition.empty or partition.error is not None

    def _raise_fault(self) -> None:
        """Raise what went wrong in the background, once."""
        if self._faults:
            raise self._faults.popleft()
        if self._member is not None and self._member.done:
            member, self._member, self._membership = self._member, None, None
            self._drop(self.partitions.names)
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

    # What runs by itself

    def _keep_up(self) -> Steps[None]:
        """Keep metadata fresh, find positions, and commit from time to time."""
        while True:
            now, deadline = self.client.network.now(), self.client.deadline(None)
            changed = self.changed.pending
            try:
                if now >= self._next_refresh:
                    yield from self._refresh(deadline)
                if missing := self._missing():
                    yield from self._find_positions(missing, deadline)
                if self._commits() and now >= self._commit_at:
                    self._commit_at = now + self.config.auto_commit_interval
                    yield from self._commit_by_itself(self.partitions.names)
            except (DeadlineError, BrokerError) as error:
                if isinstance(error, BrokerError) and not error.retriable:
                    raise
                yield Wait((), self.client.network.now() + self.client.config.longest_backoff)
                continue
            if not self._missing():
                times = [self._next_refresh, *([self._commit_at] if self._commits() else [])]
                yield Wait((changed,), min(times))

    @property
    def _next_refresh(self) -> float:
        """When metadata is asked for again: soon if a broker said that it is not right, but not all the time."""
        soon = self._refreshed_at + self.client.config.longest_backoff / 4
        return min(soon, self._metadata_at) if self._fetcher.outdated else self._metadata_at

    def _missing(self) -> list[Partition]:
        """Return the partitions whose position can be found now: their leader must be known."""
        lacking = [each for each in self.partitions if self._lacks_position(each)]
        found = [each for each in lacking if self.client.cluster.leader(*each.name) is not None]
        if len(found) < len(lacking):
            self._fetcher.doubt()
        return found

    def _commits(self) -> bool:
        in_kafka = self.config.group_id is not None and self.config.offsets_storage == "kafka"
        return self.config.auto_commit and in_kafka and len(self.partitions) > 0

    def _lacks_position(self, partition: Partition) -> bool:
        return partition.position is None and partition.ready and partition.error is None

    def _refresh(self, deadline: float) -> Steps[None]:
        """Ask for the metadata of all topics that matter: of all topics, if a pattern decides."""
        self._fetcher.outdated = False
        if self._pattern is not None:
            answer = yield from self.client.call(MetadataRequest(topics=None), deadline=deadline)
            self.client.cluster.learn(answer)
        topics = self._subscribed | {each.name.topic for each in self.partitions}
        if topics:
            yield from self.client.refresh(topics, deadline=deadline)
        self._refreshed_at = self.client.network.now()
        self._metadata_at = self._refreshed_at + self.client.config.metadata_age
        for topic in topics:
            info = self.client.cluster.topics.get(topic)
            if info is not None and info.error in _REFUSALS:
                raise broker_error(info.error, api="Metadata", subject=topic)
        self.changed.give()
        self.arrived.give()

    def _find_positions(self, partitions: Collection[Partition], deadline: float) -> Steps[None]:
        """Find where to begin: what was committed, or what the reset policy says, or what a seek asks for."""
        fresh = [each.name for each in partitions if each.reset_to is None]
        committed: dict[TopicPartition, CommittedOffset] = {}
        if fresh and self.config.group_id is not None and self.config.offsets_storage == "kafka":
            committed = yield from self.committed(fresh, deadline)
        times: dict[TopicPartition, int] = {}
        for each in partitions:
            if each.position is not None:
                continue
            if each.reset_to is None and each.name in committed:
                each.seek(committed[each.name].offset, committed[each.name].leader_epoch)
            elif each.reset_to is not None:
                times[each.name] = each.reset_to
            elif self.config.auto_offset_reset == "none":
                each.error = _no_position(each.name)
            else:
                times[each.name] = RESETS[self.config.auto_offset_reset]
        yield from self._look_up(times, deadline)
        self.changed.give()
        self.arrived.give()

    def _look_up(self, times: dict[TopicPartition, int], deadline: float) -> Steps[None]:
        """Set positions by time. Where no record is as late as that, the position is the end."""
        while times:
            committed = self.config.isolation_level == "read_committed"
            found = yield from look_up_offsets(self.client, times, committed=committed, deadline=deadline)
            later: dict[TopicPartition, int] = {}
            for name, offset in found.items():
                partition = self.partitions.get(name)
                if partition is None or partition.position is not None:
                    continue
                if offset.offset < 0 and times[name] >= 0:
                    later[name] = RESETS["latest"]
                else:
                    partition.seek(max(offset.offset, 0), offset.leader_epoch)
            times = later

    def close(self, deadline: float) -> Steps[None]:
        """Commit if that is wanted, leave the group, end the fetch sessions."""
        if self.closed:
            return
        self.closed = True
        try:
            if self._membership is None:
                yield from self._commit_by_itself(self.partitions.names)
            yield from self.unsubscribe(deadline)
        finally:
            if self._upkeep is not None:
                self._upkeep.cancel()
        yield from self._fetcher.close(deadline)


def _refused(option: str, value: object, reason: str) -> OptionError:
    return OptionError(source="consumer", option=option, value=value, reason=reason)


def _no_position(name: TopicPartition) -> PositionError:
    reason = "there is no committed offset, and auto_offset_reset is none"
    return PositionError(topic=name.topic, partition=name.partition, reason=reason)
