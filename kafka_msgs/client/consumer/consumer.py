"""``Consumer``, which blocks. Generated from ``async_consumer.py`` by docs/tools/facades.py: do not edit it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from kafka_msgs.client.client import Client
from kafka_msgs.client.cluster_metadata import PartitionInfo, TopicPartition
from kafka_msgs.client.config_loading import Servers
from kafka_msgs.client.consumer.assigned_partitions import OffsetResetStrategy
from kafka_msgs.client.consumer.config import CONSUMER, ConsumerConfig, ConsumerOptions
from kafka_msgs.client.consumer.consumer_state import Callback, Offsets, offsets_to_commit
from kafka_msgs.client.consumer.core import ConsumerCore, Undo
from kafka_msgs.client.consumer.offsets import OffsetAndMetadata, OffsetAndTimestamp
from kafka_msgs.client.facade import EXIT_TIMEOUT, BlockingFacade
from kafka_msgs.client.flow import Flow, Future
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.records import ConsumerRecord

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Consumer"]

_ITERATION: Final = 60.0
"""How long one wait of an iteration lasts, in seconds. Nothing depends on it."""


class Consumer(BlockingFacade):
    """Reads topics, alone or as a member of a group.

        with Consumer("localhost:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            for record in consumer:
                print(record.topic, record.partition, record.offset, record.key, record.value)
                consumer.commit(record)

    The first argument is the address of a broker (``host:port``), or several, or a ``ClientConfig``, or an
    ``Client``, or a mapping with Kafka's property names (``bootstrap.servers``, ``group.id``, ...), or the
    ``Path`` of a file of them. The options are those of ``ConsumerConfig``, and ``client_id``, ``timeout``, ``tls`` and
    ``credentials`` of ``ClientConfig``. ``key_deserializer`` and ``value_deserializer`` are functions of bytes; they do
    not get a key or value that is None. Nothing connects before the first poll.

    Heartbeats, fetching and automatic commits go on between the polls. A consumer that does not poll for
    ``max_poll_interval`` leaves the group, and the next poll joins it again. Records are returned only while the
    consumer is certain that it still owns their partitions.

    The *position* of a partition is behind the last record that was returned. A record counts as *handled* when the
    program comes back for more. ``commit`` commits positions, ``auto_commit`` commits what is handled.

    A consumer belongs to one thread at a time: a second one that calls it meanwhile gets a
    ``RuntimeError``. Only ``wakeup`` and ``close`` may come from any thread. The functions of
    ``subscribe`` run in the thread that polls. With ``threadless`` there is no I/O thread, and
    nothing happens between the calls: poll at least once per ``session_timeout``.
    """

    def __init__(
        self,
        servers: Servers | Client,
        *,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        threadless: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        super().__init__()
        self.config: ConsumerConfig = self._take_client(
            servers,
            options,
            CONSUMER,
            threadless=threadless,
        )
        self.core = ConsumerCore(
            self.client.core,
            self.config,
            background=not self.client.threadless,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )

    # What to read

    def subscribe(
        self,
        topics: str | Collection[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics, which the members of the group share. The next poll joins the group.

        ``pattern`` is a regular expression instead of topics. In a group of the protocol ``consumer`` a text is
        matched by the broker (RE2 syntax); everything else is matched here, with ``re.search``. Topics that are created
        later are read as soon as they exist. Clients do not create topics.

        The functions get a list of partitions. ``on_assigned`` is called before anything is fetched from new
        partitions: it may ``seek`` to positions that are kept elsewhere. ``on_revoked`` is called before partitions are
        given up: it may commit. ``on_lost`` is called for partitions that others may own already; without it
        ``on_revoked`` is called. An exception of a function is raised by the poll.
        """
        names = (topics,) if isinstance(topics, str) else topics
        self._do(
            lambda: self.core.subscribe(names, pattern, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        )

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that the consumer subscribes to; those that match, as far as they are known, for a pattern."""
        return self.core.subscribed_topics

    def unsubscribe(self, *, timeout: float | None = None) -> None:
        """Give up all partitions, and leave the group."""
        with self._exclusive:
            self._run(self.core.unsubscribe(self._deadline(timeout)))

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group: the coordinator is used for commits only."""
        self._do(lambda: self.core.set_partitions([TopicPartition(*each) for each in partitions]))

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has now."""
        return self.core.partitions.names

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Return nothing from partitions until ``resume``; without an argument, from all of them."""
        self._do(lambda: self.core.pause(partitions or self.assignment, paused=True))

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Continue with paused partitions; without an argument, with all of them."""
        self._do(lambda: self.core.pause(partitions or self.assignment, paused=False))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(each.name for each in self.core.partitions if each.paused)

    # Records

    def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records, as soon as there are some; an empty list after ``timeout`` seconds.

        At most ``max_records`` are returned (by default that of the configuration). Without a subscription or an
        assignment the list is empty.

        Raises ``BrokerError``, ``AuthenticationError``, ``ConnectionFailedError`` (before the first successful
        connection, and for what no further attempt can mend), ``OffsetPositionError``, ``RecordError`` for damaged
        records (seek past them to continue), ``WakeupError``, and what a function of ``subscribe`` raised.
        """
        room = self.config.max_records if max_records is None else max_records
        deadline = self._deadline(timeout)
        undo: Undo = []
        try:
            with self._exclusive:
                if not self.core.needs_poll and (records := self.core.take(room, undo)):
                    return records
                while self._run(self.core.fill(deadline)):
                    if records := self.core.take(room, undo):
                        return records
        except BaseException:
            self.core.put_back(undo)
            raise
        return []

    def poll_table(
        self, timeout: float = 0.0, *, columns: Sequence[str] | None = None, max_records: int | None = None
    ) -> pa.Table:
        """Return records as an Arrow table, as soon as there are some; an empty one after ``timeout`` seconds.

        The table has the columns ``topic``, ``partition``, and ``columns`` of ``kafka_msgs.columns.record_schema`` (by
        default offset, timestamp, key, value and headers). Batches are not divided, so there may be some more records
        than ``max_records``. Needs the extra ``arrow``. Raises what ``poll`` raises.
        """
        room = self.config.max_records if max_records is None else max_records
        deadline = self._deadline(timeout)
        undo: Undo = []
        builder = self.core.table_builder(columns)
        try:
            with self._exclusive:
                while not builder.rows and self._run(self.core.fill(deadline)):
                    self.core.take_table(room, builder, undo)
                return builder.table()
        except BaseException:
            self.core.put_back(undo)
            raise

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield records for ever, each once. A record counts as handled when the next one is requested."""
        while True:
            undo: Undo = []
            try:
                record = self.core.take_next(undo)
                if record is None:
                    with self._exclusive:
                        self._run(self.core.fill(self._deadline(_ITERATION)))
                    continue
            except BaseException:
                self.core.put_back(undo)
                raise
            yield record

    def wakeup(self) -> None:
        """Interrupt the call that waits in ``poll`` or an iteration, or the next one: it raises ``WakeupError``."""
        self.core.wakeup()

    # Positions

    def commit(self, offsets: Offsets | ConsumerRecord | None = None, *, timeout: float | None = None) -> None:
        """Commit offsets: by default the positions of all partitions. A record stands for the offset behind it.

        Raises ``CommitFailedError`` if the group has given the partitions to another member, and other kinds of
        ``BrokerError``.
        """
        with self._exclusive:
            self._run(self.core.positions.commit(offsets_to_commit(offsets), self._deadline(timeout)))

    def commit_nowait(self, offsets: Offsets | ConsumerRecord | None = None) -> Future[None]:
        """Begin to commit, and return at once.

        The value that is returned is ``done`` after the commit; its ``result()`` raises what ``commit`` raises.
        """
        return self._do(lambda: self.core.positions.commit_nowait(offsets_to_commit(offsets)))

    def committed(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what the group has committed for partitions. Those without a commit are left out."""
        names = [TopicPartition(*each) for each in partitions]
        with self._exclusive:
            return self._run(self.core.positions.committed(names, self._deadline(timeout)))

    def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """Return the offset of the next record that a poll returns; it is looked up if it is not known."""
        with self._exclusive:
            return self._run(self.core.positions.position(TopicPartition(*partition), self._deadline(timeout)))

    def seek(self, offsets: Offsets) -> None:
        """Continue at these offsets: a mapping from partition to offset. Raises ``OffsetPositionError``."""
        self._do(lambda: self.core.seek(offsets))

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Continue at the first record of partitions; without an argument, of all of them."""
        self._do(lambda: self.core.reset(partitions or self.assignment, OffsetResetStrategy.EARLIEST))

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Continue at the end of partitions; without an argument, of all of them."""
        self._do(lambda: self.core.reset(partitions or self.assignment, OffsetResetStrategy.LATEST))

    def seek_to_time(self, timestamp: int, *partitions: tuple[str, int]) -> None:
        """Continue at the first records that are not older than a time: milliseconds since the epoch.

        Where all records are older, continue at the end.
        """
        self._do(lambda: self.core.reset(partitions or self.assignment, timestamp))

    def high_watermark(self, partition: tuple[str, int]) -> int | None:
        """Return the end of a partition that the last fetch response stated, or None before there was one.

        Raises ``OffsetPositionError`` for a partition that the consumer does not have.
        """
        found = self.core.partitions[TopicPartition(*partition)].high_watermark
        return None if found < 0 else found

    def lag(self, partition: tuple[str, int]) -> int | None:
        """Return how many offsets the position is behind the end, as far as the last fetch response stated it.

        Raises ``OffsetPositionError`` for a partition that the consumer does not have.
        """
        return self.core.partitions[TopicPartition(*partition)].lag

    # What the brokers have

    def beginning_offsets(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        times = {TopicPartition(*each): int(OffsetResetStrategy.EARLIEST) for each in partitions}
        found = self._run(self.core.positions.look_up(times, self._deadline(timeout)))
        return {name: each.offset for name, each in found.items()}

    def end_offsets(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset behind the last record of each partition.

        With ``read_committed`` it is the last stable offset.
        """
        times = {TopicPartition(*each): int(OffsetResetStrategy.LATEST) for each in partitions}
        found = self._run(self.core.positions.look_up(times, self._deadline(timeout)))
        return {name: each.offset for name, each in found.items()}

    def offsets_for_times(
        self, times: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record of each partition that is not older than a time (ms since the epoch).

        The value is None where all records are older.
        """
        wanted = {TopicPartition(*name): time for name, time in times.items()}
        found = self._run(self.core.positions.look_up(wanted, self._deadline(timeout)))
        return {name: None if each.offset < 0 else each for name, each in found.items()}

    def partitions_for_topic(self, topic: str, *, timeout: float | None = None) -> Mapping[int, PartitionInfo]:
        """Return the partitions of a topic by number. Raises ``UnknownTopicError``."""
        return self._run(self.core.positions.partitions_of(topic, self._deadline(timeout)))

    def topics(self, *, timeout: float | None = None) -> frozenset[str]:
        """Return the names of all topics that the client may see, without internal ones."""
        return self._run(self.core.positions.topics(self._deadline(timeout)))

    # The member, and the end

    @property
    def member_id(self) -> str:
        """The id of this member in its group. It is empty outside of a group."""
        return self.core.state.identity.member_id

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """The member of the group that this is now, for ``send_offsets_to_transaction`` of a producer (KIP-447).

        With it the broker refuses the offsets if the group has given the partitions to another member. Take it after
        the poll whose records the transaction is about. Raises ``OptionError`` without a group, and
        ``CommitFailedError`` if the consumer has lost its place in the group: then abort the transaction.
        """
        member = self.core.positions.member()
        return ConsumerGroupMetadata(str(self.config.group_id), member.generation, member.member_id, member.instance_id)

    def close(self, *, timeout: float | None = None) -> None:
        """Commit if ``auto_commit`` is set, give up the partitions, and leave the group.

        Records that were returned count as handled. A client that was created here is closed. Another thread or task
        that waits in a call gets ``ClientClosedError``.
        """
        if not self._ended:
            self._run_last(self.core.close(self._deadline(timeout)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close the consumer. After an exception, the last records that were returned do not count as handled."""
        if exc is None:
            self.close()
        elif not self._ended:
            self._run_last_quietly(self.core.close(self._deadline(EXIT_TIMEOUT), done=False))

    def _closing(self) -> Flow[None]:
        return self.core.close(self._deadline(EXIT_TIMEOUT), done=False)

    def _deadline(self, timeout: float | None) -> float:
        return self.client.core.deadline(timeout)
