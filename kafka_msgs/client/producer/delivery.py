"""Deliveries: small objects that refer to the batch of a record and its index in it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from kafka_msgs.client.flow import Flow
from kafka_msgs.client.producer.producer_batch import DeliveryStorage, ProducerBatch, RecordMetadata

if TYPE_CHECKING:
    from kafka_msgs.client.producer.core import ProducerCore

__all__ = ["AsyncDelivery", "Delivery", "DeliveryWaiter"]


class DeliveryWaiter:
    """Waits for the batch of a delivery. It outlives the producer object of the program.

    ``run`` runs a flow and returns its value, or on asyncio a coroutine. With ``hurry``, waiting for a record sends its
    batch at once.
    """

    def __init__(self, run: Callable[[Flow[Any]], Any], core: ProducerCore, *, hurry: bool) -> None:
        self._run = run
        self._core = core
        self._hurry = hurry

    def wait(self, batch: ProducerBatch, index: int, timeout: float | None) -> Any:
        """Wait until the batch of a record is done; return the record's final batch and its index in it."""
        return self._run(self._core.result(batch, index, self._core.deadline(timeout), hurry=self._hurry))


class _Delivery(DeliveryStorage):
    """The members of both delivery classes that never wait."""

    __slots__ = ()

    @property
    def done(self) -> bool:
        """Whether the record was delivered or has failed."""
        return self._batch.delivery_of(self._index)[0].done

    @property
    def error(self) -> Exception | None:
        """The error of a failed record; None if it was delivered or is still pending."""
        return self._batch.delivery_of(self._index)[0].observed_error()


class Delivery(_Delivery):
    """The result of one record: its metadata or its error."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return the metadata of the record. Waits for it for at most ``timeout`` seconds.

        None is the delivery timeout of the producer. Raises the error of a failed record: ``BrokerError``,
        ``DeadlineError``, ``AuthenticationError`` or ``ProducerClosedError``.
        """
        batch, index = self._batch.delivery_of(self._index)
        owner = batch.owner
        if not batch.done and owner is not None:
            batch, index = owner.wait(batch, index, timeout)
        return batch.metadata(index, self._timestamp)


class AsyncDelivery(_Delivery):
    """The result of one record. ``await`` returns its metadata or raises its error."""

    __slots__ = ()

    async def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return the metadata of the record. See ``Delivery.result``."""
        batch, index = self._batch.delivery_of(self._index)
        owner = batch.owner
        if not batch.done and owner is not None:
            batch, index = await owner.wait(batch, index, timeout)
        return batch.metadata(index, self._timestamp)

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        return self.result().__await__()
