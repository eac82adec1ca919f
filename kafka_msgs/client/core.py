"""The client core: routing, sending and retries, without sockets, clocks or threads.

``ClientCore`` executes requests. The table in ``routing`` maps each request to its broker. ``pool`` finds brokers and
keeps the connections to them. Retries follow Kafka's own clients: within one deadline, the client looks up the right
broker again and sends the same request again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from kafka_msgs.client import routing
from kafka_msgs.client.backoff import Backoff
from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import ClusterMetadata
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.flow import Flow, Future, Wait
from kafka_msgs.client.network import Network
from kafka_msgs.client.pool import ConnectionPool
from kafka_msgs.client.routing import BrokerRoute, CoordinatorKind, CoordinatorRoute, Item, ItemPaths, LeaderRoute
from kafka_msgs.client.scheduler import gather
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ConnectionFailedError, DeadlineError, UnsupportedFieldError
from kafka_msgs.message import Request, Response

__all__ = ["ClientCore"]

R = TypeVar("R", bound=Response)

_MS: Final = 1000.0


class ClientCore:
    """The core of one client."""

    def __init__(self, config: ClientConfig, network: Network, random: Random | None = None) -> None:
        self.config = config
        self.network = network
        self.directory = ConnectionPool(config, network, random or Random())
        self.final_deadline: float | None = None
        """No operation that starts now has a later deadline."""

    @property
    def cluster(self) -> ClusterMetadata:
        """The newest metadata."""
        return self.directory.cluster

    def metrics(self, topic: str | None = None) -> dict[str, float]:
        """Return the metrics of the client, or of one topic, by Kafka's names."""
        metrics = self.directory.metrics
        return metrics.snapshot() if topic is None else metrics.topic_snapshot(topic)

    def deadline(self, timeout: float | None) -> float:
        """Return the deadline ``timeout`` seconds from now. None is the configured timeout."""
        deadline = self.network.now() + (self.config.timeout if timeout is None else timeout)
        return deadline if self.final_deadline is None else min(deadline, self.final_deadline)

    def call(
        self,
        request: Request[R],
        *,
        deadline: float | None = None,
        version: int | None = None,
        broker_id: int | None = None,
        retry: bool = True,
    ) -> Flow[R]:
        """Send a request to the broker or brokers that serve it, and return the response.

        ``broker_id`` selects a broker; otherwise the routing table decides. A request for several brokers is split, and
        the responses are merged. ``version``: None is the highest version that both sides support and that can
        represent the request. With ``retry``, the client retries until the deadline if the connection ends or if the
        response reports that another broker is responsible or a broker is not ready. The response contains all other
        error codes for the caller to check.

        Raises ``DeadlineError``, ``ConnectionFailedError``, ``AuthenticationError``, ``UnsupportedVersionError`` and
        the errors of the codec.
        """
        limit = self.deadline(None) if deadline is None else deadline
        route = routing.route_of(request)
        if broker_id is None and route is routing.ANY_BROKER:
            connection = self.directory.ready_connection()
            if connection is not None:
                try:
                    return (yield from self.call_on(connection, request, version, limit))
                except ConnectionFailedError:
                    if not retry:
                        raise
        asking = _Call(self, limit, version, retry)
        if broker_id is not None:
            return (
                yield from asking.to_one_broker(request, lambda: self.directory.connection(broker_id, deadline=limit))
            )
        if isinstance(route, BrokerRoute):
            return (yield from asking.to_any_or_all(request, route))
        if isinstance(route, LeaderRoute):
            return (yield from asking.split_by_item(request, route.many, route))
        if route.many is not None and getattr(request, route.many.request):
            return (yield from asking.split_by_item(request, route.many, route))
        return (yield from asking.to_coordinator(request, route))

    def link(self, broker_id: int, *, purpose: str = "general", deadline: float) -> Flow[BrokerConnection]:
        """Return a ready connection to a broker. See ``ConnectionPool.connection``."""
        return self.directory.connection(broker_id, purpose=purpose, deadline=deadline)

    def coordinator_link(self, key: str, kind: CoordinatorKind, *, deadline: float) -> Flow[BrokerConnection]:
        """Return a connection to a coordinator, with retries.

        Raises ``BrokerError`` if no broker names the coordinator, ``AuthenticationError`` and ``DeadlineError``.
        """
        backoff = self.directory.new_backoff(deadline)
        while True:
            broker_id = yield from self.directory.coordinators.find(key, kind, deadline=deadline)
            try:
                return (yield from self.directory.connection(broker_id, deadline=deadline))
            except ConnectionFailedError as error:
                backoff.record_failure(error, final=self.directory.dialer.is_final(error))
            except DeadlineError as error:
                raise backoff.timeout_error(error) from None
            self.directory.coordinators.forget(key, kind)
            yield from backoff.wait()

    def coordinator(self, key: str, kind: CoordinatorKind, *, deadline: float) -> Flow[int]:
        """Return the id of the broker that coordinates a group or a transaction. See
        ``CoordinatorDirectory.find``.
        """
        return self.directory.coordinators.find(key, kind, deadline=deadline)

    def forget_coordinator(self, key: str, kind: CoordinatorKind) -> None:
        """Forget a coordinator, so that the next use looks it up again."""
        self.directory.coordinators.forget(key, kind)

    def refresh(self, topics: Collection[str] | None = None, *, deadline: float) -> Flow[ClusterMetadata]:
        """Refresh the metadata. See ``ConnectionPool.refresh``."""
        return self.directory.refresh(topics, deadline=deadline)

    def close(self) -> None:
        """Close every connection. Pending requests fail."""
        self.directory.close()

    def call_on(
        self, connection: BrokerConnection, request: Request[R], version: int | None, deadline: float
    ) -> Flow[R]:
        """Send a request over one connection and wait for its response.

        If the broker does not respond within the configured ``request_timeout``, the connection is closed. If the
        broker throttles the client (KIP-219), the next request waits.
        """
        now = self.network.now()
        if connection.throttled_until > now:
            now = yield Wait((), min(connection.throttled_until, deadline))
        pending = yield from connection.send_when_ready(
            lambda: send_at_best_version(connection, request, version), deadline
        )
        if not pending.done:
            yield from connection.wait_for(pending, request, deadline=deadline, limit=self.directory.request_deadline())
        answer = pending.result()
        throttled: int = getattr(answer, "throttle_time_ms", 0)
        if throttled > 0:
            connection.throttled_until = self.network.now() + throttled / _MS
            self.directory.hooks.call("throttled", str(connection.address), connection.broker_id, throttled / _MS)
        return answer


