"""Requests for many items: one request per broker and round, with a separate retry for each item.

This module implements the loop: find the brokers, send each broker a request for its items, keep final outcomes, and
retry the remaining items. Items are groups and transactions, which their coordinators handle, and partitions, which
their leaders handle. So the failure of one item does not affect other items. Kafka's ``AdminApiDriver`` has the same
structure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from kafka_msgs.admin.results import HasError, Outcome, Results, api_name, outcomes
from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import Broker, TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.client.scheduler import gather
from kafka_msgs.error_codes import ErrorCode as E
from kafka_msgs.errors import BrokerError, ConnectionFailedError, DeadlineError
from kafka_msgs.message import Request, Response

__all__ = ["CoordinatorFanOut", "LeaderFanOut", "fan_out_to_brokers", "milliseconds_left", "seconds_left"]

H = TypeVar("H", bound=HasError)
K = TypeVar("K")
R = TypeVar("R", bound=Response)
V = TypeVar("V")

Ask: TypeAlias = Callable[[int, Sequence[K]], Flow[Mapping[K, Outcome[V]]]]
"""Sends a request for some keys to the broker with this id, and returns the outcome of each key."""


class _FanOut(ABC, Generic[K]):
    """Sends requests for keys to the responsible brokers, until the deadline."""

    retriable: frozenset[E]
    """The errors after which a retry, on another broker or the same one, may succeed."""

    def __init__(self, client: ClientCore, *, deadline: float) -> None:
        self._core = client
        self._deadline = deadline

    @abstractmethod
    def brokers_of(self, keys: Sequence[K]) -> Flow[dict[K, int | BrokerError]]:
        """Return the broker of each key, or the error if it has none."""

    @abstractmethod
    def invalidate(self, key: K) -> None:
        """Look up the broker of a key again."""

    def run(self, keys: Iterable[K], ask: Ask[K, V]) -> Flow[Results[K, V]]:
        """Request each key, with one request per broker and round; return the outcome of each.

        At the deadline the outcome of a retried key is its last error.
        """
        final: dict[K, Outcome[V]] = {}
        todo = wanted = list(dict.fromkeys(keys))
        backoff = self._core.directory.new_backoff(self._deadline)
        while todo:
            final.update((yield from self._round(todo, ask)))
            todo = [key for key in todo if any(map(self._again, _failures(final[key])))]
            if not todo or not backoff.has_time:
                break
            for key in todo:
                self.invalidate(key)
            yield from backoff.wait()
        return Results({key: final[key] for key in wanted})

    def each(
        self,
        keys: Iterable[K],
        request_for: Callable[[Sequence[K]], Request[R]],
        items: Callable[[R], Iterable[tuple[K, H]]],
        value: Callable[[H, Broker | None], V],
    ) -> Flow[Results[K, V]]:
        """Send requests for several keys each, and return the value of each item. ``value`` also gets the broker."""

        def ask(broker_id: int, part: Sequence[K]) -> Flow[Mapping[K, Outcome[V]]]:
            request = request_for(part)
            response = yield from self._core.call(request, broker_id=broker_id, retry=False, deadline=self._deadline)
            broker = self._core.cluster.brokers.get(broker_id)
            return outcomes(api_name(request), items(response), lambda item: value(item, broker), part).outcomes

        return (yield from self.run(keys, ask))

    def one(self, key: K, request: Request[R], read: Callable[[R], Outcome[V]]) -> Flow[V]:
        """Send a separate request for one key; return the result of ``read`` for the response, or raise its error."""

        def ask(broker_id: int, _: Sequence[K]) -> Flow[Mapping[K, Outcome[V]]]:
            response = yield from self._core.call(request, broker_id=broker_id, retry=False, deadline=self._deadline)
            return {key: read(response)}

        return (yield from self.run([key], ask))[key]

    def _round(self, keys: Sequence[K], ask: Ask[K, V]) -> Flow[dict[K, Outcome[V]]]:
        """Request each key once."""
        try:
            found = yield from self.brokers_of(keys)
        except (ConnectionFailedError, DeadlineError) as error:
            return dict.fromkeys(keys, error)
        result: dict[K, Outcome[V]] = {}
        by_node: dict[int, list[K]] = {}
        for key, place in found.items():
            if isinstance(place, BrokerError):
                result[key] = place
            else:
                by_node.setdefault(place, []).append(key)
        answers = yield from gather([ask(broker_id, part) for broker_id, part in by_node.items()])
        for part, answer in zip(by_node.values(), answers, strict=True):
            result.update(dict.fromkeys(part, answer) if isinstance(answer, Exception) else answer)
        return result

    def _again(self, error: Exception) -> bool:
        """Return whether the request may soon have a different result."""
        if isinstance(error, BrokerError):
            return error.error in self.retriable
        return isinstance(error, ConnectionFailedError) and not self._core.directory.dialer.is_final(error)


def _failures(outcome: object) -> Collection[Exception]:
    """Return the errors of a key: its own error, or the errors of the partitions in its results."""
    if isinstance(outcome, Results):
        return outcome.errors.values()
    return (outcome,) if isinstance(outcome, Exception) else ()


class CoordinatorFanOut(_FanOut[str]):
    """Sends requests to the coordinators of groups or transactions, which it looks up together (KIP-699)."""

    retriable = frozenset(
        {
            E.COORDINATOR_NOT_AVAILABLE,
            E.NOT_COORDINATOR,
            E.COORDINATOR_LOAD_IN_PROGRESS,
            E.UNSTABLE_OFFSET_COMMIT,
            E.CONCURRENT_TRANSACTIONS,
        }
    )

    def __init__(self, client: ClientCore, kind: CoordinatorKind, *, deadline: float) -> None:
        super().__init__(client, deadline=deadline)
        self._kind = kind

    def brokers_of(self, keys: Sequence[str]) -> Flow[dict[str, int | BrokerError]]:
        """Return the coordinator of each key."""
        found = yield from self._core.directory.coordinators.find_all(keys, self._kind, deadline=self._deadline)
        return {key: _error(place, key) if isinstance(place, E) else place for key, place in found.items()}

    def invalidate(self, key: str) -> None:
        """Look up the coordinator of a key again."""
        self._core.forget_coordinator(key, self._kind)


def _error(code: E, key: object) -> BrokerError:
    return broker_error(code, api="FindCoordinator", subject=key)


class LeaderFanOut(_FanOut[TopicPartition]):
    """Sends requests to the leaders of partitions."""

    retriable = frozenset(
        {
            E.LEADER_NOT_AVAILABLE,
            E.NOT_LEADER_OR_FOLLOWER,
            E.KAFKA_STORAGE_ERROR,
            E.FENCED_LEADER_EPOCH,
            E.UNKNOWN_LEADER_EPOCH,
            E.OFFSET_NOT_AVAILABLE,
        }
    )

    def brokers_of(self, keys: Sequence[TopicPartition]) -> Flow[dict[TopicPartition, int | BrokerError]]:
        """Return the leader of each partition. A partition that is missing in the metadata fails immediately."""
        found = yield from self._core.directory.find_leaders(keys, deadline=self._deadline)
        places = ((key, found[key]) for key in keys)
        return {key: self._no_leader(key) if isinstance(place, E) else place for key, place in places}

    def _no_leader(self, key: TopicPartition) -> BrokerError:
        cluster = self._core.cluster
        known = cluster.topics.get(key.topic)
        code = (
            E.LEADER_NOT_AVAILABLE if key.partition in cluster.partitions(key.topic) else E.UNKNOWN_TOPIC_OR_PARTITION
        )
        return broker_error((known and known.error) or code, api="Metadata", subject=key)

    def invalidate(self, key: TopicPartition) -> None:
        """Refresh the topic's metadata."""
        self._core.cluster.forget_topic(key.topic)


def fan_out_to_brokers(
    client: ClientCore, ask: Callable[[int], Flow[V]], *, deadline: float, nodes: Collection[int] | None = None
) -> Flow[Results[int, V]]:
    """Send a request to all brokers, or to ``nodes``, concurrently; return the outcome by broker id."""
    if nodes is None:
        cluster = yield from client.refresh((), deadline=deadline)
        nodes = sorted(cluster.brokers)
    answers = yield from gather([ask(broker_id) for broker_id in nodes])
    return Results(dict(zip(nodes, answers, strict=True)))


def seconds_left(client: ClientCore, deadline: float) -> float:
    """Return the seconds until the deadline."""
    return max(0.0, deadline - client.network.now())


def milliseconds_left(client: ClientCore, deadline: float) -> int:
    """Return the milliseconds until the deadline, for a request with a timeout for the broker."""
    return min(max(1, int(seconds_left(client, deadline) * 1000)), 2**31 - 1)
