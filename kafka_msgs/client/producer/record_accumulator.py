"""Collects records into batches per partition, within bounded memory.

It does not depend on brokers: it tracks which batches wait and since when, and ``sender`` decides when to send them. In
Kafka this is the class ``org.apache.kafka.clients.producer.internals.RecordAccumulator``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random
from threading import Lock

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

    __slots__ = ("leaders", "queues", "sticky", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.queues: list[PartitionQueue] = []
        self.leaders: list[PartitionQueue] = []
        """The partitions with a leader, or all partitions if none has one."""
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
        self.busy: dict[PartitionQueue, None] = {}
        """The partitions that have batches to send, longest-waiting first."""
        self.incomplete: dict[ProducerBatch, PartitionQueue] = {}
        """All incomplete batches, in opening order."""
        self.reserved = 0
        """Bytes of buffer memory in use."""
        self.partitions = 0
        self.lock = Lock()
        """Guards the open batches, to which other threads append. All other state belongs to the I/O thread."""

    def topic(self, name: str, count: int, with_leader: Iterable[int]) -> TopicQueues:
        """Return the queues of a topic, updated to this number of partitions."""
        found = self.topics.setdefault(name, TopicQueues(name))
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
        share = self._config.buffer_memory // (2 * max(1, self.partitions))
        wanted = max(min(self._config.batch_size, self._config.max_request_size, share), size)
        return wanted if self.reserved + wanted <= self._config.buffer_memory or not self.incomplete else None

    def open_batch(self, queue: PartitionQueue, size: int, now: float, transactional: bool) -> ProducerBatch:
        """Close the open batch of a partition, and open a new one with a limit of ``size`` bytes."""
        self.close(queue)
        codec, level = self._config.compression, self._config.compression_level
        batch = ProducerBatch(queue.topic, queue.partition, now, codec=codec, level=level, size_limit=size)
        batch.owner = self.owner
        batch.transactional = transactional
        batch.reserved = size
        batch.order = (queue.opened,)
        queue.opened += 1
        self.reserved += size
        self.busy[queue] = None
        self.incomplete[batch] = queue
        queue.open = batch
        return batch

    def close(self, queue: PartitionQueue) -> None:
        """Close the open batch of a partition."""
        with self.lock:
            batch, queue.open = queue.open, None
        if batch is None:
            return
        if batch.count == 0:
            self.release(batch)
            return
        self.reserved += batch.size - batch.reserved
        batch.reserved = batch.size
        queue.closed.append(batch)

    def close_all(self) -> None:
        """Close all open batches."""
        for queue in self.busy:
            self.close(queue)

    def next_sticky(self, topic: TopicQueues) -> PartitionQueue:
        """Switch the sticky partition of a topic, which receives the records without a key."""
        return topic.switch(self._random)

    def requeue(self, batch: ProducerBatch) -> None:
        """Put back a batch for a retry."""
        queue = self.incomplete[batch]
        queue.requeue(batch)
        self.busy[queue] = None

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Split a batch, and queue the parts in its position."""
        queue = self.incomplete.pop(batch)
        parts = batch.split()
        for part in parts:
            queue.requeue(part)
        self.incomplete.update(dict.fromkeys(parts, queue))
        self.busy[queue] = None
        self.reserved += sum(part.reserved for part in parts) - batch.reserved
        return parts

    def release(self, batch: ProducerBatch) -> None:
        """Remove a batch that is done, and free its memory."""
        if self.incomplete.pop(batch, None) is not None:
            self.reserved -= batch.reserved

    def clear(self) -> list[ProducerBatch]:
        """Remove all batches, and return the incomplete ones. Sequences restart."""
        found = list(self.incomplete)
        self.incomplete.clear()
        self.busy.clear()
        self.topics.clear()
        self.reserved = self.partitions = 0
        return found

    def pending_by_partition(self) -> list[tuple[PartitionQueue, ProducerBatch]]:
        """Return all queued batches, including open ones."""
        found = []
        for queue in self.busy:
            found += [(queue, batch) for batch in queue.closed]
            if queue.open is not None:
                found.append((queue, queue.open))
        return found

    def take_out(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Remove a batch from its queue; return whether the queue contained it."""
        with self.lock:
            if queue.open is batch:
                queue.open = None
                return True
        try:
            queue.closed.remove(batch)
        except ValueError:
            return False
        return True