class _Call:
    """The attempts of one call, with one deadline, version and retry setting."""

    def __init__(self, core: ClientCore, deadline: float, version: int | None, retry: bool) -> None:
        self._core = core
        self._directory = core.directory
        self._deadline = deadline
        self._version = version
        self._retry = retry

    def to_any_or_all(self, request: Request[R], route: BrokerRoute) -> Flow[R]:
        """Send a request to any broker, to the controller, or to every broker."""
        if route is routing.ANY_BROKER:
            return (
                yield from self.to_one_broker(request, lambda: self._directory.any_connection(deadline=self._deadline))
            )
        if route is routing.CONTROLLER:
            return (
                yield from self.to_one_broker(
                    request, self._controller, route.retriable, self._directory.invalidate_metadata
                )
            )
        yield from self._directory.current_metadata(deadline=self._deadline)
        pieces = [
            self._each(request, broker_id, route.retriable) for broker_id in sorted(self._directory.cluster.brokers)
        ]
        answers = yield from gather(pieces)
        return routing.merge_responses([_value(answer) for answer in answers])

    def to_coordinator(self, request: Request[R], route: CoordinatorRoute) -> Flow[R]:
        """Send a request to the coordinator of its single key. Without a key, send it to any broker."""
        key: str | None = getattr(request, route.one) if route.one else None
        if key is None:
            return (yield from self.to_any_or_all(request, routing.ANY_BROKER))
        return (
            yield from self.to_one_broker(
                request,
                lambda: self._coordinator_link(key, route.kind),
                route.retriable,
                lambda: self._directory.coordinators.forget(key, route.kind),
            )
        )

    def to_one_broker(
        self,
        request: Request[R],
        place: Callable[[], Flow[BrokerConnection]],
        retriable: frozenset[int] = frozenset(),
        forget: Callable[[], None] = lambda: None,
    ) -> Flow[R]:
        """Send a request to one broker. ``place`` finds the broker, and ``forget`` makes ``place`` look it up again."""
        backoff = self._trials()
        while True:
            answer: R | None = None
            try:
                connection = yield from place()
                answer = yield from self._core.call_on(connection, request, self._version, self._deadline)
            except ConnectionFailedError as error:
                backoff.record_failure(error, final=not self._repeatable(request, error))
            except DeadlineError as error:
                raise backoff.timeout_error(error) from None
            else:
                code = _first(retriable, routing.error_codes(answer)) if self._retry and retriable else 0
                if not code:
                    return answer
                backoff.record_failure(broker_error(code, api=_api(request)), final=False)
            forget()
            if not backoff.has_time and answer is not None:
                return answer
            yield from backoff.wait()

    def split_by_item(self, request: Request[R], items: ItemPaths, route: CoordinatorRoute | LeaderRoute) -> Flow[R]:
        """Send each broker the items that it serves, and retry the failed items.

        A request without items goes to any broker.
        """
        if not routing.items_of(request, items):
            return (yield from self.to_any_or_all(request, routing.ANY_BROKER))
        backoff = self._trials()
        answers: list[R] = []
        while True:
            places = yield from self._places(routing.items_of(request, items), route)
            pieces = routing.split_request(request, items, places.__getitem__)
            results = yield from gather([self._piece(piece, broker_id) for broker_id, piece in pieces.items()])
            again: set[Item] = set()
            for piece, result in zip(pieces.values(), results, strict=True):
                if isinstance(result, ConnectionFailedError):
                    backoff.record_failure(result, final=not self._repeatable(piece, result))
                    again.update(routing.items_of(piece, items))
                elif isinstance(result, Exception):
                    raise backoff.timeout_error(result) if isinstance(result, DeadlineError) else result
                else:
                    failed = self._failed(result, items, route.retriable) if backoff.has_time else set()
                    if failed:
                        backoff.record_failure(
                            broker_error(_code(result, items, failed), api=_api(request)), final=False
                        )
                        again |= failed
                        result = routing.drop_items(result, items, failed)
                    answers.append(result)
            if not again:
                return routing.merge_responses(answers)
            self._look_again(again, route)
            yield from backoff.wait()
            request = routing.keep_items(request, items, again)

    def _trials(self) -> Backoff:
        return self._directory.new_backoff(self._deadline)

    def _controller(self) -> Flow[BrokerConnection]:
        cluster = yield from self._directory.current_metadata(deadline=self._deadline)
        if cluster.controller is None:
            return (yield from self._directory.any_connection(deadline=self._deadline))
        return (yield from self._directory.connection(cluster.controller, deadline=self._deadline))

    def _each(self, request: Request[R], broker_id: int, retriable: frozenset[int]) -> Flow[R]:
        place = partial(self._directory.connection, broker_id, deadline=self._deadline)
        return self.to_one_broker(request, place, retriable)

    def _coordinator_link(self, key: str, kind: CoordinatorKind) -> Flow[BrokerConnection]:
        """Return a connection to a coordinator. If no broker names it, any broker may reject the request."""
        found = yield from self._directory.coordinators.find_all((key,), kind, deadline=self._deadline)
        return (yield from self._link_to(found[key]))

    def _link_to(self, place: int | ErrorCode) -> Flow[BrokerConnection]:
        if isinstance(place, ErrorCode):
            return (yield from self._directory.any_connection(deadline=self._deadline))
        return (yield from self._directory.connection(place, deadline=self._deadline))

    def _piece(self, request: Request[R], place: int | ErrorCode) -> Flow[R]:
        connection = yield from self._link_to(place)
        return (yield from self._core.call_on(connection, request, self._version, self._deadline))

    def _places(
        self, items: Sequence[Item], route: CoordinatorRoute | LeaderRoute
    ) -> Flow[dict[Item, int | ErrorCode]]:
        """Return the broker for each item. An item without a broker goes to any broker, which returns the reason."""
        if isinstance(route, CoordinatorRoute):
            keys = [str(item) for item in items]
            found = yield from self._directory.coordinators.find_all(keys, route.kind, deadline=self._deadline)
            return dict(found.items())
        return (yield from self._directory.find_leaders(items, deadline=self._deadline))

    def _look_again(self, items: Collection[Item], route: CoordinatorRoute | LeaderRoute) -> None:
        for item in items:
            if isinstance(route, CoordinatorRoute):
                self._directory.coordinators.forget(str(item), route.kind)
        if isinstance(route, LeaderRoute):
            self._directory.invalidate_metadata()

    def _failed(self, answer: Response, items: ItemPaths, retriable: frozenset[int]) -> set[Item]:
        """Return the items of a response that should be retried."""
        if not self._retry:
            return set()
        return {item for item, code in routing.iter_item_errors(answer, items) if code in retriable}

    def _repeatable(self, request: Request[Any], error: ConnectionFailedError) -> bool:
        """Return whether a request may be retried after a connection failure."""
        if not self._retry or not self._directory.repeatable(error):
            return False
        return error.step != "request" or request.INFO.api_key not in routing.NOT_RETRIABLE_APIS


