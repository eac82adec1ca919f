"""What becomes of a record: a small object that knows its batch and its place there, in two forms."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from kafka_msgs.client.producer.batch import DeliveryStorage, RecordMetadata

__all__ = ["AsyncDelivery", "Delivery"]


class _Delivery(DeliveryStorage):
    """What both forms know without waiting."""

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


class Delivery(_Delivery):
    """What becomes of one record: where it is, or why it was given up."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return where the record is. Waits until that is known, for at most ``timeout`` seconds.

        None is for the delivery time-out of the producer. Raises why the record was given up: ``BrokerError``,
        ``DeadlineError``, ``AuthenticationError`` or ``ProducerClosedError``.
        """
        batch, index = self._batch.place_of(self._index)
        owner = batch.owner
        if not batch.done and owner is not None:
            batch, index = owner._wait_for(batch, index, timeout)
        return batch.metadata(index, self._timestamp)


class AsyncDelivery(_Delivery):
    """What becomes of one record. ``await`` it for where the record is; it raises why the record was given up."""

    __slots__ = ()

    async def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return where the record is. See ``Delivery.result``."""
        batch, index = self._batch.place_of(self._index)
        if not batch.done:
            batch, index = await batch.owner._wait_for(batch, index, timeout)
        return batch.metadata(index, self._timestamp)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self.result().__await__()
