"""What a membership does to its consumer: partitions come and go, and functions of the user are called.

It happens while a poll runs, which then does not end before it. So a commit between two polls is about the partitions
whose records the first one returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.consumer_state import Callback, ConsumerState
from kafka_msgs.client.consumer.positions import Positions
from kafka_msgs.client.flow import Flow, Wait

__all__ = ["AssignmentManager"]


class AssignmentManager:
    """The assignment of one consumer. It is the ``AssignmentHost`` of its membership."""

    def __init__(self, state: ConsumerState, positions: Positions, *, background: bool) -> None:
        self.client = state.client
        self.config = state.config
        self.partitions = state.partitions
        self.changed = state.changed
        self.polled = state.polled
        self.arrived = state.arrived
        self.waiting = 0
        """How many changes wait for the next poll."""
        self.in_poll = False
        self.polled_at = state.client.network.now()
        """When the last poll ended."""
        self.faults: deque[Exception] = deque()
        """What functions of the user raised, for polls to raise."""
        self._state = state
        self._positions = positions
        self._background = background
        self._changes = 0

    def report(self, error: Exception) -> None:
        """Let the next poll raise an error."""
        self.faults.append(error)
        self.arrived.notify()

    def restart(self) -> None:
        """Forget what was going on: all logic has ended."""
        self.waiting = self._changes = 0
        self.in_poll = False

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the consumer subscribes to, as far as they are known."""
        pattern = self._state.subscription.pattern
        if pattern is None:
            return self._state.subscription.topics
        found = self.client.cluster.topics.values()
        return frozenset(each.name for each in found if not each.internal and pattern.search(each.name))

    @property
    def broker_pattern(self) -> str | None:
        """The pattern of topics that the broker resolves (KIP-848), or None."""
        return self._state.subscription.broker_pattern

    @property
    def poll_by(self) -> float | None:
        """The moment at which the consumer must have polled again to stay in the group."""
        return self.polled_at + self.config.max_poll_interval if self._background and not self.in_poll else None

    @property
    def is_changing(self) -> bool:
        """Whether the assignment changes just now."""
        return self._changes > 0

    def assign(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Begin to read partitions after the function of the user has returned."""
        return self._in_a_poll(self._assign(partitions))

    def revoke(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Commit if that is wanted, call the function of the user, then stop reading partitions."""
        return self._in_a_poll(self.revoke_immediately(partitions))

    def lose_partitions(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Stop reading partitions that others may have already."""
        lost = frozenset(partitions)
        if lost:
            self._state.drop(lost)
            subscription = self._state.subscription
            function = subscription.on_lost or subscription.on_revoked
            if function is not None:
                yield from self._in_a_poll(self._call(function, lost))

    def drop_all(self) -> frozenset[TopicPartition]:
        """Stop reading all partitions at once, and return them: ``lose_partitions`` follows."""
        partitions = self.partitions.names
        self._state.drop(partitions)
        return partitions

    def notice_topics(self) -> None:
        """Take over what metadata says about the topics of the partitions."""
        self._state.notice_topics()

    def watch(self, topics: frozenset[str]) -> None:
        """Keep the metadata of topics up to date that other members subscribe to."""
        self._state.watched = topics

    def revoke_immediately(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Revoke without a poll, for a consumer that leaves."""
        yield from self._positions.auto_commit(partitions)
        yield from self._call(self._state.subscription.on_revoked, partitions)
        self._state.drop(frozenset(partitions))

    def _in_a_poll(self, flow: Flow[None]) -> Flow[None]:
        self.waiting += 1
        try:
            while not self.in_poll:
                yield Wait((self.polled.pending,), None)
        finally:
            self.waiting -= 1
        self._changes += 1
        try:
            yield from flow
        finally:
            self._changes -= 1
            self._state.arrived.notify()

    def _assign(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        with self._state.lock:
            self.partitions.add(partitions, ready=False)
        self._state.notice_topics()
        yield from self._call(self._state.subscription.on_assigned, partitions)
        for name in partitions:
            if (partition := self.partitions.get(name)) is not None:
                partition.ready = True
        self.changed.notify()

    def _call(self, function: Callback | None, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Call a function of the user. Its exception is raised by the poll."""
        if function is None:
            return
        pending = self.client.network.perform_in_poll(function, sorted(partitions))
        if not pending.done:
            yield Wait((pending,), None)
        if pending.error is not None:
            self.report(pending.error)
