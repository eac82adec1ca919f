"""``AsyncConsumer``: reads topics, for asyncio. All logic is in ``core``; ``consumer`` has the class that blocks."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, Unpack

from kafka_msgs.client.async_client import AsyncClient
from kafka_msgs.client.cluster_metadata import PartitionInfo, TopicPartition
from kafka_msgs.client.config_loading import Servers
from kafka_msgs.client.consumer.assigned_partitions import OffsetResetStrategy
from kafka_msgs.client.consumer.config import CONSUMER, ConsumerConfig, ConsumerOptions
from kafka_msgs.client.consumer.consumer_state import Callback, Offsets, offsets_to_commit
from kafka_msgs.client.consumer.core import ConsumerCore
from kafka_msgs.client.consumer.offsets import OffsetAndTimestamp
from kafka_msgs.client.consumer.record_collector import Deserializer
from kafka_msgs.client.consumer.record_taker import Undo
from kafka_msgs.client.facade import EXIT_TIMEOUT, AsyncFacade
from kafka_msgs.client.flow import Flow, Future
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.records import ConsumerRecord

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AsyncConsumer"]

_ITERATION: Final = 60.0
"""The length of one wait during iteration, in seconds. The exact value does not matter."""


class AsyncConsumer(AsyncFacade):
    """Reads topics, alone or as a member of a group.

        async with AsyncConsumer("localhost:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                print(record.topic, record.partition, record.offset, record.key, record.value)
                await consumer.commit(record)

    The first argument is one or more broker addresses (``host:port``), a ``ClientConfig``, an ``AsyncClient``, a
    mapping with Kafka's property names (``bootstrap.servers``, ``group.id``, ...), or the ``Path`` of a properties
    file. The options are the settings of ``ConsumerConfig``, and ``client_id``, ``timeout``, ``tls`` and
    ``credentials`` from ``ClientConfig``. ``key_deserializer`` and ``value_deserializer`` take bytes; the consumer
    does not call them for a key or value of None. Creating a consumer opens no connection.

    Heartbeats, fetching and automatic commits continue between polls. A consumer that does not poll for
    ``max_poll_interval`` leaves the group, and the next poll rejoins it. The consumer returns records only while it
    is certain that it still owns their partitions.

    The *position* of a partition is the offset after the last returned record. A record counts as *handled* when the
    program requests more records. ``commit`` commits positions; ``auto_commit`` commits the offsets of handled records.

    Create the consumer while the event loop is running. The callbacks of ``subscribe`` may be coroutine functions.
    Cancelling a call loses no records.
    """

    # blocking doc: Only one thread may use a consumer at a time; a concurrent call from a second thread raises
    # blocking doc: ``RuntimeError``. Any thread may call ``wakeup`` and ``close``. The callbacks of
    # blocking doc: ``subscribe`` run in the polling thread. With ``threadless`` there is no I/O thread, and
    # blocking doc: nothing happens between the calls: poll at least once per ``session_timeout``.

    def __init__(
        self,
        servers: Servers | AsyncClient,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        # blocking: threadless: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self.config: ConsumerConfig = self._take_client(
            servers,
            options,
            CONSUMER,
            # blocking: threadless=threadless,
        )
        self.core = ConsumerCore(
            self.client.core,
            self.config,
            background=True,  # asyncio
            # blocking: background=not self.client.threadless,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )

    # Subscription and assignment

    def subscribe(
        self,
        topics: str | Collection[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics, sharing their partitions with the other group members. The next poll joins the group.

        ``pattern`` is a regular expression instead of topics. With the group protocol ``consumer``, the broker matches
        a string pattern (RE2 syntax); otherwise the client matches it with ``re.search``. The consumer reads topics
        created later as soon as they exist. Clients do not create topics.

        Each callback receives a list of partitions. The consumer calls ``on_assigned`` before fetching from new
        partitions, so the callback may ``seek`` to positions stored elsewhere. It calls ``on_revoked`` before giving
        up partitions, so the callback may commit. It calls ``on_lost``, or ``on_revoked`` if ``on_lost`` is not set,
        for partitions that other members may already own. The poll raises exceptions from callbacks.
        """
        names = (topics,) if isinstance(topics, str) else topics
        self._do(
            lambda: self.core.subscribe(names, pattern, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        )

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics. For a pattern matched by the client: the known topics that match it."""
        return self.core.subscribed_topics

    async def unsubscribe(self, *, timeout: float | None = None) -> None:
        """Give up all partitions, and leave the group."""
        with self._exclusive:
            await self._run(self.core.unsubscribe(self._deadline(timeout)))

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read exactly these partitions without joining the group; the coordinator only stores commits."""
        self._do(lambda: self.core.set_partitions([TopicPartition(*each) for each in partitions]))

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions currently assigned to the consumer."""
        return self.core.partitions.names

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Stop returning records from partitions until ``resume``; without an argument, from all partitions."""
        self._do(lambda: self.core.pause(partitions or self.assignment, paused=True))

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Resume paused partitions; without an argument, all partitions."""
        self._do(lambda: self.core.pause(partitions or self.assignment, paused=False))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return frozenset(each.name for each in self.core.partitions if each.paused)

    # Records

    async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records as soon as any are available, or an empty list after ``timeout`` seconds.

        The list contains at most ``max_records`` records (default: the configured ``max_records``). It is empty without
        a subscription or an assignment.

        Raises ``BrokerError``, ``AuthenticationError``, ``ConnectionFailedError`` (before the first successful
        connection, and for permanent failures), ``OffsetPositionError``, ``RecordError`` for damaged records (seek past
        them to continue), ``WakeupError``, and any exception raised by a ``subscribe`` callback.
        """
        room = self.config.max_records if max_records is None else max_records
        deadline = self._deadline(timeout)
        undo: Undo = []
        try:
            with self._exclusive:
                if not self.core.needs_poll and (records := self.core.taker.take(room, undo)):
                    return records
                while await self._run(self.core.fill(deadline)):
                    if records := self.core.taker.take(room, undo):
                        return records
        except BaseException:
            self.core.taker.put_back(undo)
            raise
        return []

    async def poll_table(
        self, timeout: float = 0.0, *, columns: Sequence[str] | None = None, max_records: int | None = None
    ) -> pa.Table:
        """Return records as an Arrow table as soon as any are available, or an empty table after ``timeout`` seconds.

        The table has the columns ``topic`` and ``partition``, and ``columns`` from ``kafka_msgs.columns.record_schema``
        (default: offset, timestamp, key, value and headers). Batches are not split, so the table may contain more than
        ``max_records`` rows. Requires the extra ``arrow``. Raises the same errors as ``poll``.
        """
        room = self.config.max_records if max_records is None else max_records
        deadline = self._deadline(timeout)
        undo: Undo = []
        builder = self.core.table_builder(columns)
        try:
            with self._exclusive:
                while not builder.rows and await self._run(self.core.fill(deadline)):
                    self.core.taker.take_table(room, builder, undo)
                return builder.table()
        except BaseException:
            self.core.taker.put_back(undo)
            raise

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield each record once, indefinitely. Requesting the next record marks the previous one as handled."""
        while True:
            undo: Undo = []
            try:
                record = self.core.taker.take_next(undo)
                if record is None:
                    with self._exclusive:
                        await self._run(self.core.fill(self._deadline(_ITERATION)))
                    continue
            except BaseException:
                self.core.taker.put_back(undo)
                raise
            yield record

    def wakeup(self) -> None:
        """Interrupt the waiting ``poll`` or iteration, or the next one: it raises ``WakeupError``."""
        self.core.wakeup()

    # Positions

    async def commit(self, offsets: Offsets | ConsumerRecord | None = None, *, timeout: float | None = None) -> None:
        """Commit offsets: by default the positions of all partitions, or the stored offsets (``store_offsets``).

        A record stands for its offset plus one.

        Raises ``CommitFailedError`` if the group has reassigned the partitions to another member, and other kinds of
        ``BrokerError``.
        """
        with self._exclusive:
            wanted = None if offsets is None else offsets_to_commit(offsets)
            await self._run(self.core.positions.commit(wanted, self._deadline(timeout)))

    def commit_nowait(self, offsets: Offsets | ConsumerRecord | None = None) -> Future[None]:
        """Start a commit without waiting, and return its future.

        The future is ``done`` after the commit; its ``result()`` raises the same errors as ``commit``.
        """
        wanted = None if offsets is None else offsets_to_commit(offsets)
        return self._do(lambda: self.core.positions.commit_nowait(wanted))

    def store_offsets(self, offsets: Offsets | ConsumerRecord) -> None:
        """Store offsets for the next commit, for a consumer with ``auto_offset_store=False``.

        A record stands for its offset plus one. ``auto_commit``, and ``commit`` without an argument, then commit the
        stored offsets: call this for each record after handling it. Any thread may call it. Raises
        ``OffsetPositionError`` for a partition that the consumer does not have, and ``OptionError`` with
        ``auto_offset_store``.
        """
        self.core.store_offsets(offsets_to_commit(offsets))

    async def committed(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the group. Partitions without a commit are omitted."""
        names = [TopicPartition(*each) for each in partitions]
        with self._exclusive:
            return await self._run(self.core.positions.committed(names, self._deadline(timeout)))

    async def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """Return the offset of the next record that a poll returns. Looks up an unknown position."""
        with self._exclusive:
            return await self._run(self.core.positions.position(TopicPartition(*partition), self._deadline(timeout)))

    def seek(self, offsets: Offsets) -> None:
        """Continue at these offsets: a mapping from partition to offset. Raises ``OffsetPositionError``."""
        self._do(lambda: self.core.seek(offsets))

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Continue at the first record of partitions; without an argument, of all partitions."""
        self._do(lambda: self.core.reset(partitions or self.assignment, OffsetResetStrategy.EARLIEST))

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Continue at the end of partitions; without an argument, of all partitions."""
        self._do(lambda: self.core.reset(partitions or self.assignment, OffsetResetStrategy.LATEST))

    def seek_to_time(self, timestamp: int, *partitions: tuple[str, int]) -> None:
        """Continue at the first record at or after a timestamp, in milliseconds since the epoch.

        If all records of a partition are older, continue at its end.
        """
        self._do(lambda: self.core.reset(partitions or self.assignment, timestamp))

    def high_watermark(self, partition: tuple[str, int]) -> int | None:
        """Return the high watermark from the last fetch response of a partition, or None before the first response.

        Raises ``OffsetPositionError`` for a partition that the consumer does not have.
        """
        found = self.core.partitions[TopicPartition(*partition)].high_watermark
        return None if found < 0 else found

    def lag(self, partition: tuple[str, int]) -> int | None:
        """Return the distance from the position to the high watermark of the last fetch response, or None if unknown.

        Raises ``OffsetPositionError`` for a partition that the consumer does not have.
        """
        return self.core.partitions[TopicPartition(*partition)].lag

    # Offsets and metadata from the brokers

    async def beginning_offsets(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        times = {TopicPartition(*each): int(OffsetResetStrategy.EARLIEST) for each in partitions}
        found = await self._run(self.core.positions.look_up(times, self._deadline(timeout)))
        return {name: each.offset for name, each in found.items()}

    async def end_offsets(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the end offset of each partition: the high watermark.

        With ``read_committed``, return the last stable offset.
        """
        times = {TopicPartition(*each): int(OffsetResetStrategy.LATEST) for each in partitions}
        found = await self._run(self.core.positions.look_up(times, self._deadline(timeout)))
        return {name: each.offset for name, each in found.items()}

    async def offsets_for_times(
        self, times: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a timestamp (ms since the epoch) for each partition.

        The value is None if all records of the partition are older.
        """
        wanted = {TopicPartition(*name): time for name, time in times.items()}
        found = await self._run(self.core.positions.look_up(wanted, self._deadline(timeout)))
        return {name: None if each.offset < 0 else each for name, each in found.items()}

    async def partitions_for_topic(self, topic: str, *, timeout: float | None = None) -> Mapping[int, PartitionInfo]:
        """Return the partitions of a topic by number. Raises ``UnknownTopicError``."""
        return await self._run(self.core.positions.partitions_of(topic, self._deadline(timeout)))

    async def topics(self, *, timeout: float | None = None) -> frozenset[str]:
        """Return the names of all topics visible to the client, excluding internal topics."""
        return await self._run(self.core.positions.topics(self._deadline(timeout)))

    def metrics(self, topic: str | None = None) -> dict[str, float]:
        """Return the metrics of the client of this consumer by Kafka's names, such as ``records-lag-max``.

        With ``topic``, return those that count the records of one topic.
        """
        return self.client.metrics(topic)

    # Group membership and closing

    @property
    def member_id(self) -> str:
        """The member id in the group, or an empty string outside a group."""
        return self.core.state.identity.member_id

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """The current group metadata, for a producer's ``send_offsets_to_transaction`` (KIP-447).

        With this metadata, the broker rejects the offsets if the group has reassigned the partitions to another member,
        or if a topic was deleted and created again. Read it after the poll that returned the records of the
        transaction. Raises ``OptionError`` without a group, and ``CommitFailedError`` if the consumer is no longer a
        group member; abort the transaction in that case.
        """
        return self.core.positions.group_metadata()

    async def close(self, *, timeout: float | None = None) -> None:
        """Commit if ``auto_commit`` is set, give up the partitions, and leave the group.

        All returned records count as handled. ``close`` also closes the client if the consumer created it. A call that
        is waiting in another thread or task raises ``ClientClosedError``.
        """
        if not self._ended:
            await self._run_last(self.core.close(self._deadline(timeout)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close the consumer. After an exception, the most recently returned records do not count as handled."""
        if exc is None:
            await self.close()
        elif not self._ended:
            await self._run_last_quietly(self.core.close(self._deadline(EXIT_TIMEOUT), done=False))

    def _closing(self) -> Flow[None]:
        return self.core.close(self._deadline(EXIT_TIMEOUT), done=False)

    def _deadline(self, timeout: float | None) -> float:
        return self.client.core.deadline(timeout)
