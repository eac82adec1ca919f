"""What both protocols of consumer groups have in common: a place in a group, and its talk with the coordinator.

A membership runs by itself (``Network.spawn``): it joins, sends heartbeats, and changes the assignment of its consumer.
``classic`` and ``modern`` are the two protocols. The consumer is their ``AssignmentHost``.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection
from math import inf
from typing import Final, Protocol, TypeVar

from attrs import frozen

from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import AssignedPartitions
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, Future, Wait, sleep_until
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError, DeadlineError
from kafka_msgs.message import Request, Response

__all__ = ["AssignmentHost", "ConsumerGroupMetadata", "Membership", "PollOverdueError", "Signal"]

R = TypeVar("R", bound=Response)

_LOG: Final = logging.getLogger("kafka_msgs.client.group")

PURPOSE: Final = "group"
"""Group requests have a connection of their own: an answer of JoinGroup may take minutes, and stalls what follows."""

COORDINATOR_MOVED_ERRORS: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Error codes after which the coordinator is looked for again."""

_EXPECTED_ERRORS: Final = COORDINATOR_MOVED_ERRORS | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS
}  # fmt: skip
"""Error codes that are part of normal operation."""


class Signal:
    """Something that happens again and again. Whoever waits takes ``pending``, which is done when it happens next."""

    def __init__(self) -> None:
        self.pending: Future[None] = Future()

    def notify(self) -> None:
        """Wake up whoever waits."""
        waiting, self.pending = self.pending, Future()
        waiting.resolve(None)


@frozen
class ConsumerGroupMetadata:
    """Who commits: the generation or member epoch, the member id, and the instance id of a static member."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class PollOverdueError(Exception):
    """The consumer has not polled for too long: the member leaves the group. It never reaches a user."""


class AssignmentHost(Protocol):
    """What a membership needs of its consumer."""

    client: ClientCore
    config: ConsumerConfig
    partitions: AssignedPartitions
    changed: Signal
    """Given when the subscription, the metadata or the assignment changed."""
    arrived: Signal
    """Given when there is something for a poll."""
    polled: Signal
    """Given at every poll."""

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the consumer subscribes to, as far as they are known."""
        ...

    @property
    def broker_pattern(self) -> str | None:
        """The pattern of topics that the broker resolves (KIP-848), or None."""
        ...

    @property
    def poll_by(self) -> float | None:
        """The moment at which the consumer must have polled again to stay in the group."""
        ...

    def assign(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Begin to read partitions, and call the function of the user. It waits for a poll, as the next two do."""
        ...

    def revoke(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Call the function of the user, then stop reading partitions. They may still be committed."""
        ...

    def lose_partitions(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Stop reading partitions that others may have already."""
        ...

    def drop_all(self) -> frozenset[TopicPartition]:
        """Stop reading all partitions at once, and return them: ``lose_partitions`` follows."""
        ...

    def notice_topics(self) -> None:
        """Take over what metadata says about the topics of the partitions."""
        ...

    def watch(self, topics: frozenset[str]) -> None:
        """Keep the metadata of topics up to date that other members subscribe to."""
        ...


class Membership(ABC):
    """A place in a consumer group."""

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
        """When the session may have ended at the coordinator if no heartbeat is answered, by the network's uptime.

        Others may own the partitions then, so no record is returned.
        """

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """Who commits."""
        return ConsumerGroupMetadata(self.generation, self.member_id, self.config.group_instance_id)

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Whether the coordinator has taken the member into the group."""

    @abstractmethod
    def leave(self, deadline: float) -> Flow[None]:
        """Tell the coordinator that the member leaves. A member that is not in the group tells nothing."""

    @abstractmethod
    def _run_member(self) -> Flow[None]:
        """Join where needed, and stay; return to begin again."""

    @abstractmethod
    def _recover(self, error: BrokerError) -> Flow[None]:
        """Prepare for another trial after an error code. Raises the error where no trial can help."""

    def run(self) -> Flow[None]:
        """Be a member until this is closed. Raises what no further trial can mend."""
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
        """Wait before the next trial, longer each time up to a limit."""
        settings = self.client.config
        pause = min(settings.max_backoff, settings.backoff * 2 ** min(self._failures, 20))
        self._failures += 1
        yield from sleep_until(self.network.now() + pause)

    def _link(self, deadline: float) -> Flow[BrokerConnection]:
        """Return the connection to the coordinator."""
        broker_id = yield from self.client.coordinator(self.group_id, CoordinatorKind.GROUP, deadline=deadline)
        return (yield from self.client.link(broker_id, purpose=PURPOSE, deadline=deadline))

    def _ask(self, request: Request[R], wait: float | None = None) -> Flow[R]:
        """Send a request to the coordinator, and wait for the answer: the request time-out, and ``wait`` more (s)."""
        connection = yield from self._link(self.client.deadline(None))
        limit = self.client.directory.request_deadline() + (wait or 0.0)
        return (yield from connection.call(request, deadline=None, limit=limit))

    def _until_poll(self) -> Flow[None]:
        """Wait until the consumer polls again."""
        while self._poll_overdue():
            yield Wait((self.host.polled.pending,), None)

    def _until(self, moment: float | None) -> float | None:
        """Return a moment, or the one at which the consumer must have polled, if that is earlier."""
        limits = [each for each in (moment, self.host.poll_by) if each is not None]
        return min(limits, default=None)

    def _poll_overdue(self) -> bool:
        """Whether the consumer has not polled for too long to stay in the group."""
        limit = self.host.poll_by
        return limit is not None and self.network.now() >= limit
