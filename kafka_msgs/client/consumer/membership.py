"""The common base of both consumer group protocols: group membership, and requests to the coordinator.

A membership is a background task (``Network.spawn``) that joins the group, sends heartbeats, and changes the assignment
of its consumer. ``classic`` and ``modern`` implement the two protocols. The consumer is their ``AssignmentHost``.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection
from math import inf
from typing import Final, Protocol, TypeVar

from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import AssignedPartitions
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, Future, Wait, sleep_until
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError, DeadlineError
from kafka_msgs.message import Request, Response

__all__ = ["AssignmentHost", "Membership", "PollOverdueError", "Signal"]

R = TypeVar("R", bound=Response)

_LOG: Final = logging.getLogger("kafka_msgs.client.group")

PURPOSE: Final = "group"
"""Group requests use a separate connection: a JoinGroup response may take minutes, and delays later responses."""

COORDINATOR_MOVED_ERRORS: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Error codes after which the client looks up the coordinator again."""

_EXPECTED_ERRORS: Final = COORDINATOR_MOVED_ERRORS | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS
}  # fmt: skip
"""Error codes that occur in normal operation."""


class Signal:
    """A recurring event. Tasks wait for ``pending``, a future that the next ``notify`` resolves."""

    def __init__(self) -> None:
        self.pending: Future[None] = Future()

    def notify(self) -> None:
        """Resolve ``pending`` for all waiting tasks, and replace it."""
        waiting, self.pending = self.pending, Future()
        waiting.resolve(None)


class PollOverdueError(Exception):
    """The poll interval has expired, so the member leaves the group. Never raised to the user."""


class AssignmentHost(Protocol):
    """The consumer interface that a membership requires."""

    client: ClientCore
    config: ConsumerConfig
    partitions: AssignedPartitions
    changed: Signal
    """Notified when the subscription, the metadata or the assignment change."""
    arrived: Signal
    """Notified when a poll has records to return or an error to raise."""
    polled: Signal
    """Notified at every poll."""

    @property
    def topics(self) -> frozenset[str]:
        """The subscribed topics; for a client-side pattern, the known topics that match it."""
        ...

    @property
    def broker_pattern(self) -> str | None:
        """The pattern of topics that the broker resolves (KIP-848), or None."""
        ...

    @property
    def poll_by(self) -> float | None:
        """The deadline for the next poll if the consumer is to stay in the group, or None."""
        ...

    def assign(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Start reading partitions, and call the user's callback during a poll."""
        ...

    def revoke(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Call the user's callback during a poll, then stop reading partitions. The callback may still commit them."""
        ...

    def lose_partitions(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Stop reading partitions that other members may already own, and call the user's callback during a poll."""
        ...

    def drop_all(self) -> frozenset[TopicPartition]:
        """Stop reading all partitions immediately and return them, for a later call of ``lose_partitions``."""
        ...

    def notice_topics(self) -> None:
        """Update the assigned partitions from the current topic metadata."""
        ...

    def watch(self, topics: frozenset[str]) -> None:
        """Keep the metadata of other members' topics up to date."""
        ...


class Membership(ABC):
    """The membership of one consumer in a group."""

    def __init__(self, host: AssignmentHost, group_id: str) -> None:
        self.host = host
        self.group_id = group_id
        self.client = host.client
        self.config = host.config
        self.network = host.client.network
        self.member_id = ""
        self.generation = -1
        self._failures = 0
        self._retries = RetryLog(_LOG, host.client.network.now)
        self._next_beat = 0.0
        self.lease_ends = inf
        """The network uptime at which the session may expire at the coordinator unless it responds to a heartbeat.

        After that time, other members may own the partitions, so the consumer returns no records.
        """

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """The group metadata for commits."""
        return ConsumerGroupMetadata(self.group_id, self.generation, self.member_id, self.config.group_instance_id)

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Whether the coordinator has accepted the member into the group."""

    @abstractmethod
    def leave(self, deadline: float) -> Flow[None]:
        """Send the request to leave the group. Return without a request if the consumer is not a member."""

    @abstractmethod
    def _run_member(self) -> Flow[None]:
        """Join the group if needed, and maintain the membership. Return to start again."""

    @abstractmethod
    def _recover(self, error: BrokerError) -> Flow[None]:
        """Prepare a retry after an error code. Raises permanent errors."""

    def run(self) -> Flow[None]:
        """Run the membership until it is closed. Raises permanent errors."""
        while True:
            try:
                yield from self._run_member()
                self._failures = 0
                self._retries.passed(self.group_id)
            except (ConnectionFailedError, DeadlineError) as error:
                self._retries.failed(self.group_id, error)
                self._forget()
                yield from self._pause()
            except BrokerError as error:
                if error.error in COORDINATOR_MOVED_ERRORS:
                    self._forget()
                    yield from self._pause()
                elif error.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    yield from self._pause()
                else:
                    yield from self._recover(error)
                self._retries.failed(self.group_id, error, expected=error.error in _EXPECTED_ERRORS)

    def _forget(self) -> None:
        self.client.forget_coordinator(self.group_id, CoordinatorKind.GROUP)

    def _pause(self) -> Flow[None]:
        """Wait before the next attempt, with exponential backoff up to ``max_backoff``."""
        settings = self.client.config
        pause = min(settings.max_backoff, settings.backoff * 2 ** min(self._failures, 20))
        self._failures += 1
        yield from sleep_until(self.network.now() + pause)

    def _link(self, deadline: float) -> Flow[BrokerConnection]:
        """Return the connection to the coordinator."""
        broker_id = yield from self.client.coordinator(self.group_id, CoordinatorKind.GROUP, deadline=deadline)
        return (yield from self.client.link(broker_id, purpose=PURPOSE, deadline=deadline))

    def _ask(self, request: Request[R], wait: float | None = None) -> Flow[R]:
        """Send a request to the coordinator and return the response. ``wait`` (s) extends the request timeout."""
        connection = yield from self._link(self.client.deadline(None))
        limit = self.client.directory.request_deadline() + (wait or 0.0)
        return (yield from connection.call(request, deadline=None, limit=limit))

    def _until_poll(self) -> Flow[None]:
        """Wait until the consumer polls again."""
        while self._poll_overdue():
            yield Wait((self.host.polled.pending,), None)

    def _until(self, moment: float | None) -> float | None:
        """Return the earlier of a time and the deadline for the next poll, or None without either."""
        limits = [each for each in (moment, self.host.poll_by) if each is not None]
        return min(limits, default=None)

    def _poll_overdue(self) -> bool:
        """Whether the deadline for the next poll has passed."""
        limit = self.host.poll_by
        return limit is not None and self.network.now() >= limit
