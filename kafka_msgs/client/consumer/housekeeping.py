"""The maintenance task of a consumer: metadata refreshes, position lookups and automatic commits."""

from __future__ import annotations

import logging
from typing import Final

from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.consumer.assigned_partitions import AssignedPartition
from kafka_msgs.client.consumer.consumer_state import ConsumerState
from kafka_msgs.client.consumer.fetcher import Fetcher
from kafka_msgs.client.consumer.positions import Positions
from kafka_msgs.client.flow import Flow, Wait
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError, DeadlineError
from kafka_msgs.messages.metadata_request import MetadataRequest

__all__ = ["Housekeeping"]

_REFUSALS: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})
"""Permanent topic error codes in metadata responses."""


_UNKNOWN_AGE: Final = 5.0
"""The metadata refresh interval while a topic does not exist, in seconds."""
_LOG: Final = logging.getLogger("kafka_msgs.client.consumer")


class Housekeeping:
    """Background maintenance: refreshes metadata, looks up positions, and commits at intervals."""

    def __init__(self, state: ConsumerState, positions: Positions, fetcher: Fetcher) -> None:
        self._state = state
        self._client = state.client
        self._positions = positions
        self._fetcher = fetcher
        self._refreshed_at = 0.0
        self._trouble: Exception | None = None
        self._unknown: dict[str, float] = {}
        """The topics that do not exist, with the time of their detection."""
        self._commit_at = state.client.network.now() + state.config.auto_commit_interval

    def run(self) -> Flow[None]:
        """Run until the consumer is closed. Raises permanent errors."""
        while True:
            now, deadline = self._client.network.now(), self._client.deadline(None)
            changed = self._state.changed.pending
            try:
                yield from self._run_due_work(now, deadline)
            except (DeadlineError, ConnectionFailedError, BrokerError) as error:
                self._raise_final(error)
                yield Wait((), self._client.network.now() + self._client.config.max_backoff)
                continue
            self._trouble = None
            if not self._missing():
                times = [self._next_refresh, *([self._commit_at] if self._positions.commits else [])]
                yield Wait((changed,), min(times))

    def _raise_final(self, error: DeadlineError | ConnectionFailedError | BrokerError) -> None:
        """Raise a permanent error. Log a transient error once, until a later attempt succeeds."""
        if isinstance(error, BrokerError) and not error.retriable:
            raise error
        if isinstance(error, ConnectionFailedError) and not self._client.directory.repeatable(error):
            raise error
        if self._trouble is None:
            _LOG.warning("a consumer cannot reach what it needs: %s", error)
        self._trouble = error

    def _run_due_work(self, now: float, deadline: float) -> Flow[None]:
        if now >= self._next_refresh:
            yield from self._refresh(deadline)
        if missing := self._missing():
            yield from self._positions.reset_or_restore(missing, deadline)
        if self._positions.commits and now >= self._commit_at:
            self._commit_at = now + self._state.config.auto_commit_interval
            yield from self._positions.auto_commit()

    @property
    def _next_refresh(self) -> float:
        """The time of the next metadata refresh: earlier for outdated metadata, but after a minimum interval."""
        soon = self._refreshed_at + self._client.config.max_backoff / 4
        return min(soon, self._state.metadata_at) if self._fetcher.outdated else self._state.metadata_at

    def _missing(self) -> list[AssignedPartition]:
        """Return the partitions without a position whose leader is known, so that the position can be looked up."""
        lacking = [each for each in self._state.partitions if _lacks_position(each)]
        found = [each for each in lacking if self._client.cluster.leader(*each.name) is not None]
        if len(found) < len(lacking):
            self._fetcher.invalidate_leaders()
        return found

    def _refresh(self, deadline: float) -> Flow[None]:
        """Refresh the metadata of the relevant topics; of all topics for a client-side pattern."""
        self._fetcher.outdated = False
        state, cluster = self._state, self._client.cluster
        if state.subscription.pattern is not None:
            yield from self._refresh_all(deadline)
        topics = state.subscription.topics | state.watched | {each.name.topic for each in state.partitions}
        if topics:
            yield from self._client.refresh(topics, deadline=deadline)
        state.notice_topics()
        self._refreshed_at = self._client.network.now()
        unknown = {topic for topic in topics if not cluster.partitions(topic)}
        age = self._client.config.metadata_max_age
        state.metadata_at = self._refreshed_at + (min(age, _UNKNOWN_AGE) if unknown else age)
        for topic in topics:
            info = cluster.topics.get(topic)
            if info is not None and info.error in _REFUSALS:
                raise broker_error(info.error, api="Metadata", subject=topic)
        self._report_unknown(unknown)
        state.changed.notify()
        state.arrived.notify()

    def _refresh_all(self, deadline: float) -> Flow[None]:
        """Request the metadata of all topics, and forget deleted topics."""
        cluster = self._client.cluster
        answer = yield from self._client.call(MetadataRequest(topics=None), deadline=deadline)
        cluster.update(answer)
        for topic in cluster.topics.keys() - {each.name for each in answer.topics}:
            cluster.forget_topic(topic)

    def _report_unknown(self, unknown: set[str]) -> None:
        """Log each missing topic once. After ``timeout``, set an error on manually assigned partitions."""
        now = self._client.network.now()
        for topic in unknown - self._unknown.keys():
            _LOG.warning("the topic %s does not exist, and clients do not create topics", topic)
        self._unknown = {topic: self._unknown.get(topic, now) for topic in unknown}
        for partition in self._state.partitions:
            since = self._unknown.get(partition.name.topic, now)
            if now - since >= self._client.config.timeout and not self._state.subscription:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                partition.error = broker_error(code, api="Metadata", subject=partition.name)
                self._unknown[partition.name.topic] = now


def _lacks_position(partition: AssignedPartition) -> bool:
    return partition.position is None and partition.ready and partition.error is None
