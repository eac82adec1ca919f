"""What becomes of a record: a small object that knows its batch and its place there, in two forms."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from kafka_msgs.client.flow import Flow
from kafka_msgs.client.producer.producer_batch import DeliveryStorage, ProducerBatch, RecordMetadata

if TYPE_CHECKING:
    from kafka_msgs.client.producer.core import ProducerCore

__all__ = ["AsyncDelivery", "Delivery", "DeliveryWaiter"]


class DeliveryWaiter:
    """Waits for the batch of a delivery. It outlives the producer object that a program has.

    ``run`` runs a piece of logic: it returns the value, or on asyncio a coroutine. With ``hurry`` a batch leaves at
    once when somebody waits for a record of it.
    """

    def __init__(self, run: Callable[[Flow[Any]], Any], core: ProducerCore, *, hurry: bool) -> None:
        self._run = run
        self._core = core
        self._hurry = hurry

    def wait(self, batch: ProducerBatch, index: int, timeout: float | None) -> Any:
        """Wait until the batch of a record is done; return the batch that it is in then, and its place there."""
        return self._run(self._core.result(batch, index, self._core.deadline(timeout), hurry=self._hurry))


class _Delivery(DeliveryStorage):
    """What both forms know without waiting."""

    __slots__ = ()

    @property
    def done(self) -> bool:
        """Whether the record was delivered or given up."""
        return self._batch.delivery_of(self._index)[0].done

    @property
    def error(self) -> Exception | None:
        """Why the record was given up; None if it was not, or is still on its way."""
        return self._batch.delivery_of(self._index)[0].observed_error()


class Delivery(_Delivery):
    """What becomes of one record: where it is, or why it was given up."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return where the record is. Waits until that is known, for at most ``timeout`` seconds.

        None is for the delivery time-out of the producer. Raises why the record was given up: ``BrokerError``,
        ``DeadlineError``, ``AuthenticationError`` or ``ProducerClosedError``.
        """
        batch, index = self._batch.delivery_of(self._index)
        owner = batch.owner
        if not batch.done and owner is not None:
            batch, index = owner.wait(batch, index, timeout)
        return batch.metadata(index, self._timestamp)


class AsyncDelivery(_Delivery):
    """What becomes of one record. ``await`` it for where the record is; it raises why the record was given up."""

    __slots__ = ()

    async def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return where the record is. See ``Delivery.result``."""
        batch, index = self._batch.delivery_of(self._index)
        owner = batch.owner
        if not batch.done and owner is not None:
            batch, index = await owner.wait(batch, index, timeout)
        return batch.metadata(index, self._timestamp)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self.result().__await__()
