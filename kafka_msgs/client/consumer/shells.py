"""``Consumer`` and ``AsyncConsumer``: each method once, and the two forms of all of them. All logic is in ``core``."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar, Unpack

from kafka_msgs.client.client import AsyncClient, Client
from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.consumer.config import CONSUMER, ConsumerConfig, ConsumerSettings
from kafka_msgs.client.consumer.core import ConsumerCore
from kafka_msgs.client.consumer.offsets import CommittedOffset
from kafka_msgs.client.consumer.partitions import ResetTo
from kafka_msgs.client.consumer.state import Callback, Offsets
from kafka_msgs.client.forms import AsyncForm, BlockingForm, Form, LastOperation, Operation
from kafka_msgs.client.members import GroupMember
from kafka_msgs.client.servers import Servers
from kafka_msgs.client.waiting import Pending, Steps
from kafka_msgs.records import ConsumerRecord

__all__ = ["AsyncConsumer", "Consumer"]

_ITERATION: Final = 60.0
"""How long one poll of an iteration waits, in seconds. Nothing depends on it."""

C = TypeVar("C", Client, AsyncClient)


class ConsumerMethods(Form[C]):
    """The methods of consumers. Those that wait are coroutines in the form for asyncio."""

    _background: bool
    """Whether work goes on between the polls."""

    def __init__(self, servers: Servers | C, **settings: Unpack[ConsumerSettings]) -> None:
        self.config: ConsumerConfig = self._take_client(servers, settings, CONSUMER)
        self.core = ConsumerCore(
            self.client.core, self.config, background=self._background or getattr(self.client, "is_threaded", False)
        )

    def subscribe(
        self,
        topics: str | Collection[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Ask for topics, which the members of the group share. The next poll joins the group.

        ``pattern`` is a regular expression instead of topics. In a group of the protocol ``consumer`` a text is
        matched by the broker (RE2 syntax); everything else is matched here, with ``re.search``.

        The functions get a list of partitions. On asyncio they may be coroutine functions. ``on_assigned`` is called
        before anything is fetched from new partitions: it may ``seek`` to positions that are kept elsewhere.
        ``on_revoked`` is called before partitions are given up: it may commit. ``on_lost`` is called for partitions
        that others may have already; without it ``on_revoked`` is called. An exception of a function is raised by the
        poll.
        """
        names = (topics,) if isinstance(topics, str) else topics
        self._do(
            lambda: self.core.subscribe(names, pattern, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        )

    @Operation
    def unsubscribe(self, *, timeout: float | None = None) -> Steps[None]:
        """Give up all partitions, and leave the group."""
        return self.core.unsubscribe(self._deadline(timeout))

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group: no coordinator is asked, except for commits."""
        self._do(lambda: self.core.set_partitions([TopicPartition(*each) for each in partitions]))

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has now."""
        return self.core.partitions.names

    @Operation
    def poll_table(
        self, timeout: float = 0.0, *, columns: Sequence[str] | None = None, max_records: int | None = None
    ) -> Steps[Any]:
        """Return records as an Arrow table, as soon as there are some; an empty one after ``timeout`` seconds.

        The table has the columns ``topic``, ``partition``, and ``columns`` of ``kafka_msgs.columns.record_schema`` (by
        default offset, timestamp, key, value and headers). Batches are not divided, so there may be some more records
        than ``max_records``. Needs the extra ``arrow``. Raises what ``poll`` raises.
        """
        room = self.config.max_records if max_records is None else max_records
        return self.core.poll_table(self._deadline(timeout), room, columns)

    @Operation
    def commit(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> Steps[None]:
        """Commit offsets: by default the positions, which are behind the records that polls returned.

        Raises ``BrokerError``, for example if the group has given the partitions to another member.
        """
        return self.core.positions.commit(offsets, self._deadline(timeout))

    def commit_later(self, offsets: Offsets | None = None) -> Pending[None]:
        """Begin to commit, and return at once. The commit goes on while a method of the consumer runs; on
        asyncio, while the event loop runs.

        The value that is returned is ``done`` after that; its ``result()`` raises what ``commit`` raises.
        """
        return self._do(lambda: self.core.positions.commit_later(offsets))

    @Operation
    def committed(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> Steps[dict[TopicPartition, CommittedOffset]]:
        """Return what the group has committed for partitions. Those without a commit are left out."""
        names = [TopicPartition(*each) for each in partitions]
        return self.core.positions.committed(names, self._deadline(timeout))

    @Operation
    def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> Steps[int]:
        """Return the offset of the next record that a poll returns; it is looked up if it is not known."""
        return self.core.positions.position(TopicPartition(*partition), self._deadline(timeout))

    def seek(self, offsets: Offsets) -> None:
        """Go on at these offsets: a mapping from partition to offset. Raises ``PositionError``."""
        self._do(lambda: self.core.seek(offsets))

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Go on at the first record of partitions; without an argument, of all of them."""
        self._do(lambda: self.core.reset(partitions or self.assignment, ResetTo.EARLIEST))

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Go on at the end of partitions; without an argument, of all of them."""
        self._do(lambda: self.core.reset(partitions or self.assignment, ResetTo.LATEST))

    def seek_to_time(self, timestamp: int, *partitions: tuple[str, int]) -> None:
        """Go on at the first records that are not older than a time: milliseconds since the epoch.

        Where all records are older, go on at the end.
        """
        self._do(lambda: self.core.reset(partitions or self.assignment, timestamp))

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Return nothing from partitions until ``resume``; without an argument, from all of them."""
        self._do(lambda: self.core.pause(partitions or self.assignment, paused=True))

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Go on with paused partitions; without an argument, with all of them."""
        self._do(lambda: self.core.pause(partitions or self.assignment, paused=False))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(each.name for each in self.core.partitions if each.paused)

    @property
    def member_id(self) -> str:
        """The id of this member in its group. It is empty outside of a group."""
        return self.core.state.identity.member_id

    @property
    def group_member(self) -> GroupMember:
        """The member of the group that this is now, for ``Producer.send_offsets_to_transaction`` (KIP-447).

        With it the broker refuses the offsets if the group has given the partitions to another member. Take it after
        the poll whose records the transaction is about. Raises ``OptionError`` without a group, and ``BrokerError``
        if the consumer has lost its place in the group: then abort the transaction.
        """
        member = self.core.positions.member()
        return GroupMember(str(self.config.group_id), member.generation, member.member_id, member.instance_id)

    @LastOperation
    def close(self, *, timeout: float | None = None) -> Steps[None]:
        """Commit if ``auto_commit`` is set, give up the partitions, and leave the group.

        A client that was made here is closed.
        """
        return self.core.close(self._deadline(timeout))

    def _deadline(self, timeout: float | None) -> float:
        return self.client.core.deadline(timeout)


class Consumer(ConsumerMethods[Client], BlockingForm):
    """Reads topics, alone or as a member of a group.

        with Consumer("localhost:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            while True:
                for record in consumer.poll(1.0):
                    print(record.topic, record.partition, record.offset, record.key, record.value)
                consumer.commit()

    The first argument says where the brokers are: ``host:port``, several of them, a ``ClientConfig``, a ``Client``, or
    a mapping with Kafka's property names (``bootstrap.servers``, ``group.id``, ...), or the ``Path`` of a file of them.
    The keywords are those of ``ConsumerConfig``. Nothing connects before the first poll. A consumer belongs to the
    thread that uses it.

    No thread is started: heartbeats leave while a method of the consumer runs. So poll at least once per
    ``session_timeout``, or call ``poll`` on paused partitions while you are busy.
    """

    _background = False

    def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records, as soon as there are some; an empty list after ``timeout`` seconds.

        At most ``max_records`` are returned (by default that of the configuration). A poll also does everything else:
        it joins the group, calls the functions of ``subscribe``, and sends heartbeats. Without a subscription or an
        assignment it returns an empty list.

        Raises ``BrokerError``, ``AuthenticationError``, ``ConnectionFailedError``, ``PositionError``, ``RecordError``
        for damaged records (seek past them to go on), and what a function of ``subscribe`` raised.
        """
        room = self.config.max_records if max_records is None else max_records
        if not self.client.is_threaded:
            return self._run(self.core.poll(self._deadline(timeout), room))
        if not self.core.needs_poll:
            records = self._taken(room)
            if records:
                return records
        deadline = self._deadline(timeout)
        while self._run(self.core.fill(deadline)):
            records = self._taken(room)
            if records:
                return records
        return []

    def _taken(self, room: int) -> list[ConsumerRecord]:
        buffered = self.core.partitions.buffered
        records = self.core.take(room)
        if self.core.partitions.buffered != buffered:
            self.client.network.post(self.core.state.drained.give)
        return records

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield records for ever, each once. A record counts as handled when the next one is asked for."""
        while True:
            if (record := self.core.take_next()) is None:
                self._run(self.core.fill(self._deadline(_ITERATION)))
                record = self.core.take_next()
            if record is not None:
                yield record

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._run_last(self.core.close(self._deadline(None), kind is None))


class AsyncConsumer(ConsumerMethods[AsyncClient], AsyncForm):
    """Reads topics, alone or as a member of a group, for asyncio. See ``Consumer``.

        async with AsyncConsumer("localhost:9092", group_id="billing") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                print(record.value)

    It must be made while the event loop runs. Heartbeats, fetching and automatic commits run as tasks between the
    polls. A consumer that does not poll for ``rebalance_timeout`` leaves the group, as in Kafka's consumer; the next
    poll joins again. The functions of ``subscribe`` may be coroutine functions.
    """

    _background = True

    async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records, as soon as there are some; an empty list after ``timeout`` seconds. See ``Consumer.poll``."""
        room = self.config.max_records if max_records is None else max_records
        deadline = self._deadline(timeout)
        while await self._run(self.core.fill(deadline)):
            records = self.core.take(room)
            if records:
                self.core.state.drained.give()
                return records
        return []

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield records for ever, each once. A record counts as handled when the next one is asked for."""
        while True:
            if (record := self.core.take_next()) is None:
                await self._run(self.core.fill(self._deadline(_ITERATION)))
                record = self.core.take_next()
            if record is not None:
                yield record

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        await self._run_last(self.core.close(self._deadline(None), kind is None))
