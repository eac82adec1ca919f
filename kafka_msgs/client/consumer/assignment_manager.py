"""Assignment changes of a consumer: adding and revoking partitions, and calling the user's rebalance callbacks.

Changes happen during a poll, and the poll does not return before they finish. A commit between two polls therefore
covers the partitions whose records the first poll returned.
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
        """The number of changes waiting for the next poll."""
        self.in_poll = False
        self.polled_at = state.client.network.now()
        """When the last poll ended."""
        self.faults: deque[Exception] = deque()
        """Exceptions from background tasks and user callbacks, for the next polls to raise."""
        self._state = state
        self._positions = positions
        self._background = background
        self._changes = 0

    def report(self, error: Exception) -> None:
        """Queue an error for the next poll to raise."""
        self.faults.append(error)
        self.arrived.notify()

    def restart(self) -> None:
        """Reset all pending changes after every task has ended."""
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
        """The deadline for the next poll if the consumer is to stay in the group, or None."""
        return self.polled_at + self.config.max_poll_interval if self._background and not self.in_poll else None

    @property
    def is_changing(self) -> bool:
        """Whether an assignment change is in progress."""
        return self._changes > 0

    def assign(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Start reading partitions after the user's callback has returned."""
        return self._in_a_poll(self._assign(partitions))

    def revoke(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Auto-commit if enabled, call the user's callback, then stop reading partitions."""
        return self._in_a_poll(self.revoke_immediately(partitions))

    def lose_partitions(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Stop reading partitions that other members may already own."""
        lost = frozenset(partitions)
        if lost:
            self._state.drop(lost)
            self._report_change()
            subscription = self._state.subscription
            function = subscription.on_lost or subscription.on_revoked
            if function is not None:
                yield from self._in_a_poll(self._call(function, lost))

    def drop_all(self) -> frozenset[TopicPartition]:
        """Stop reading all partitions immediately and return them, for a later call of ``lose_partitions``."""
        partitions = self.partitions.names
        self._state.drop(partitions)
        return partitions

    def notice_topics(self) -> None:
        """Update the assigned partitions from the current topic metadata."""
        self._state.notice_topics()

    def watch(self, topics: frozenset[str]) -> None:
        """Keep the metadata of other members' topics up to date."""
        self._state.watched = topics

    def revoke_immediately(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Revoke partitions without waiting for a poll, for a consumer that leaves the group."""
        yield from self._positions.auto_commit(partitions)
        yield from self._call(self._state.subscription.on_revoked, partitions)
        self._state.drop(frozenset(partitions))
        self._report_change()

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

    def _report_change(self) -> None:
        group = self._state.identity
        self.client.directory.hooks.call(
            "group_changed", group.group_id, group.member_id, group.generation, sorted(self.partitions.names)
        )

    def _assign(self, partitions: Collection[TopicPartition]) -> Flow[None]:
        with self._state.lock:
            self.partitions.add(partitions, ready=False)
        self._state.notice_topics()
        yield from self._call(self._state.subscription.on_assigned, partitions)
        for name in partitions:
            if (partition := self.partitions.get(name)) is not None:
                partition.ready = True
        self.changed.notify()
        self._report_change()

    def _call(self, function: Callback | None, partitions: Collection[TopicPartition]) -> Flow[None]:
        """Call a user callback. The next poll raises its exception."""
        if function is None:
            return
        pending = self.client.network.perform_in_poll(function, sorted(partitions))
        if not pending.done:
            yield Wait((pending,), None)
        if pending.error is not None:
            self.report(pending.error)
