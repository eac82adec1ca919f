"""``AsyncProducer``: the shell for asyncio. It has no logic of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager
from time import time_ns
from types import TracebackType
from typing import Any, Final, Self

from kafka_msgs.client.client import AsyncClient
from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.producer.batch import DeliveryStorage, ProducerBatch, RecordMetadata
from kafka_msgs.client.producer.config import ProducerConfig, producer_settings
from kafka_msgs.client.producer.core import Headers, ProducerCore
from kafka_msgs.client.producer.offsets import ConsumedOffset, GroupMember, offsets_of
from kafka_msgs.client.producer.partitioner import Partitioner
from kafka_msgs.client.servers import Servers, settings_of
from kafka_msgs.records import Payload

__all__ = ["AsyncDelivery", "AsyncProducer"]

_NS_PER_MS: Final = 1_000_000


class AsyncDelivery(DeliveryStorage):
    """What becomes of one record. ``await`` it for where the record is; it raises why the record was given up."""

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

    async def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return where the record is. See ``Delivery.result``."""
        batch, index = self._batch.place_of(self._index)
        if not batch.done:
            batch, index = await batch.owner._wait_for(batch, index, timeout)
        return batch.metadata(index, self._timestamp)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self.result().__await__()


class AsyncProducer:
    """Writes records to topics, on asyncio. See ``Producer``; it must be made while the event loop runs.

        async with AsyncProducer("localhost:9092", compression="lz4") as producer:
            delivery = await producer.send("events", b"value", key=b"key")
            print(await delivery)

    Batches leave while the event loop runs, also between the calls. ``await producer.send(...)`` does not wait for the
    record: it waits for metadata of a new topic, and for room in the buffer.
    """

    def __init__(
        self,
        servers: Servers | AsyncClient,
        *,
        partitioner: Partitioner | None = None,
        **options: Any,
    ) -> None:
        self._owned = not isinstance(servers, AsyncClient)
        if isinstance(servers, AsyncClient):
            self._client = servers
        else:
            found, options = settings_of(servers, options, producer_settings)
            self._client = AsyncClient(found)
        self._config = config = ProducerConfig(**options)
        self._core = ProducerCore(self._client.core, config, partitioner=partitioner)
        self._core.accumulator.owner = self
        self._add = self._core.add

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
        batch = self._add(topic, value, key, partition, timestamp, headers)
        if batch is not None:
            return AsyncDelivery(batch, batch.count - 1, timestamp)
        batch = await self._client.run(self._core.add_slowly(topic, value, key, partition, timestamp, headers))
        delivery = AsyncDelivery(batch, batch.count - 1, timestamp)
        await asyncio.sleep(0)
        return delivery

    async def send_table(self, topic: str, table: Any, *, timeout: float | None = None) -> Any:
        """Write the rows of an Arrow table, and return where they are. See ``Producer.send_table``."""
        sent = await self._client.run(self._core.add_table(topic, table, time_ns() // _NS_PER_MS))
        return await self._client.run(self._core.delivered(sent, self._deadline(timeout)))

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until all records that were sent are delivered or given up. See ``Producer.flush``."""
        await self._client.run(self._core.flush(self._deadline(timeout)))

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Fence off earlier producers with this transactional id. See ``Producer.init_transactions``."""
        await self._client.run(self._core.init_transactions(self._deadline(timeout)))

    async def begin_transaction(self) -> None:
        """Begin a transaction. See ``Producer.begin_transaction``."""
        self._core.begin_transaction()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, ConsumedOffset | int], group: GroupMember | str
    ) -> None:
        """Commit offsets of a group with the transaction. See ``Producer.send_offsets_to_transaction``."""
        await self._client.run(self._core.send_offsets(*offsets_of(offsets, group)))

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Deliver all records and make them visible. See ``Producer.commit_transaction``."""
        await self._client.run(self._core.commit(self._deadline(timeout)))

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop the records of the transaction."""
        await self._client.run(self._core.abort(self._deadline(timeout)))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises."""
        await self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            if self._core.transactions.can_abort:
                await self.abort_transaction()
            raise

    async def close(self, timeout: float | None = None) -> None:
        """Deliver all records, give up the rest after ``timeout`` seconds, and close the connections."""
        try:
            await self._client.run(self._core.close(self._deadline(timeout)))
        finally:
            if self._owned:
                await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _wait_for(self, batch: ProducerBatch, index: int, timeout: float | None) -> tuple[ProducerBatch, int]:
        return await self._client.run(self._core.result(batch, index, self._deadline(timeout), hurry=False))

    def _deadline(self, timeout: float | None) -> float:
        return self._client.core.deadline(self._config.delivery_timeout if timeout is None else timeout)