def send_at_best_version(connection: BrokerConnection, request: Request[R], version: int | None) -> Future[R]:
    """Send a request in a version, or in the highest one that both sides support and that can represent it.

    A request with topic names only is not sent in a version that uses topic ids instead. If the newest version lacks a
    field that is set, an older version is used. Raises ``UnsupportedVersionError``, ``EncodeError``.
    """
    if version is not None:
        return connection.send(request, version)
    highest = connection.highest_version(type(request))
    lowest = connection.version_range(type(request)).lowest
    limit = routing.max_version_with_topic_names(request)
    first = highest if limit is None else max(lowest, min(highest, limit))
    refusal: UnsupportedFieldError | None = None
    for each in range(first, lowest - 1, -1):
        try:
            return connection.send(request, each)
        except UnsupportedFieldError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _value(result: R | Exception) -> R:
    if isinstance(result, Exception):
        raise result
    return result


def _first(wanted: Collection[int], codes: Iterable[int]) -> int:
    """Return the first wanted code, or 0."""
    return next((code for code in codes if code in wanted), 0)


def _code(answer: Response, items: ItemPaths, failed: Collection[Item]) -> int:
    return next(code for item, code in routing.iter_item_errors(answer, items) if item in failed)


def _api(request: Request[Any]) -> str:
    return request.INFO.name.removesuffix("Request")
