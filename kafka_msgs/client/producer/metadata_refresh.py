"""Keeps the leaders of a producer's partitions known: asks for metadata again when they are in doubt, and in time."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.scheduler import Task
from kafka_msgs.errors import AuthenticationError

if TYPE_CHECKING:
    from kafka_msgs.client.core import ClientCore

__all__ = ["MetadataRefresher"]

_LOG: Final = logging.getLogger("kafka_msgs.client.producer")


class MetadataRefresher:
    """Asks for metadata, one question at a time, with a pause between two."""

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
        """Ask for the leaders of topics again, soon."""
        self._doubted.update(topics)

    def close(self) -> None:
        """Stop asking."""
        if self.asking is not None:
            self.asking.cancel()

    def turn(self, now: float, topics: Iterable[str]) -> float | None:
        """Ask if there is a reason; return when to look again, if that is known. ``topics`` are all of the producer.

        Raises ``AuthenticationError``: then there is no use in going on.
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
