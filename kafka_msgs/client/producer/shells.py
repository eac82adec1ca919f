"""``Producer`` and ``AsyncProducer``: each method once, and the two forms of all of them. All logic is in ``core``.

Two methods are written for each form. ``send`` takes every single record, so it runs no piece of logic where it need
not wait, and what it gives back differs. In ``transaction`` a block of the user's program runs, which may wait.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from time import time_ns
from typing import Any, Final, Self, TypeVar, Unpack

from kafka_msgs.client.client import AsyncClient, Client
from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.forms import AsyncForm, BlockingForm, Form, LastOperation, Operation
from kafka_msgs.client.producer.batch import ProducerBatch
from kafka_msgs.client.producer.config import PRODUCER, ProducerConfig, ProducerSettings
from kafka_msgs.client.producer.core import Headers, ProducerCore
from kafka_msgs.client.producer.delivery import AsyncDelivery, Delivery
from kafka_msgs.client.producer.offsets import ConsumedOffset, GroupMember, offsets_of
from kafka_msgs.client.producer.partitioner import Partitioner
from kafka_msgs.client.servers import Servers
from kafka_msgs.client.waiting import Steps, sleep_until
from kafka_msgs.records import Payload

__all__ = ["AsyncProducer", "Producer"]

_NS_PER_MS: Final = 1_000_000


def _refuse_after_fork(*arguments: Any) -> Any:
    from kafka_msgs.client.io_thread import ForkedError

    raise ForkedError()


C = TypeVar("C", Client, AsyncClient)


class ProducerMethods(Form[C]):
    """The methods of producers. Those that wait are coroutines in the form for asyncio."""

    _hurries: bool
    """Whether a batch leaves at once if somebody waits for a record of it: nobody else can add records meanwhile."""

    def __init__(
        self, servers: Servers | C, *, partitioner: Partitioner | None = None, **settings: Unpack[ProducerSettings]
    ) -> None:
        self.config: ProducerConfig = self._take_client(servers, settings, PRODUCER)
        self.core = ProducerCore(self.client.core, self.config, partitioner=partitioner)
        self.core.accumulator.owner = self
        self._add = self.core.add
        fork = getattr(self.client.network, "at_fork", None)
        if fork is not None:
            fork.append(self._after_fork)

    def _after_fork(self) -> None:
        self._add = _refuse_after_fork

    @Operation
    def send_table(self, topic: str, table: Any, *, timeout: float | None = None) -> Steps[Any]:
        """Write the rows of an Arrow table, wait for their delivery, and return where they are.

        The table has some of the columns ``key``, ``value``, ``headers``, ``timestamp`` and ``partition``; the result
        has ``partition``, ``offset`` and ``timestamp`` (ms), one row per record. No row becomes an object unless the
        table has headers. Rows for one partition stay in their order. Needs the extra ``arrow``. Raises the error of a
        record that was given up, ``UnknownColumnError``, ``ColumnTypeError``, and what ``send`` raises.
        """
        sent = yield from self.core.add_table(topic, table, time_ns() // _NS_PER_MS)
        return (yield from self.core.delivered(sent, self._deadline(timeout)))

    @Operation
    def flush(self, timeout: float | None = None) -> Steps[None]:
        """Send all records, and wait until each of them is delivered or given up, for at most ``timeout`` seconds.

        It does not raise the errors of single records. Raises ``DeadlineError``.
        """
        return self.core.flush(self._deadline(timeout))

    @Operation
    def init_transactions(self, timeout: float | None = None) -> Steps[None]:
        """Fence off earlier producers with this transactional id, and end what they left (KIP-98). Call it once.

        Raises ``OptionError`` without a transactional id, ``BrokerError`` and ``DeadlineError``.
        """
        return self.core.init_transactions(self._deadline(timeout))

    @Operation
    def begin_transaction(self) -> Steps[None]:
        """Begin a transaction: all records up to its end become visible together, or never.

        Raises ``TransactionStateError``.
        """
        self.core.begin_transaction()
        yield from ()  # nothing to wait for, but a coroutine on asyncio, as the other methods of transactions

    @Operation
    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, ConsumedOffset | int], group: GroupMember | str
    ) -> Steps[None]:
        """Commit offsets of a consumer group together with the records of the transaction (KIP-447).

        An offset is that of the next record that the group reads. Raises ``BrokerError``; then the transaction can only
        be aborted.
        """
        return self.core.send_offsets(*offsets_of(offsets, group))

    @Operation
    def commit_transaction(self, timeout: float | None = None) -> Steps[None]:
        """Deliver all records and make them visible. Raises why that was not possible; then abort the transaction.

        After a ``DeadlineError`` it may be called again.
        """
        return self.core.commit(self._deadline(timeout))

    @Operation
    def abort_transaction(self, timeout: float | None = None) -> Steps[None]:
        """Drop the records of the transaction."""
        return self.core.abort(self._deadline(timeout))

    @LastOperation
    def close(self, timeout: float | None = None) -> Steps[None]:
        """Deliver all records, give up the rest after ``timeout`` seconds, and close the connections."""
        return self.core.close(self._deadline(timeout))

    @Operation
    def _wait_for(self, batch: ProducerBatch, index: int, timeout: float | None) -> Steps[tuple[ProducerBatch, int]]:
        """Wait for the batch of a delivery."""
        return self.core.result(batch, index, self._deadline(timeout), hurry=self._hurries)

    def _deadline(self, timeout: float | None) -> float:
        return self.client.core.deadline(self.config.delivery_timeout if timeout is None else timeout)


class Producer(ProducerMethods[Client], BlockingForm):
    """Writes records to topics, for programs that block.

        with Producer("localhost:9092", compression="lz4") as producer:
            delivery = producer.send("events", b"value", key=b"key")
            producer.flush()
            print(delivery.result())

    The first argument says where the brokers are: ``host:port``, several of them, a ``ClientConfig``, a mapping with
    Kafka's property names (``bootstrap.servers``, ``acks``, ...), the ``Path`` of a file of them, or a ``Client``,
    which the producer then shares and does not close. The other arguments are those of ``ProducerConfig``.

    There is no thread. Records leave while a method of the producer runs: ``send`` passes full batches on and looks
    for answers without waiting; ``flush``, ``Delivery.result`` and ``close`` wait. So call ``flush`` after the last of
    several records. A producer belongs to the thread that uses it.
    """

    _hurries = True
    _next_turn = 0

    def send(
        self,
        topic: str,
        value: Payload | None = None,
        *,
        key: Payload | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
        on_delivery: Callable[..., Any] | None = None,
    ) -> Delivery:
        """Give a record to the producer, and return what will become of it.

        ``timestamp`` is in milliseconds since the epoch; None is for now. Without a ``partition``, the key decides, as
        in Kafka's own producer; without a key, batches go to the partitions in turn. Waits for metadata of a new topic,
        and for room in the buffer, for at most ``max_block`` seconds.

        Raises ``RecordWriteError`` for a record that cannot be written, ``DeadlineError``, ``BrokerError`` for a topic
        that cannot be used, and ``TransactionStateError`` outside of a transaction, if the producer has transactions.
        """
        now = time_ns() // _NS_PER_MS
        if timestamp is None:
            timestamp = now
        added = self._add(topic, value, key, partition, timestamp, headers, on_delivery)
        if added is None:
            steps = self.core.add_slowly(topic, value, key, partition, timestamp, headers, on_delivery)
            added = self._run(steps)
            if not self.client.is_threaded:
                self._turn(now)
        elif not self.client.is_threaded and now >= self._next_turn:
            self._turn(now)
        return Delivery(*added, timestamp)

    def _turn(self, now: int) -> None:
        """Let what is ready be sent, and take what has arrived, without waiting. Then not for the time of a linger."""
        self._next_turn = now + max(1, int(self.config.linger * 1000))
        self.client.network.turn()

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            if self.core.transactions.can_abort:
                self.abort_transaction()
            raise


class AsyncProducer(ProducerMethods[AsyncClient], AsyncForm):
    """Writes records to topics, on asyncio. See ``Producer``; it must be made while the event loop runs.

        async with AsyncProducer("localhost:9092", compression="lz4") as producer:
            delivery = await producer.send("events", b"value", key=b"key")
            print(await delivery)

    Batches leave while the event loop runs, also between the calls. ``await producer.send(...)`` does not wait for the
    record: it waits for metadata of a new topic, and for room in the buffer.
    """

    _hurries = False

    async def send(
        self,
        topic: str,
        value: Payload | None = None,
        *,
        key: Payload | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> AsyncDelivery:
        """Give a record to the producer, and return what will become of it. See ``Producer.send``."""
        if timestamp is None:
            timestamp = time_ns() // _NS_PER_MS
        added = self._add(topic, value, key, partition, timestamp, headers)
        if added is not None:
            return AsyncDelivery(*added, timestamp)
        batch, index = await self._run(self.core.add_slowly(topic, value, key, partition, timestamp, headers))
        await self._run(sleep_until(self.client.network.now()))
        return AsyncDelivery(batch, index, timestamp)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises."""
        await self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            if self.core.transactions.can_abort:
                await self.abort_transaction()
            raise
