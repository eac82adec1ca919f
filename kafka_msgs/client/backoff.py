"""Retries of an operation, with backoff, until its deadline."""

from __future__ import annotations

from random import Random

from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.flow import Flow, sleep_until
from kafka_msgs.client.network import Network
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.errors import BrokerError, DeadlineError

__all__ = ["Backoff"]


class Backoff:
    """The attempts of one operation until its deadline, with randomized pauses that grow."""

    def __init__(
        self, config: ClientConfig, network: Network, random: Random, retries: RetryLog, deadline: float
    ) -> None:
        self._longest = config.max_backoff
        self._network = network
        self._random = random
        self._retries = retries
        self._deadline = deadline
        self._next = config.backoff
        self._cause: Exception | None = None

    @property
    def has_time(self) -> bool:
        """Whether the deadline allows a pause and another attempt."""
        return self._network.now() + self._next < self._deadline

    def record_failure(self, error: Exception, *, final: bool) -> None:
        """Record the error of an attempt. Raises it if it is final. Connections log their own failures."""
        if final:
            raise error
        if isinstance(error, BrokerError):
            self._retries.failed(error.api, error, expected=error.retriable)
        self._cause = error

    def wait(self) -> Flow[None]:
        """Wait before the next attempt. Raises ``DeadlineError`` if no time is left for one."""
        if not self.has_time:
            raise DeadlineError(waiting_for="another trial", cause=self._cause)
        length, self._next = self._next, min(self._next * 2, self._longest)
        yield from sleep_until(self._network.now() + length * self._random.uniform(0.5, 1.0))

    def timeout_error(self, error: DeadlineError) -> DeadlineError:
        """Return the error of an expired operation, with the failure of its last attempt."""
        return DeadlineError(waiting_for=error.waiting_for, cause=error.cause or self._cause)
