"""The metadata of a producer's topics: at the first record, when a leader is in doubt, and after the maximum age."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import PartitionInfo
from kafka_msgs.client.flow import Flow, sleep_until
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.scheduler import Task
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AuthenticationError, DeadlineError

if TYPE_CHECKING:
    from kafka_msgs.client.core import ClientCore

__all__ = ["MetadataRefresher", "find_partitions"]

_LOG: Final = logging.getLogger("kafka_msgs.client.producer")
_PASSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


class MetadataRefresher:
    """Sends metadata requests, one at a time, with a pause after each."""

    def __init__(self, core: ClientCore, config: ProducerConfig) -> None:
        self._core = core
        self._config = config
        self._doubted: set[str] = set()
        self._ask_at = 0.0
        self._renew_at = core.network.now() + core.config.metadata_max_age
        self.asking: Task[Any] | None = None
        self._retries = RetryLog(_LOG, core.network.now)
        self.trouble: Exception | None = None
        """Why the last request failed."""

    def invalidate(self, topics: Iterable[str]) -> None:
        """Refresh the leaders of these topics soon."""
        self._doubted.update(topics)

    def close(self) -> None:
        """Stop sending requests."""
        if self.asking is not None:
            self.asking.cancel()

    def turn(self, now: float, topics: Iterable[str]) -> float | None:
        """Request metadata if needed; return when to check again, if known. ``topics`` are all topics of the producer.

        Raises ``AuthenticationError``, after which the sender cannot continue.
        """
        ended = self.asking is not None and self.asking.done
        if self.asking is not None and ended:
            error, self.asking = self.asking.error, None
            self.trouble = error
            if isinstance(error, AuthenticationError):
                raise error
            if error is None:
                self._retries.passed("metadata")
            else:
                self._retries.failed("metadata", error)
        if now >= self._renew_at:
            self._renew_at = now + self._core.config.metadata_max_age
            self.invalidate(topics)
        if self._doubted and self.asking is None:
            if self._ask_at > now:
                return now if ended else self._ask_at
            asked, self._doubted = self._doubted, set()
            self._ask_at = now + self._config.retry_backoff
            deadline = now + self._config.request_timeout
            self.asking = self._core.network.spawn(self._core.refresh(asked, deadline=deadline))
        return now if ended else None


def find_partitions(
    core: ClientCore, config: ProducerConfig, topic: str, deadline: float
) -> Flow[Mapping[int, PartitionInfo]]:
    """Return the partitions of a topic, and request the metadata of a new topic.

    Raises ``DeadlineError``, ``BrokerError`` for a topic that cannot be used, and the errors of a connection.
    """
    attempts, cause = 0, None
    while not core.cluster.partitions(topic):
        if attempts:
            pause = core.network.now() + config.backoff(attempts)
            yield from sleep_until(min(pause, deadline))
        if attempts and core.network.now() >= deadline:
            raise DeadlineError(waiting_for=f"the partitions of the topic {topic!r}", cause=cause)
        attempts += 1
        cluster = yield from core.refresh([topic], deadline=deadline)
        info = cluster.topics.get(topic)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if info is None else info.error
        cause = broker_error(code, api="Metadata", subject=topic)
        if code and code not in _PASSING:
            raise cause
    return core.cluster.partitions(topic)
