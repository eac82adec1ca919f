"""``Producer``: the shell for programs that block. It has no logic of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import time_ns
from types import TracebackType
from typing import Any, Final, Self

from kafka_msgs.client.client import Client
from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.producer.batch import DeliveryStorage, ProducerBatch, RecordMetadata
from kafka_msgs.client.producer.config import ProducerConfig, producer_settings
from kafka_msgs.client.producer.core import Headers, ProducerCore
from kafka_msgs.client.producer.offsets import ConsumedOffset, GroupMember, offsets_of
from kafka_msgs.client.producer.partitioner import Partitioner
from kafka_msgs.client.servers import Servers, settings_of
from kafka_msgs.records import Payload

__all__ = ["Delivery", "Producer"]

_NS_PER_MS: Final = 1_000_000
_FIRST_TURN: Final = 0


class Delivery(DeliveryStorage):
    """What becomes of one record: where it is, or why it was given up."""

    __slots__ = ()

    @property
    def done(self) -> bool:
        """Whether the record was delivered or given up."""
        return self._batch.place_of(self._index)[0].done

    @property
    def error(self) -> Exception | None:
        """Why the record was given up; None if it was not, or is still on its way."""
        batch = self._batch
        return batch.place_of(self._index)[0].error if batch.parts else batch.error

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return where the record is. Waits until that is known, for at most ``timeout`` seconds.

        None is for the delivery time-out of the producer. Raises why the record was given up: ``BrokerError``,
        ``DeadlineError``, ``AuthenticationError`` or ``ProducerClosedError``.
        """
        batch, index = self._batch.place_of(self._index)
        if not batch.done:
            batch, index = batch.owner._wait_for(batch, index, timeout)
        return batch.metadata(index, self._timestamp)


class Producer:
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

    def __init__(
        self,
        servers: Servers | Client,
        *,
        partitioner: Partitioner | None = None,
        **options: Any,
    ) -> None:
        self._owned = not isinstance(servers, Client)
        if isinstance(servers, Client):
            self._client = servers
        else:
            found, options = settings_of(servers, options, producer_settings)
            self._client = Client(found)
        self._config = config = ProducerConfig(**options)
        self._core = ProducerCore(self._client.core, config, partitioner=partitioner)
        self._core.accumulator.owner = self
        self._add = self._core.add
        self._pause_ms = max(1, int(config.linger * 1000))
        self._next_turn = _FIRST_TURN

    def send(
        self,
        topic: str,
        value: Payload | None = None,
        *,
        key: Payload | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
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
        batch = self._add(topic, value, key, partition, timestamp, headers)
        if batch is None:
            batch = self._client.run(self._core.add_slowly(topic, value, key, partition, timestamp, headers))
            self._turn(now)
        elif now >= self._next_turn:
            self._turn(now)
        return Delivery(batch, batch.count - 1, timestamp)

    def send_table(self, topic: str, table: Any, *, timeout: float | None = None) -> Any:
        """Write the rows of an Arrow table, wait for their delivery, and return where they are.

        The table has some of the columns ``key``, ``value``, ``headers``, ``timestamp`` and ``partition``; the result
        has ``partition``, ``offset`` and ``timestamp`` (ms), one row per record. Needs the extra ``arrow``. Raises the
        error of the first record that was given up, ``UnknownColumnError``, ``ColumnTypeError``, and what ``send``
        raises.
        """
        sent = self._client.run(self._core.add_table(topic, table, time_ns() // _NS_PER_MS))
        return self._client.run(self._core.delivered(sent, self._deadline(timeout)))

    def flush(self, timeout: float | None = None) -> None:
        """Send all records, and wait until each of them is delivered or given up, for at most ``timeout`` seconds.

        It does not raise the errors of single records. Raises ``DeadlineError``.
        """
        self._client.run(self._core.flush(self._deadline(timeout)))

    def init_transactions(self, timeout: float | None = None) -> None:
        """Fence off earlier producers with this transactional id, and end what they left (KIP-98). Call it once.

        Raises ``OptionError`` without a transactional id, ``BrokerError`` and ``DeadlineError``.
        """
        self._client.run(self._core.init_transactions(self._deadline(timeout)))

    def begin_transaction(self) -> None:
        """Begin a transaction: all records up to its end become visible together, or never.

        Raises ``TransactionStateError``.
        """
        self._core.begin_transaction()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, ConsumedOffset | int], group: GroupMember | str
    ) -> None:
        """Commit offsets of a consumer group together with the records of the transaction (KIP-447).

        An offset is that of the next record that the group reads. Raises ``BrokerError``; then the transaction can only
        be aborted.
        """
        self._client.run(self._core.send_offsets(*offsets_of(offsets, group)))

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Deliver all records and make them visible. Raises why that was not possible; then abort the transaction.

        After a ``DeadlineError`` it may be called again.
        """
        self._client.run(self._core.commit(self._deadline(timeout)))

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop the records of the transaction."""
        self._client.run(self._core.abort(self._deadline(timeout)))

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            if self._core.transactions.can_abort:
                self.abort_transaction()
            raise

    def close(self, timeout: float | None = None) -> None:
        """Deliver all records, give up the rest after ``timeout`` seconds, and close the connections."""
        try:
            self._client.run(self._core.close(self._deadline(timeout)))
        finally:
            if self._owned:
                self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_for(self, batch: ProducerBatch, index: int, timeout: float | None) -> tuple[ProducerBatch, int]:
        return self._client.run(self._core.result(batch, index, self._deadline(timeout), hurry=True))

    def _turn(self, now: int) -> None:
        """Let what is ready be sent, and take what has arrived, without waiting."""
        self._next_turn = now + self._pause_ms
        self._client.network.turn()

    def _deadline(self, timeout: float | None) -> float:
        return self._client.core.deadline(self._config.delivery_timeout if timeout is None else timeout)
