"""Collects records into batches, by partition, within a bounded memory.

It knows no broker: it says which batches wait and since when. ``sender`` decides when they leave. In Kafka this is the
class ``org.apache.kafka.clients.producer.internals.RecordAccumulator``.
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
    """The batches of one partition that were not sent yet: closed ones in their order, then the open one."""

    __slots__ = ("closed", "open", "opened", "partition", "sequences", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.open: ProducerBatch | None = None
        self.opened = 0
        """How many batches were opened."""
        self.closed: deque[ProducerBatch] = deque()
        self.sequences = PartitionSequences()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return self.open is None and not self.closed

    @property
    def first(self) -> ProducerBatch:
        """The batch that leaves next. The queue must not be empty."""
        found = self.closed[0] if self.closed else self.open
        assert found is not None
        return found

    def requeue(self, batch: ProducerBatch) -> None:
        """Put back a batch that is sent again: between those that were opened before it and after it."""
        before = 0
        for other in self.closed:
            if other.order > batch.order:
                break
            before += 1
        self.closed.insert(before, batch)


class TopicQueues:
    """The partitions of one topic, and the one that gets records without a key now."""

    __slots__ = ("leaders", "queues", "sticky", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.queues: list[PartitionQueue] = []
        self.leaders: list[PartitionQueue] = []
        """The partitions that have a leader; all of them if none has one."""
        self.sticky: PartitionQueue | None = None

    def update(self, count: int, with_leader: Iterable[int]) -> None:
        """Learn the number of partitions, and which of them have a leader. Partitions never become fewer."""
        self.queues += [PartitionQueue(self.topic, number) for number in range(len(self.queues), count)]
        self.leaders = [self.queues[number] for number in with_leader] or self.queues

    def switch(self, random: Random) -> PartitionQueue:
        """Choose the partition that gets the next records without a key (KIP-794)."""
        self.sticky = self.leaders[next_sticky([len(queue.closed) for queue in self.leaders], random)]
        return self.sticky


class RecordAccumulator:
    """All batches that are not done, and the memory that they hold."""

    def __init__(self, config: ProducerConfig, random: Random) -> None:
        self._config = config
        self._random = random
        self.owner: object = None
        """The producer that users have, for deliveries that wait."""
        self.topics: dict[str, TopicQueues] = {}
        self.busy: dict[PartitionQueue, None] = {}
        """The partitions that have batches to send. Those that waited longest come first."""
        self.incomplete: dict[ProducerBatch, PartitionQueue] = {}
        """All batches that are not done, in the order in which they were opened."""
        self.reserved = 0
        """Bytes of the buffer that are in use."""
        self.partitions = 0
        self.lock = Lock()
        """Guards the open batches, which other threads append to. Everything else belongs to the I/O thread."""

    def topic(self, name: str, count: int, with_leader: Iterable[int]) -> TopicQueues:
        """Return the partitions of a topic, with the given number of them."""
        found = self.topics.setdefault(name, TopicQueues(name))
        before = len(found.queues)
        found.update(count, with_leader)
        self.partitions += len(found.queues) - before
        if found.sticky is None or found.sticky not in found.leaders:
            found.switch(self._random)
        return found

    def can_allocate(self, size: int) -> int | None:
        """Return how large a new batch may be whose first record takes ``size`` bytes; None if there is no room now.

        An open batch holds as much as it may grow to. Half of the memory is shared out between the partitions, so that
        all of them can have an open batch.
        """
        share = self._config.buffer_memory // (2 * max(1, self.partitions))
        wanted = max(min(self._config.batch_size, self._config.max_request_size, share), size)
        return wanted if self.reserved + wanted <= self._config.buffer_memory or not self.incomplete else None

    def open_batch(self, queue: PartitionQueue, size: int, now: float, transactional: bool) -> ProducerBatch:
        """Close the open batch of a partition, and open another one that may grow to ``size`` bytes."""
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
        """Take no more records into the open batch of a partition."""
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
        """Take no more records into any open batch."""
        for queue in self.busy:
            self.close(queue)

    def next_sticky(self, topic: TopicQueues) -> PartitionQueue:
        """Let another partition of the topic get the records without a key."""
        return topic.switch(self._random)

    def requeue(self, batch: ProducerBatch) -> None:
        """Put back a batch that must be sent again."""
        queue = self.incomplete[batch]
        queue.requeue(batch)
        self.busy[queue] = None

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Replace a batch by smaller ones, which wait in its place."""
        queue = self.incomplete.pop(batch)
        parts = batch.split()
        for part in parts:
            queue.requeue(part)
        self.incomplete.update(dict.fromkeys(parts, queue))
        self.busy[queue] = None
        self.reserved += sum(part.reserved for part in parts) - batch.reserved
        return parts

    def release(self, batch: ProducerBatch) -> None:
        """Forget a batch that is done, and give its memory back."""
        if self.incomplete.pop(batch, None) is not None:
            self.reserved -= batch.reserved

    def clear(self) -> list[ProducerBatch]:
        """Forget all batches; return those that were not done. Sequences begin anew."""
        found = list(self.incomplete)
        self.incomplete.clear()
        self.busy.clear()
        self.topics.clear()
        self.reserved = self.partitions = 0
        return found

    def pending_by_partition(self) -> list[tuple[PartitionQueue, ProducerBatch]]:
        """Return all batches that wait to be sent, the open ones too."""
        found = []
        for queue in self.busy:
            found += [(queue, batch) for batch in queue.closed]
            if queue.open is not None:
                found.append((queue, queue.open))
        return found

    def take_out(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Take a batch that waits out of its queue; return whether it was there."""
        with self.lock:
            if queue.open is batch:
                queue.open = None
                return True
        try:
            queue.closed.remove(batch)
        except ValueError:
            return False
        return True
