"""Brokers that a producer sends to, with their connections and in-flight requests."""

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
    """A request that has no response yet."""

    answer: Future[ProduceResponse]
    batches: list[ProducerBatch]
    ids: dict[str, UUID] | None
    deadline: float


class BrokerChannel:
    """A broker, its connection and its in-flight requests."""

    __slots__ = (
        "_config", "_core", "broker_id", "connection", "doubt_at", "exchanges", "failures", "opening", "resume_at",
    )  # fmt: skip

    def __init__(self, core: ClientCore, config: ProducerConfig, broker_id: int) -> None:
        self._core = core
        self._config = config
        self.broker_id = broker_id
        self.connection: BrokerConnection | None = None
        self.opening: Task[BrokerConnection] | None = None
        self.exchanges: deque[InFlightRequest] = deque()
        self.doubt_at = 0.0
        """When to refresh the leaders if the connection attempt is still in progress."""
        self.failures = 0
        self.resume_at = 0.0
        """When to send to the broker again, after a failure or throttling (KIP-219)."""

    @property
    def is_full(self) -> bool:
        """Whether the in-flight limit of the producer or of the connection is reached."""
        return len(self.exchanges) >= self._config.max_in_flight or (
            self.connection is not None and self.connection.is_full
        )

    def pending(self) -> list[Future[Any]]:
        """Return the futures that the sender waits for."""
        waits: list[Future[Any]] = [] if self.opening is None else [self.opening]
        return [*waits, self.exchanges[0].answer] if self.exchanges else waits

    def ensure_connected(self, now: float) -> bool:
        """Return whether a connection is ready. Start to connect or to re-authenticate (KIP-368) if needed.

        Raises the errors of ``connected``.
        """
        ends = None if self.connection is None else self.connection.reauthenticate_at
        if self.opening is None and (self.connection is None or (ends is not None and ends <= now)):
            deadline = now + self._config.request_timeout
            self.doubt_at = now + self._config.retry_backoff_max
            self.opening = self._core.network.spawn(self._core.link(self.broker_id, purpose=PURPOSE, deadline=deadline))
            self.connected()
        return self.connection is not None and self.opening is None

    def doubts(self, now: float) -> bool:
        """Return whether a connection attempt takes so long that the broker may have failed."""
        if self.opening is None or now < self.doubt_at:
            return False
        self.doubt_at = now + self._config.retry_backoff_max
        return True

    def connected(self) -> None:
        """Use the connection if it is complete. Raises the error if connecting failed."""
        if self.opening is not None and self.opening.done:
            opening, self.opening = self.opening, None
            self.connection = opening.result()
            self.failures = 0

    def broken(self, now: float) -> None:
        """Drop the connection, and back off before the next attempt."""
        self.connection = None
        self.failures += 1
        self.resume_at = now + self._config.backoff(self.failures)

    def check(self, now: float) -> None:
        """Close the connection if the oldest response is overdue. Its in-flight requests then fail."""
        exchanges = self.exchanges
        if exchanges and not exchanges[0].answer.done and self.late_at() <= now and self.connection is not None:
            self.connection.close_overdue()

    def late_at(self) -> float:
        """Return the later of the oldest request's deadline and ``request_timeout`` after the last traffic."""
        moved = 0.0 if self.connection is None else self.connection.moved_at
        return max(self.exchanges[0].deadline, moved + self._config.request_timeout)
