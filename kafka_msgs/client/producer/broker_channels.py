"""The brokers that a producer sends to: the connection to each, and what is on its way."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from kafka_msgs.client.flow import Future
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.client.scheduler import Task
from kafka_msgs.messages.produce_response import ProduceResponse

if TYPE_CHECKING:
    from kafka_msgs.client.broker_connection import BrokerConnection
    from kafka_msgs.client.core import ClientCore

__all__ = ["BrokerChannel", "InFlightRequest"]

PURPOSE: Final = "produce"


class InFlightRequest(NamedTuple):
    """A request that is on its way."""

    answer: Future[ProduceResponse]
    batches: list[ProducerBatch]
    ids: dict[str, UUID] | None
    deadline: float


class BrokerChannel:
    """A broker."""

    __slots__ = ("_config", "_core", "broker_id", "connection", "exchanges", "failures", "opening", "resume_at")

    def __init__(self, core: ClientCore, config: ProducerConfig, broker_id: int) -> None:
        self._core = core
        self._config = config
        self.broker_id = broker_id
        self.connection: BrokerConnection | None = None
        self.opening: Task[BrokerConnection] | None = None
        self.exchanges: deque[InFlightRequest] = deque()
        self.failures = 0
        self.resume_at = 0.0
        """When the broker may get a request again: after a failure, or because it asked for time (KIP-219)."""

    @property
    def is_full(self) -> bool:
        """Whether as many requests are on their way as may be, of the producer or on the connection."""
        return len(self.exchanges) >= self._config.max_in_flight or (
            self.connection is not None and self.connection.is_full
        )

    def pending(self) -> list[Future[Any]]:
        """Return what the sender waits for."""
        waits: list[Future[Any]] = [] if self.opening is None else [self.opening]
        return [*waits, self.exchanges[0].answer] if self.exchanges else waits

    def ensure_connected(self, now: float) -> bool:
        """Whether there is a connection. Begins to make one, or to authenticate again (KIP-368).

        Raises what ``connected`` raises.
        """
        ends = None if self.connection is None else self.connection.reauthenticate_at
        if self.opening is None and (self.connection is None or (ends is not None and ends <= now)):
            deadline = now + self._config.request_timeout
            self.opening = self._core.network.spawn(self._core.link(self.broker_id, purpose=PURPOSE, deadline=deadline))
            self.connected()
        return self.connection is not None and self.opening is None

    def connected(self) -> None:
        """Take over a connection that was made. Raises why it was not made."""
        if self.opening is not None and self.opening.done:
            opening, self.opening = self.opening, None
            self.connection = opening.result()
            self.failures = 0

    def broken(self, now: float) -> None:
        """Wait before the next connection."""
        self.connection = None
        self.failures += 1
        self.resume_at = now + self._config.backoff(self.failures)

    def check(self, now: float) -> None:
        """Close the connection if the oldest answer is late. Then the answers come, as errors."""
        exchanges = self.exchanges
        if exchanges and not exchanges[0].answer.done and self.late_at() <= now and self.connection is not None:
            self.connection.close()

    def late_at(self) -> float:
        """When the broker is late: so long after its request left, and after it sent something last."""
        moved = 0.0 if self.connection is None else self.connection.moved_at
        return max(self.exchanges[0].deadline, moved + self._config.request_timeout)
