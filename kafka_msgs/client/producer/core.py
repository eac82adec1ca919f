"""The producer core: collects records, sends batches and reports results, for both public classes.

Every record passes through ``ProducerCore.add``, which looks up the partition, appends to its open batch and never
waits. Methods that may wait are generators (``Flow``). ``sender`` runs concurrently on the same network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.client.broker_errors import raise_for
from kafka_msgs.client.cluster_metadata import PartitionInfo, TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, Wait
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.producer.batch_completion import FailedBatch, Undelivered
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.metadata_refresh import find_partitions
from kafka_msgs.client.producer.partitioner import Partitioner
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.client.producer.record_accumulator import RecordAccumulator, TopicQueues
from kafka_msgs.client.producer.record_placement import RecordPlacement
from kafka_msgs.client.producer.sender import Sender
from kafka_msgs.client.producer.sequences import SequenceManager
from kafka_msgs.client.producer.transaction_manager import TransactionManager, TransactionManagerState
from kafka_msgs.client.scheduler import Task
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DeadlineError, OptionError, ProducerClosedError
from kafka_msgs.records import Payload
from kafka_msgs.records.compression import compress

if TYPE_CHECKING:
    from kafka_msgs.client.producer.tables import PartitionedRows

__all__ = ["Headers", "ProducerCore"]

Headers = Iterable[tuple[str, Payload | None]]


class ProducerCore:
    """The core of one producer, which uses the connections of a client."""

    def __init__(
        self,
        core: ClientCore,
        config: ProducerConfig,
        *,
        partitioner: Partitioner | None = None,
        random: Random | None = None,
        on_failure: Callable[[FailedBatch], object] | None = None,
    ) -> None:
        compress(config.compression, b"", config.compression_level)
        self._core = core
        self._config = config
        self._placement = RecordPlacement(config, partitioner)
        self.accumulator = RecordAccumulator(config, random or Random())
        self._topics = self.accumulator.topics
        self._lock = self.accumulator.lock
        self._undelivered = Undelivered(on_failure)
        self._transactions: TransactionManager | None = None
        self._sender = self._new_sender()
        self._sending: Task[None] | None = None
        self._closed = False
        core.network.events.add(self)
        core.directory.metrics.add_gauge(self._gauges)

    def _new_sender(self) -> Sender:
        """Return a sender with a new producer identity."""
        identity, name = None, self._config.transactional_id
        if self._config.is_idempotent:
            identity = SequenceManager(transactional=name is not None)
        if name is not None and identity is not None:
            self._transactions = TransactionManager(self._core, self._config, identity)
        return Sender(self._core, self._config, self.accumulator, identity, self._transactions, self._undelivered)

    def deadline(self, timeout: float | None) -> float:
        """Return the deadline ``timeout`` seconds from now. None is the delivery timeout."""
        return self._core.deadline(self._config.delivery_timeout if timeout is None else timeout)

    def _gauges(self, topic: str | None) -> dict[str, float]:
        """Return the current metrics: the buffer memory, which all topics share."""
        if topic is not None:
            return {}
        total = self._config.buffer_memory
        return {
            "buffer-total-bytes": float(total),
            "buffer-available-bytes": float(max(0, total - self.accumulator.reserved)),
        }

    # Records

    def add(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int,
        headers: Headers,
        on_delivery: Callable[..., Any] | None = None,
    ) -> tuple[ProducerBatch, int] | None:
        """Add a record to the open batch of its partition, and return the batch and the record's index in it.

        Any thread may call this. If a signal handler raises, the record is either added or not; the state stays valid.

        Returns None if no open batch has room: ``add_when_possible`` then opens one.
        """
        queues = self._topics.get(topic)
        if queues is None:
            return None
        if partition is None and key is None and self._placement.partitioner is None:
            queue = queues.sticky
            assert queue is not None
        else:
            queue = self._placement.queue(queues, key, partition)
        with self._lock:
            batch = queue.open
            if batch is None or not batch.append(key, value, timestamp=timestamp, headers=headers):
                return None
            index = batch.collector.count - 1
            if on_delivery is not None:
                if batch.callbacks is None:
                    batch.callbacks = []
                batch.callbacks.append((index, timestamp, on_delivery))
        return batch, index

    def add_when_possible(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int,
        headers: Headers,
        on_delivery: Callable[..., Any] | None = None,
    ) -> Flow[tuple[ProducerBatch, int]]:
        """Add a record, and return its batch and its index in it.

        Waits for metadata and buffer memory if needed.
        """
        headers = tuple(headers)
        size = self._placement.checked_size(value, key, headers)
        deadline = self._core.network.now() + self._config.max_block
        while True:
            self._require_open()
            queues = yield from self._known(topic, deadline)
            added = self.add(topic, value, key, partition, timestamp, headers, on_delivery)
            if added is not None:
                return added
            room = self.accumulator.can_allocate(size)
            if room is None:
                yield from self._room(deadline)
            else:
                self._open_batch(queues, key, partition, room)
                self._sender.wake()

    def add_to_new_batch(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int,
        headers: Headers,
        on_delivery: Callable[..., Any] | None = None,
    ) -> tuple[ProducerBatch, int] | None:
        """Open a batch and add a record in the caller's thread, like ``add``, if that needs nothing but memory.

        Returns None if the I/O thread must do it: for a new topic, a full buffer, an error or a transaction.
        """
        if self._transactions is not None:
            return None
        size = self._placement.checked_size(value, key, headers)
        record = topic, value, key, partition, timestamp, headers, on_delivery
        with self._lock:
            queues = self._topics.get(topic)
            if queues is None or queues.metadata is not self._core.cluster.topic(topic):
                return None
            if self._closed or self._sender.fatal is not None or self._sending is None or self._sending.done:
                return None
            if (added := self.add(*record)) is not None:
                return added
            room = self.accumulator.can_allocate(size)
            if room is None:
                return None
            self._core.network.post(self._wake_sender)
            self._open_batch(queues, key, partition, room)
            return self.add(*record)

    def _wake_sender(self) -> None:
        """Wake the sender after a thread has opened a batch. It holds the lock until it has added the first record."""
        with self._lock:
            self._sender.wake()

    def add_table(self, topic: str, table: Any, now_ms: int) -> Flow[list[PartitionedRows]]:
        """Add the rows of an Arrow table, and return their batches. Rows without a timestamp get ``now_ms``."""
        from kafka_msgs.client.producer.tables import add_rows, rows_of

        self._require_open()
        queues = yield from self._known(topic, self._core.network.now() + self._config.max_block)
        pieces = list(rows_of(table, topic, len(queues.queues), now_ms, self._placement.partitioner))
        for rows in pieces:
            yield from add_rows(queues, rows, self.add_when_possible, self._lock)
        return pieces

    def delivered(self, pieces: list[PartitionedRows], deadline: float) -> Flow[Any]:
        """Deliver the rows of a table, and return their partitions and offsets as a table."""
        from kafka_msgs.client.producer.tables import delivery_table

        yield from self.flush(deadline)
        return delivery_table(pieces)

    def _open_batch(self, queues: TopicQueues, key: Payload | None, partition: int | None, room: int) -> None:
        """Open a batch for the partition of the next record. Without a key, this may switch the partition."""
        transactional = self._transactions is not None
        if self._placement.is_sticky(key, partition):
            if queues.sticky is not None:
                self.accumulator.close(queues.sticky)
            queue = self.accumulator.next_sticky(queues)
            if queue.open is not None:
                return
        else:
            queue = self._placement.queue(queues, key, partition)
        self.accumulator.open_batch(queue, room, self._core.network.now(), transactional)

    def _known(self, topic: str, deadline: float) -> Flow[TopicQueues]:
        """Return the current partitions of a topic. Requests the metadata of a new topic."""
        partitions = yield from find_partitions(self._core, self._config, topic, deadline)
        led = [number for number, info in sorted(partitions.items()) if info.leader is not None]
        return self.accumulator.topic(topic, max(partitions) + 1, led, self._core.cluster.topic(topic))

    def _room(self, deadline: float) -> Flow[None]:
        """Wait for buffer memory, until a batch is done."""
        self.accumulator.close_all()
        self._sender.wake()
        oldest = next(iter(self.accumulator.incomplete))
        yield from self._until(oldest, deadline, "room in the buffer")

    # Results

    def result(
        self, batch: ProducerBatch, index: int, deadline: float, *, hurry: bool
    ) -> Flow[tuple[ProducerBatch, int]]:
        """Wait until the batch of a record is done; return the record's final batch and its index in it.

        With ``hurry`` the batch is sent without ``linger``.
        """
        while True:
            batch, index = batch.delivery_of(index)
            if batch.done:
                return batch, index
            if hurry:
                self._send_without_linger(batch)
            yield from self._until(batch, deadline, "the delivery of a record")

    def _send_without_linger(self, batch: ProducerBatch) -> None:
        queue = self.accumulator.incomplete.get(batch)
        if queue is not None and queue.open is batch:
            self.accumulator.close(queue)
            self._sender.wake()

    def flush(self, deadline: float) -> Flow[None]:
        """Send all records, and wait until each is delivered or has failed."""
        self.accumulator.close_all()
        self._sender.wake()
        waiting = list(self.accumulator.incomplete)
        while waiting:
            batch = waiting.pop()
            while not (batch.done or batch.parts):
                yield from self._until(batch, deadline, "the delivery of all records")
            waiting += batch.parts

    def _until(self, batch: ProducerBatch, deadline: float, waiting_for: str) -> Flow[None]:
        """Wait until a batch is done or split. Raises the error of the sender if it failed."""
        self.start()
        assert self._sending is not None
        finished = batch.finished()
        if not finished.done:
            yield Wait((finished, self._sending), deadline)
        if self._sending.done and not finished.done:
            self._sending.result()
        if not finished.done and self._core.network.now() >= deadline:
            raise DeadlineError(waiting_for=waiting_for, cause=self._sender.cause_of(batch))

    def raise_undelivered(self) -> None:
        """Raise ``UndeliveredError`` for failed records with unreported errors."""
        if (error := self._undelivered.error()) is not None:
            raise error

    def purge(self) -> int:
        """Drop batches that were never sent, and return the number of their records."""
        return self._sender.purge()

    def partitions_of(self, topic: str, deadline: float) -> Flow[Mapping[int, PartitionInfo]]:
        """Return the partitions of a topic. Raises ``UnknownTopicError``."""
        cluster = yield from self._core.refresh((topic,), deadline=deadline)
        info = cluster.topics.get(topic)
        raise_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if info is None else info.error, api="Metadata", subject=topic)
        return dict(cluster.partitions(topic))

    def start(self) -> None:
        """Start the sender task unless it is running."""
        if self._sending is None or self._sending.done:
            self._sending = self._core.network.spawn(self._sender.run())

    # Transactions

    @property
    def transactions(self) -> TransactionManager:
        """The transaction manager. Raises ``OptionError`` for a producer without a transactional id."""
        if self._transactions is None:
            reason = "transactions need a transactional_id"
            raise OptionError(source="Producer", option="transactional_id", value=None, reason=reason)
        return self._transactions

    def init_transactions(self, deadline: float) -> Flow[None]:
        """Get the producer id of the transactional id."""
        yield from self.transactions.initialize(deadline)

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._require_not_closed()
        self.transactions.begin()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> Flow[None]:
        """Commit offsets of a group with the transaction."""
        yield from self.transactions.send_offsets(offsets, group)

    def commit(self, deadline: float) -> Flow[None]:
        """Deliver all records, and commit."""
        self.transactions.begin_commit()
        yield from self.flush(deadline)
        yield from self.transactions.end(commit=True, deadline=deadline)

    def abort(self, deadline: float) -> Flow[None]:
        """Fail unsent records, wait for in-flight requests, and abort."""
        self.transactions.begin_abort()
        self._sender.drop_unsent(self.transactions.reason)
        yield from self.flush(deadline)
        yield from self.transactions.end(commit=False, deadline=deadline)

    # The end

    def close(self, deadline: float) -> Flow[None]:
        """Deliver records until the deadline, and fail the remaining ones. An open transaction is aborted."""
        if self._closed:
            return
        with self._lock:
            self._closed = True
        self._core.network.events.discard(self)
        self._core.directory.metrics.remove_gauge(self._gauges)
        self.accumulator.close_all()
        try:
            if self._transactions is not None and self._transactions.state in _UNFINISHED:
                yield from self.abort(deadline)
            yield from self.flush(deadline)
        finally:
            self.stop()

    def stop(self) -> None:
        """Fail all undelivered records, and stop the sender."""
        with self._lock:
            self._closed = True
        self._sender.close()
        if self._sending is not None:
            self._sending.cancel()
        self._sender.give_up(ProducerClosedError())

    # External events (``NetworkUser``)

    def on_interrupt(self, error: Exception) -> None:
        """Fail all records after an external exception ended all flows.

        The broker may have records that were in flight. The next call requests a new producer id; a transactional
        producer must call ``init_transactions`` again.
        """
        with self._lock:  # another thread may be opening a batch
            undelivered = self.accumulator.clear()
            self._sender, self._sending = self._new_sender(), None
        for batch in undelivered:
            if not batch.done:
                batch.fail(error)
                self._undelivered.add(batch, error)

    def on_fork(self) -> None:
        """Remove all open batches in a child process, so that the next call raises ``ForkedError``.

        A thread that exists in the parent only may have held the lock.
        """
        self._topics.clear()
        self._closed = True
        self._lock = self.accumulator.lock = RLock()

    def on_exit(self, deadline: float) -> Flow[None]:
        """The process ends."""
        return self.close(deadline)

    def _require_not_closed(self) -> None:
        if self._closed:
            raise ProducerClosedError()

    def _require_open(self) -> None:
        """Raise unless the producer accepts records now."""
        self._require_not_closed()
        fatal, self._sender.fatal = self._sender.fatal, None
        if fatal is not None:
            raise fatal
        if self._transactions is not None:
            self._transactions.require_open("send a record")
        self.start()


_UNFINISHED: Final = (TransactionManagerState.OPEN, TransactionManagerState.ABORTABLE)
