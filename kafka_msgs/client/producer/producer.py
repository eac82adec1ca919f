"""``Producer``, which blocks. Generated from ``async_producer.py`` by docs/tools/facades.py: do not edit it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from kafka_msgs.client.client import Client
from kafka_msgs.client.cluster_metadata import PartitionInfo, TopicPartition
from kafka_msgs.client.config_loading import Servers
from kafka_msgs.client.facade import EXIT_TIMEOUT, BlockingFacade
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.producer.batch_completion import FailedBatch, OnDelivery
from kafka_msgs.client.producer.config import PRODUCER, ProducerConfig, ProducerOptions, Serializer
from kafka_msgs.client.producer.core import Headers, ProducerCore
from kafka_msgs.client.producer.delivery import Delivery, DeliveryWaiter
from kafka_msgs.client.producer.partitioner import Partitioner
from kafka_msgs.client.producer.producer_batch import RecordMetadata
from kafka_msgs.client.producer.transactional_offsets import normalize_offsets

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Producer"]

_NS_PER_MS: Final = 1_000_000


class Producer(BlockingFacade):
    """A producer that writes records to topics.

        with Producer("localhost:9092", compression="lz4") as producer:
            delivery = producer.send("events", b"value", key=b"key")
            producer.flush()
            print(delivery.result())

    The first argument is one broker address (``host:port``) or several, a ``ClientConfig``, a mapping with Kafka's
    property names (``bootstrap.servers``, ``acks``, ...), the ``Path`` of a properties file, or an ``Client``,
    which the producer shares and does not close. The keyword arguments are the fields of ``ProducerConfig``, plus
    ``client_id``, ``timeout``, ``tls`` and ``credentials`` of ``ClientConfig``. ``key_serializer`` and
    ``value_serializer`` are functions that return bytes; they are not called for None.

    The producer sends a batch when it is full or when ``linger`` expires, including between calls. It reports every
    record that it could not deliver: the delivery raises the error, ``on_delivery`` and ``on_failure`` receive it, and
    it is logged. If the program has received it in none of these ways, ``flush`` and ``close`` raise
    ``UndeliveredError``.

    Any thread may use a producer. With ``threadless`` there is no I/O thread: only one thread may use
    the producer, and records are sent only while one of its methods runs. Call ``flush`` after the last
    of several records.
    """

    _next_turn = 0

    def __init__(
        self,
        servers: Servers | Client,
        *,
        partitioner: Partitioner | None = None,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        on_failure: Callable[[FailedBatch], object] | None = None,
        threadless: bool = False,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self.config: ProducerConfig = self._take_client(
            servers,
            options,
            PRODUCER,
            threadless=threadless,
        )
        self.core = ProducerCore(self.client.core, self.config, partitioner=partitioner, on_failure=on_failure)
        self.core.accumulator.owner = DeliveryWaiter(
            self.client.run,
            self.core,
            hurry=True,
        )
        self._add = self.core.add
        self._serializers: tuple[Callable[[Any], bytes] | None, ...] = key_serializer, value_serializer
        self._serializes = key_serializer is not None or value_serializer is not None
        self._threadless = self.client.threadless

    # Records

    def send(
        self,
        topic: str,
        value: object = None,
        *,
        key: object = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Add a record to its batch, and return its delivery. Key and value are bytes, or inputs of the serializers.

        ``timestamp`` is in milliseconds since the epoch; None is the current time. Without ``partition``, the key
        selects the partition, as in Kafka's own producer; without a key, batches rotate through the partitions. Waits
        at most ``max_block`` seconds for the metadata of a new topic and for buffer memory.

        ``on_delivery`` is called once, with the metadata and None, or with None and the error. It runs in the thread or
        event loop of the client, so it must not block or wait for the producer. Its exceptions are logged.

        Raises ``RecordWriteError`` for a record that cannot be written, ``DeadlineError``, ``ConnectionFailedError``
        before the first successful connection, ``BrokerError`` for a topic that cannot be used, and
        ``TransactionStateError`` outside of a transaction, if the producer has transactions.
        """
        if self._serializes:
            key, value = self._serialized(key, value)
        now = time_ns() // _NS_PER_MS
        if timestamp is None:
            timestamp = now
        if headers:
            headers = tuple(headers)
        added = self._add(topic, value, key, partition, timestamp, headers, on_delivery)
        if added is None and not self._threadless:
            added = self.core.add_to_new_batch(topic, value, key, partition, timestamp, headers, on_delivery)
        if added is None:
            flow = self.core.add_when_possible(topic, value, key, partition, timestamp, headers, on_delivery)
            added = self._run(flow)
            self._give_way()
        elif self._threadless and now >= self._next_turn:
            self._next_turn = now + max(1, int(self.config.linger * 1000))
            self._give_way()
        return Delivery(*added, timestamp)

    def send_and_wait(
        self,
        topic: str,
        value: object = None,
        *,
        key: object = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Write one record, and return its metadata. Raises the errors of ``send`` and of the delivery."""
        delivery = self.send(topic, value, key=key, partition=partition, timestamp=timestamp, headers=headers)
        return delivery.result()

    def send_table(self, topic: str, table: pa.Table, *, timeout: float | None = None) -> pa.Table:
        """Write the rows of an Arrow table, wait for delivery, and return their partitions and offsets.

        The table may have the columns ``key``, ``value``, ``headers``, ``timestamp`` and ``partition``; the result has
        ``partition``, ``offset`` and ``timestamp`` (ms), one row per record. Rows become Python objects only if the
        table has headers. Rows for one partition keep their order. Needs the extra ``arrow``. Raises the error of a
        record that was not delivered, ``UnknownColumnError``, ``ColumnTypeError``, and the errors of ``send``.
        """
        sent = self._run(self.core.add_table(topic, table, time_ns() // _NS_PER_MS))
        return self._run(self.core.delivered(sent, self._deadline(timeout)))

    def flush(self, timeout: float | None = None) -> None:
        """Send all records, and wait at most ``timeout`` seconds until each is delivered or has failed.

        Raises ``DeadlineError``, and ``UndeliveredError`` for failed records whose errors reached the program neither
        through ``on_failure`` and ``on_delivery`` nor through the ``result`` of a delivery. Each failure is raised
        once.
        """
        self._run(self.core.flush(self._deadline(timeout)))
        self.core.raise_undelivered()

    def purge(self) -> int:
        """Drop unsent records, and return their number. Their deliveries raise ``RecordsPurgedError``."""
        return self._do(self.core.purge)

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> Mapping[int, PartitionInfo]:
        """Return the partitions of a topic by number. Raises ``UnknownTopicError``."""
        return self._run(self.core.partitions_of(topic, self.client.core.deadline(timeout)))

    def metrics(self, topic: str | None = None) -> dict[str, float]:
        """Return the metrics of the client of this producer by Kafka's names, such as ``record-send-rate``.

        With ``topic``, return those that count the records of one topic.
        """
        return self.client.metrics(topic)

    # Transactions

    def init_transactions(self, timeout: float | None = None) -> None:
        """Fence off earlier producers with this transactional id, and end their transactions (KIP-98). Call it once.

        Raises ``OptionError`` without a transactional id, ``BrokerError`` and ``DeadlineError``.
        """
        self._run(self.core.init_transactions(self._deadline(timeout)))

    def begin_transaction(self) -> None:
        """Begin a transaction. All of its records become visible together on commit, or never.

        Raises ``TransactionStateError``.
        """
        self._do(self.core.begin_transaction)

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata | str
    ) -> None:
        """Commit offsets of a consumer group together with the records of the transaction (KIP-447).

        Each offset is the offset of the next record for the group to read. Pass the ``group_metadata`` of the consumer:
        the broker then refuses the offsets if the group has reassigned the partitions, or if a topic was deleted, even
        if a new topic has its name. With a group id alone, the broker checks neither. Raises ``BrokerError``, for
        example ``CommitFailedError`` and ``UnknownTopicError``; afterwards the transaction can only be aborted.
        """
        self._run(self.core.send_offsets(*normalize_offsets(offsets, group)))

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Deliver all records and make them visible. Raises the error that prevented this; then abort the transaction.

        It may be called again after a ``DeadlineError``.
        """
        self._run(self.core.commit(self._deadline(timeout)))

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop the records of the transaction."""
        self._run(self.core.abort(self._deadline(timeout)))

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

    # The end

    def close(self, timeout: float | None = None) -> None:
        """Deliver records for at most ``timeout`` seconds, fail the remaining ones, and close the connections.

        Raises the errors of ``flush``. An open transaction is aborted.
        """
        if not self._ended:
            self._run_last(self.core.close(self._deadline(timeout)))
            self.core.raise_undelivered()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close the producer. After an exception, wait for a few seconds only, and log the undelivered records."""
        if exc is None:
            self.close()
        elif not self._ended:
            self._run_last_quietly(self.core.close(self._deadline(EXIT_TIMEOUT)))

    def _closing(self) -> Flow[None]:
        return self.core.close(self._deadline(EXIT_TIMEOUT))

    def _serialized(self, key: object, value: object) -> tuple[object, object]:
        of_key, of_value = self._serializers
        return (
            key if key is None or of_key is None else of_key(key),
            value if value is None or of_value is None else of_value(value),
        )

    def _deadline(self, timeout: float | None) -> float:
        return self.core.deadline(timeout)
