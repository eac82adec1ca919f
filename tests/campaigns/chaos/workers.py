"""Clients of this library over a ``BrokerNetwork``: flows that work until the run ends.

An actor has many lives. A life ends with an error that a client may encounter, with a crash, or with the run. Any other
error is a broken promise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.client.consumer import ConsumerConfig
from kafka_msgs.client.consumer.core import ConsumerCore
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, sleep_until
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.producer import ProducerConfig
from kafka_msgs.client.producer.core import ProducerCore
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.errors import ClientError, InternalError, KafkaMsgsError
from tests.campaigns.chaos.history import Ledger, Outcome, Promises, Sender
from tests.campaigns.chaos.settings import GROUPS
from tests.support.broker_network import START, BrokerNetwork

if TYPE_CHECKING:
    from kafka_msgs.client.scheduler import Task

__all__ = ["Actor", "Copier", "Reader", "TransactionalWriter", "Writer"]

_PATIENCE: Final = 15.0
"""The maximum number of seconds of an operation."""
_TOO_LONG: Final = 15.0
"""The maximum processing time that loops sometimes need. After ten seconds, other members get their partitions."""
_CLIENT: Final[dict[str, Any]] = {"timeout": 10.0, "request_timeout": 5.0, "connect_timeout": 5.0}
_PRODUCER: Final[dict[str, Any]] = {"delivery_timeout": 12.0, "request_timeout": 4.0, "transaction_timeout": 10.0}


class Actor(ABC):
    """A client with a name. ``lives`` counts its lives; ``ending`` requests its end, and ``over`` confirms it."""

    def __init__(self, network: BrokerNetwork, ledger: Ledger, name: str, seed: float) -> None:
        self.network = network
        self.ledger = ledger
        self.name = name
        self.dice = Random(seed)
        self.ending = self.over = False
        self.lives = 0
        self.client: ClientCore
        self._task: Task[None] | None = None

    def run(self) -> Flow[None]:
        """Run lives until the run ends."""
        while not self.ending:
            self.lives += 1
            self.client = self.network.core(client_id=f"{self.name}.{self.lives}", **_CLIENT)
            self._task = task = self.network.spawn(self.live())
            while not task.done:
                yield from sleep_until(self.network.now() + 0.1)
            self.client.close()
            if task.error is not None and not _is_expected(task.error):
                self.ledger.broken.append(f"{self.name}: {task.error!r}")
                raise task.error
            yield from sleep_until(self.network.now() + self.dice.uniform(0, 1))
        self.over = True

    def crash(self) -> None:
        """End the current life without leaving the group or closing the producer."""
        if self._task is not None and not self._task.done:
            self._task.cancel()
            self.client.close()

    @abstractmethod
    def live(self) -> Flow[None]:
        """Work until an error or until the run ends."""

    def deadline(self) -> float:
        """Return the deadline of an operation that starts now."""
        return self.network.now() + _PATIENCE

    def pause(self, longest: float) -> Flow[None]:
        """Pause for a random time."""
        yield from sleep_until(self.network.now() + self.dice.uniform(0, longest))


class Writer(Actor):
    """A producer without transactions: sends records, waits for them, and records the acknowledged ones."""

    def __init__(
        self, network: BrokerNetwork, ledger: Ledger, name: str, seed: float, *, topic: str, partitions: int, once: bool
    ) -> None:
        super().__init__(network, ledger, name, seed)
        self.topic = topic
        self.partitions = partitions
        self.once = once

    def live(self) -> Flow[None]:
        """Send until the run ends."""
        promises = Promises.ONCE if self.once else Promises.ORDERED
        sender = self.ledger.sender(f"{self.name}.{self.lives}", self.topic, promises)
        settings = ProducerConfig(idempotence=self.once, max_in_flight=5 if self.once else 1, **_PRODUCER)
        producer = ProducerCore(self.client, settings, random=self.dice)
        try:
            while not self.ending:
                yield from self.send(producer, sender, self.dice.randint(1, 20))
                yield from self.pause(0.3)
            yield from producer.close(self.deadline())
        finally:
            producer.stop()

    def send(self, producer: ProducerCore, sender: Sender, count: int) -> Flow[None]:
        """Send records, and record the acknowledged ones."""
        sent = []
        for _ in range(count):
            value, partition = sender.next_value(), self.dice.randrange(self.partitions)
            batch, index = yield from add(producer, self.topic, value, partition)
            sent.append((value, partition, batch, index))
        yield from producer.flush(self.deadline())
        for value, partition, batch, index in sent:
            final, place = batch.delivery_of(index)
            if final.done and final.error is None:
                offset = final.base_offset
                sender.acked[value] = (partition, offset + place if offset >= 0 else -1)


class TransactionalWriter(Actor):
    """A transactional producer that commits or aborts. A new life fences the previous one."""

    def __init__(
        self, network: BrokerNetwork, ledger: Ledger, name: str, seed: float, *, topic: str, partitions: int
    ) -> None:
        super().__init__(network, ledger, name, seed)
        self.topic = topic
        self.partitions = partitions

    def live(self) -> Flow[None]:
        """Run transactions until the run ends."""
        sender = self.ledger.sender(f"{self.name}.{self.lives}", self.topic, Promises.ONCE)
        producer = ProducerCore(self.client, ProducerConfig(transactional_id=self.name, **_PRODUCER), random=self.dice)
        try:
            yield from producer.init_transactions(self.deadline())
            while not self.ending:
                yield from self.transact(producer, sender)
                yield from self.pause(0.3)
        finally:
            producer.stop()

    def transact(self, producer: ProducerCore, sender: Sender) -> Flow[None]:
        """Run one transaction."""
        transaction = sender.begin()
        producer.begin_transaction()
        commits = self.dice.random() < 0.8
        try:
            for _ in range(self.dice.randint(1, 15)):
                transaction.values.append(sender.next_value())
                partition = self.dice.randrange(self.partitions)
                yield from add(producer, self.topic, transaction.values[-1], partition)
                if self.dice.random() < 0.1:
                    yield from producer.flush(self.deadline())
            if commits:
                yield from producer.commit(self.deadline())
                transaction.outcome = Outcome.COMMITTED
        except ClientError:
            if not producer.transactions.can_abort:
                raise
            commits = False
        if not commits:
            yield from producer.abort(self.deadline())
            transaction.outcome = Outcome.ABORTED


class Reader(Actor):
    """A group member that commits the records it received."""

    def __init__(self, network: BrokerNetwork, ledger: Ledger, name: str, seed: float, *, group: str) -> None:
        super().__init__(network, ledger, name, seed)
        self.group = group

    def consumer(self) -> ConsumerCore:
        """Return a consumer that subscribes to the topic."""
        group = GROUPS[self.group]
        settings = ConsumerConfig(
            group_id=self.group, group_protocol=group.protocol, assignors=group.assignor, session_timeout=6.0,
            rebalance_timeout=10.0, auto_offset_reset="earliest", isolation_level="read_committed",
        )  # fmt: skip
        consumer = ConsumerCore(self.client, settings, random=self.dice, background=True)
        consumer.subscribe([group.reads])
        return consumer

    def live(self) -> Flow[None]:
        """Read and commit until the run ends."""
        consumer = self.consumer()
        try:
            while not self.ending:
                records = yield from consumer.poll(self.network.now() + 0.5, self.dice.randint(1, 200))
                self.ledger.read[self.group] |= {(each.topic, each.partition, each.offset) for each in records}
                yield from self.pause(0.1)
                if records:
                    yield from self.commit(consumer)
            yield from consumer.close(self.deadline())
        finally:
            for task in consumer.tasks:
                task.cancel()

    def commit(self, consumer: ConsumerCore) -> Flow[None]:
        """Commit the positions. After a failed commit, other members read the records again."""
        offsets = positions(consumer)
        try:
            yield from consumer.positions.commit(None, self.deadline())
            self.ledger.committed(self.group, offsets)
        except ClientError:
            return


class Copier(Reader):
    """A consume-transform-produce loop with exactly-once semantics."""

    @property
    def into(self) -> str:
        """The topic to which the loop writes."""
        return str(GROUPS[self.group].writes)

    def live(self) -> Flow[None]:
        """Copy until the run ends."""
        sender = self.ledger.sender(f"{self.name}.{self.lives}", self.into, Promises.ONCE)
        producer = ProducerCore(
            self.client,
            ProducerConfig(transactional_id=self.name, **_PRODUCER | {"transaction_timeout": 30.0}),
            random=self.dice,
        )
        yield from producer.init_transactions(self.deadline())
        consumer = self.consumer()
        try:
            while not self.ending:
                records = yield from consumer.poll(self.network.now() + 0.5, self.dice.randint(1, 100))
                self.ledger.read[self.group] |= {(each.topic, each.partition, each.offset) for each in records}
                if records:
                    places = [(each.partition, each.offset) for each in records]
                    yield from self.copy(producer, consumer, sender, places)
            yield from consumer.close(self.deadline())
        finally:
            producer.stop()
            for task in consumer.tasks:
                task.cancel()

    def copy(
        self, producer: ProducerCore, consumer: ConsumerCore, sender: Sender, places: list[tuple[int, int]]
    ) -> Flow[None]:
        """Copy records in a transaction. A failure ends this life; the next one begins at the committed offsets."""
        offsets = positions(consumer)
        member = consumer.positions.group_metadata()
        transaction = sender.begin()
        producer.begin_transaction()
        for partition, offset in places:
            transaction.values.append(sender.next_copy(partition, offset))
            yield from add(producer, self.into, transaction.values[-1], partition)
        yield from self.pause(_TOO_LONG if self.dice.random() < 0.1 else 0.05)
        yield from producer.send_offsets({name: OffsetAndMetadata(offset) for name, offset in offsets.items()}, member)
        yield from producer.commit(self.deadline())
        transaction.outcome = Outcome.COMMITTED
        self.ledger.committed(self.group, offsets)


def _is_expected(error: Exception) -> bool:
    """Return whether a life may end with this error: any library error except ``InternalError``."""
    return isinstance(error, KafkaMsgsError) and not isinstance(error, InternalError)


def add(producer: ProducerCore, topic: str, value: bytes, partition: int) -> Flow[tuple[ProducerBatch, int]]:
    """Add a record to a producer; return its batch and its index in the batch."""
    now = START + int(producer._core.network.now() * 1000)
    batch = producer.add(topic, value, None, partition, now, ())
    if batch is not None:
        return batch
    return (yield from producer.add_when_possible(topic, value, None, partition, now, ()))


def positions(consumer: ConsumerCore) -> dict[Any, int]:
    """Return the positions of a consumer."""
    current = consumer.positions.current()
    return {name: each.offset if isinstance(each, OffsetAndMetadata) else each for name, each in current.items()}
