"""Collects records into batches per partition, within bounded memory.

It does not depend on brokers: it tracks which batches wait and since when, and ``sender`` decides when to send them. In
Kafka this is the class ``org.apache.kafka.clients.producer.internals.RecordAccumulator``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random
from threading import RLock

from kafka_msgs.client.cluster_metadata import TopicMetadata
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.partitioner import next_sticky
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.client.producer.sequences import PartitionSequences

__all__ = ["PartitionQueue", "RecordAccumulator", "TopicQueues"]


class PartitionQueue:
    """The unsent batches of one partition: closed batches in order, then the open one."""

    __slots__ = ("closed", "open", "opened", "partition", "sequences", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.open: ProducerBatch | None = None
        self.opened = 0
        """The number of batches opened so far."""
        self.closed: deque[ProducerBatch] = deque()
        self.sequences = PartitionSequences()

    @property
    def unsent(self) -> list[ProducerBatch]:
        """All batches, in order. After an interrupted call, the open batch may also be the last closed one."""
        batch = self.open
        return list(self.closed) if batch is None or batch in self.closed else [*self.closed, batch]

    @property
    def is_empty(self) -> bool:
        """Whether the queue contains no batch."""
        return self.open is None and not self.closed

    @property
    def first(self) -> ProducerBatch:
        """The next batch to send. The queue must not be empty."""
        found = self.closed[0] if self.closed else self.open
        assert found is not None
        return found

    def requeue(self, batch: ProducerBatch) -> None:
        """Put back a batch for a retry, at its position by opening order."""
        before = 0
        for other in self.closed:
            if other.order > batch.order:
                break
            before += 1
        self.closed.insert(before, batch)


class TopicQueues:
    """The partitions of one topic, and the current sticky partition for records without a key."""

    __slots__ = ("leaders", "metadata", "queues", "sticky", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.queues: list[PartitionQueue] = []
        self.leaders: list[PartitionQueue] = []
        """The partitions with a leader, or all partitions if none has one."""
        self.metadata: TopicMetadata | None = None
        """The metadata from which the partitions were last updated."""
        self.sticky: PartitionQueue | None = None

    def update(self, count: int, with_leader: Iterable[int]) -> None:
        """Update the number of partitions and the partitions with a leader. The number never decreases."""
        self.queues += [PartitionQueue(self.topic, number) for number in range(len(self.queues), count)]
        self.leaders = [self.queues[number] for number in with_leader] or self.queues

    def switch(self, random: Random) -> PartitionQueue:
        """Choose the partition for the next records without a key (KIP-794)."""
        self.sticky = self.leaders[next_sticky([len(queue.closed) for queue in self.leaders], random)]
        return self.sticky


class RecordAccumulator:
    """All incomplete batches, and the memory that they reserve."""

    def __init__(self, config: ProducerConfig, random: Random) -> None:
        self._config = config
        self._random = random
        self.owner: object = None
        """The object that waits for deliveries."""
        self.topics: dict[str, TopicQueues] = {}
        self._busy: dict[PartitionQueue, None] = {}
        self._incomplete: dict[ProducerBatch, PartitionQueue] = {}
        self._opened: deque[tuple[PartitionQueue, ProducerBatch]] = deque()
        """New batches that ``_incomplete`` lacks; their reserved memory counts toward the buffer memory."""
        self._filled: deque[ProducerBatch] = deque()
        """Closed batches that still reserve their maximum size."""
        self.reserved = 0
        """Bytes of buffer memory in use."""
        self.partitions = 0
        self.lock = RLock()
        """Guards the queues of the partitions: any thread opens batches, appends to them, and closes them when they are
        full. All other state belongs to the I/O thread."""

    @property
    def busy(self) -> dict[PartitionQueue, None]:
        """The partitions that have batches to send, longest-waiting first. For the I/O thread."""
        self._track()
        return self._busy

    @property
    def incomplete(self) -> dict[ProducerBatch, PartitionQueue]:
        """All incomplete batches, in opening order. For the I/O thread."""
        self._track()
        return self._incomplete

    def _track(self) -> None:
        """Track the batches that other threads have opened and closed.

        An interrupted call may have left a batch that was opened but never used, or that is closed only in part.
        """
        if not (self._opened or self._filled):
            return
        with self.lock:
            while self._opened:
                queue, batch = self._opened.popleft()
                if batch.count or queue.open is batch:
                    self._incomplete[batch] = queue
                    self._busy.setdefault(queue, None)
                    self.reserved += batch.reserved
            while self._filled:
                self._settle(self._filled.popleft())

    def _settle(self, batch: ProducerBatch) -> None:
        """Reserve no more memory for a closed batch than it has. Release an empty batch."""
        queue = self._incomplete.get(batch)
        if queue is None:
            return
        if batch.count:
            self.reserved += batch.size - batch.reserved
            batch.reserved = batch.size
        elif queue.open is not batch:
            del self._incomplete[batch]
            self.reserved -= batch.reserved

    def topic(
        self, name: str, count: int, with_leader: Iterable[int], metadata: TopicMetadata | None = None
    ) -> TopicQueues:
        """Return the queues of a topic, updated to this number of partitions."""
        found = self.topics.setdefault(name, TopicQueues(name))
        found.metadata = metadata
        before = len(found.queues)
        found.update(count, with_leader)
        self.partitions += len(found.queues) - before
        if found.sticky is None or found.sticky not in found.leaders:
            found.switch(self._random)
        return found

    def can_allocate(self, size: int) -> int | None:
        """Return the size limit of a new batch for a first record of ``size`` bytes; None if the buffer is full.

        An open batch reserves its maximum size. The limit is 50 % of the buffer memory divided by the number of
        partitions, so that every partition can have an open batch.
        """
        reserved = self.reserved + sum(batch.reserved for _, batch in tuple(self._opened))
        share = self._config.buffer_memory // (2 * max(1, self.partitions))
        wanted = max(min(self._config.batch_size, self._config.max_request_size, share), size)
        has_room = reserved + wanted <= self._config.buffer_memory or not (self._incomplete or self._opened)
        return wanted if has_room else None

    def open_batch(self, queue: PartitionQueue, size: int, now: float, transactional: bool) -> None:
        """Close the open batch of a partition, and open a new one with a limit of ``size`` bytes. For any thread.

        The exception of a signal handler may end this anywhere: no record is lost.
        """
        codec, level = self._config.compression, self._config.compression_level
        batch = ProducerBatch(queue.topic, queue.partition, now, codec=codec, level=level, size_limit=size)
        batch.owner = self.owner
        batch.transactional = transactional
        batch.reserved = size
        with self.lock:
            self.close(queue)
            batch.order = (queue.opened,)
            queue.opened += 1
            self._opened.append((queue, batch))
            queue.open = batch

    def close(self, queue: PartitionQueue) -> None:
        """Close the open batch of a partition, and drop it if it is empty. For any thread."""
        with self.lock:
            batch = queue.open
            if batch is None:
                return
            if batch.count and not (queue.closed and queue.closed[-1] is batch):
                queue.closed.append(batch)
            self._filled.append(batch)
            queue.open = None

    def close_all(self) -> None:
        """Close all open batches."""
        for queue in tuple(self.busy):
            self.close(queue)

    def next_sticky(self, topic: TopicQueues) -> PartitionQueue:
        """Switch the sticky partition of a topic, which receives the records without a key."""
        return topic.switch(self._random)

    def requeue(self, batch: ProducerBatch) -> None:
        """Put back a batch for a retry."""
        queue = self.incomplete[batch]
        with self.lock:
            queue.requeue(batch)
        self.busy[queue] = None

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Split a batch, and queue the parts in its position."""
        queue = self.incomplete.pop(batch)
        parts = batch.split()
        with self.lock:
            for part in parts:
                queue.requeue(part)
        self.incomplete.update(dict.fromkeys(parts, queue))
        self.busy[queue] = None
        self.reserved += sum(part.reserved for part in parts) - batch.reserved
        return parts

    def take_first(self, queue: PartitionQueue) -> ProducerBatch:
        """Remove and return the first closed batch of a partition, and move the partition to the end of the line."""
        with self.lock:
            batch = queue.closed.popleft()
            if queue.open is batch:
                queue.open = None
        del self.busy[queue]
        if not queue.is_empty:
            self.busy[queue] = None
        return batch

    def release(self, batch: ProducerBatch) -> None:
        """Remove a batch that is done, and free its memory."""
        if self.incomplete.pop(batch, None) is not None:
            self.reserved -= batch.reserved

    def clear(self) -> list[ProducerBatch]:
        """Remove all batches, and return the incomplete ones. Sequences restart."""
        found = list(self.incomplete)
        self._incomplete.clear()
        self._busy.clear()
        self.topics.clear()
        self.reserved = self.partitions = 0
        return found

    def pending_by_partition(self) -> list[tuple[PartitionQueue, ProducerBatch]]:
        """Return all queued batches, including open ones."""
        with self.lock:
            return [(queue, batch) for queue in self.busy for batch in queue.unsent]

    def take_out(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Remove a batch from its queue; return whether the queue contained it."""
        with self.lock:
            was_open = queue.open is batch
            if was_open:
                queue.open = None
            try:
                queue.closed.remove(batch)
            except ValueError:
                return was_open
            return True
