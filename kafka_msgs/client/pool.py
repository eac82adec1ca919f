"""The connection pool: finds brokers and leaders, without sockets, clocks or threads.

``ConnectionPool`` holds the newest metadata, and one connection per broker and purpose. It
starts from the bootstrap addresses, and returns to them when no known broker is reachable (KIP-899).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Iterable, Sequence
from random import Random
from typing import Final, TypeVar
from uuid import UUID

from kafka_msgs.client.backoff import Backoff
from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.broker_handshake import REAUTHENTICATION_SHARE
from kafka_msgs.client.cluster_metadata import ClusterMetadata
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.coordinator_directory import CoordinatorDirectory
from kafka_msgs.client.dial import Dialer
from kafka_msgs.client.dns import resolve_canonical_names
from kafka_msgs.client.flow import Flow, wait_for
from kafka_msgs.client.hooks import HookCaller
from kafka_msgs.client.metrics import ClientMetrics
from kafka_msgs.client.network import Address, Network
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.routing import Item
from kafka_msgs.client.scheduler import Task
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AuthenticationError, ConnectionFailedError, DeadlineError
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic

__all__ = ["ConnectionPool"]

T = TypeVar("T")
log: Final = logging.getLogger("kafka_msgs.client.metadata")

GENERAL_PURPOSE: Final = "general"


class ConnectionPool:
    """The brokers of a cluster, and the connections to them."""

    def __init__(self, config: ClientConfig, network: Network, random: Random) -> None:
        self.config = config
        self.network = network
        self.random = random
        self.cluster = ClusterMetadata(config.max_brokers)
        self.dialer = Dialer(network, config, random)
        self.metrics = ClientMetrics(network.now)
        self.hooks = HookCaller((self.metrics, *config.hooks))
        self.coordinators = CoordinatorDirectory(self)
        self._links: dict[tuple[int, str], BrokerConnection] = {}
        self._retries = RetryLog(log, network.now)
        self._first: BrokerConnection | None = None
        self._connections: list[BrokerConnection] = []
        self._opening: dict[Hashable, Task[BrokerConnection]] = {}
        self._renewing: dict[BrokerConnection, Task[float | None]] = {}
        self._learned_at: float | None = None
        self._moved: set[int] = set()

    def repeatable(self, error: ConnectionFailedError) -> bool:
        """Return whether a retry may help after a connection failure. See ``Dialer.is_final``."""
        return not self.dialer.is_final(error)

    def new_backoff(self, deadline: float) -> Backoff:
        """Return the backoff of one operation."""
        return Backoff(self.config, self.network, self.random, self._retries, deadline)

    def request_deadline(self) -> float:
        """Return the deadline for the response to a request that is sent now."""
        return self.network.now() + self.config.request_timeout

    def connection(
        self, broker_id: int, *, purpose: str = GENERAL_PURPOSE, deadline: float, asks: bool = True
    ) -> Flow[BrokerConnection]:
        """Return a ready connection to a broker; open it if needed.

        ``purpose`` separates connections: a Fetch or a JoinGroup that waits at the broker stalls later requests on its
        connection. Request the connection before each request: it may be replaced, and its session may be renewed here.
        ``asks`` allows a metadata request if the address may have changed; metadata requests themselves disable it.
        Raises ``ConnectionFailedError``, ``AuthenticationError`` and ``DeadlineError``.
        """
        connection = self._links.get((broker_id, purpose))
        if connection is not None:
            self._check(connection)
        if connection is None or not connection.alive:
            if purpose == GENERAL_PURPOSE and self._first is not None and self._adopt_first(broker_id):
                connection = self._links[broker_id, purpose]
            else:
                made = yield from self._connect(broker_id, purpose, deadline, asks)
                connection = self._links[broker_id, purpose] = _first_of(self._links.get((broker_id, purpose)), made)
        yield from self._renew(connection, deadline)
        return connection

    def any_connection(self, *, deadline: float) -> Flow[BrokerConnection]:
        """Return a connection to any broker: an open one if possible, then a known broker, then a bootstrap address."""
        connection = self._least_loaded()
        if connection is not None and (not self._is_silent(connection) or len(self.cluster.brokers) < 2):
            yield from self._renew(connection, deadline)
            return connection
        for broker_id in self._in_order_of_backoff(self.cluster.brokers):
            try:
                return (yield from self.connection(broker_id, deadline=deadline, asks=False))
            except ConnectionFailedError:
                continue
        made = yield from self._bootstrap(deadline)
        self._first = _first_of(self._first, made)
        return self._first

    def ready_connection(self) -> BrokerConnection | None:
        """Return an open connection to any broker whose session does not need renewal, or None."""
        connection = self._least_loaded()
        if connection is None or self._is_silent(connection):
            return None
        if connection.reauthenticate_at is not None or self._renewing:
            return None
        return connection

    def _least_loaded(self) -> BrokerConnection | None:
        """Return the open connection with the fewest in-flight requests, if possible to a broker that answers."""
        for each in self._connections:
            self._check(each)
        general = (each for (_, purpose), each in self._links.items() if purpose == GENERAL_PURPOSE)
        first = () if self._first is None else (self._first,)
        alive = [each for each in (*first, *general) if each.alive]
        return min(alive, key=lambda each: (self._is_silent(each), each.in_flight), default=None)

    def _is_silent(self, connection: BrokerConnection) -> bool:
        return self.dialer.is_silent(connection.address)

    def _check(self, connection: BrokerConnection) -> None:
        """Close a connection with an overdue response, or one that was unused for ``connection_max_idle``."""
        connection.close_if_overdue(self.network.now())
        idle = self.config.connection_max_idle
        if (
            idle is not None
            and connection.alive
            and not connection.in_flight
            and connection.moved_at + idle < connection.clock()
        ):
            connection.close()

    def _in_order_of_backoff(self, nodes: Iterable[int]) -> list[int]:
        """Return brokers in random order, those last that failed or did not answer recently."""
        dialer, addresses = self.dialer, {each: self.cluster.brokers[each].address for each in nodes}
        return sorted(
            self._shuffled(nodes),
            key=lambda each: (dialer.is_silent(addresses[each]), dialer.ready_at(addresses[each])),
        )

    def last_failure(self, broker_id: int) -> ConnectionFailedError | None:
        """Return the last failure of a broker, or None if the last connection to it succeeded."""
        broker = self.cluster.brokers.get(broker_id)
        return None if broker is None else self.dialer.last_failure(broker.address)

    def current_metadata(self, *, deadline: float) -> Flow[ClusterMetadata]:
        """Return metadata, refreshed if it is too old."""
        if self._stale:
            yield from self.refresh((), deadline=deadline)
        return self.cluster

    @property
    def _stale(self) -> bool:
        return self._learned_at is None or self._learned_at + self.config.metadata_max_age < self.network.now()

    def invalidate_metadata(self) -> None:
        """Mark the metadata as outdated, so that the next use refreshes it."""
        self._learned_at = None

    def refresh(self, topics: Collection[str | UUID] | None = None, *, deadline: float) -> Flow[ClusterMetadata]:
        """Refresh the metadata of the brokers and of some topics. None is all known topics.

        Missing topics are not created. Raises ``DeadlineError`` and the errors of a connection.
        """
        wanted = tuple(self.cluster.topics) if topics is None else tuple(topics)
        request = MetadataRequest(topics=tuple(map(_asked, wanted)), allow_auto_topic_creation=False)
        backoff = self.new_backoff(deadline)
        while True:
            try:
                connection = yield from self.any_connection(deadline=deadline)
                response = yield from connection.call(request, deadline=deadline, limit=self.request_deadline())
            except ConnectionFailedError as error:
                backoff.record_failure(error, final=not self.repeatable(error))
            except DeadlineError as error:
                raise backoff.timeout_error(error) from None
            else:
                if response.error_code == 0 and response.brokers:
                    break
                backoff.record_failure(broker_error(response.error_code, api="Metadata"), final=False)
            yield from backoff.wait()
        self.cluster.update(response)
        log.debug("metadata of %d topics from %s", len(response.topics), connection.address)
        answered = {each.name for each in response.topics}
        for name in wanted:
            if isinstance(name, str) and name not in answered:
                self.cluster.forget_topic(name)
        self._learned_at = self.network.now()
        return self.cluster

    def find_leaders(self, items: Collection[Item], *, deadline: float) -> Flow[dict[Item, int | ErrorCode]]:
        """Return the leader of each partition, or an error code if it is unknown."""
        partitions = [item for item in items if not isinstance(item, str)]
        topics = dict.fromkeys(topic for topic, _ in partitions)
        wanted = [topic for topic in topics if self._stale or not self.cluster.partitions(topic)]
        if wanted:
            yield from self.refresh(wanted, deadline=deadline)
        return {item: self._leader(*item) for item in partitions}

    def _leader(self, topic: str | UUID, partition: int) -> int | ErrorCode:
        leader = self.cluster.leader(topic, partition)
        return ErrorCode.LEADER_NOT_AVAILABLE if leader is None else leader

    def close(self) -> None:
        """Close every connection. Pending requests fail."""
        for opening in self._opening.values():
            opening.cancel()
        for renewing in self._renewing.values():
            renewing.cancel()
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._links.clear()
        self._first = None

    def _open(self, key: Hashable, address: Address, broker_id: int | None, deadline: float) -> Flow[BrokerConnection]:
        """Open a connection, shared by concurrent callers. It continues if the first caller is cancelled."""
        task = self._opening.get(key)
        if task is None or task.done:
            limit = self.network.now() + self.config.connect_timeout
            task = self._opening[key] = self.network.spawn(self._make(address, broker_id, limit))
        try:
            connection = yield from wait_for(task, deadline, f"a connection to {address}")
        except DeadlineError as error:
            raise DeadlineError(
                waiting_for=error.waiting_for, cause=error.cause or self.dialer.last_failure(address)
            ) from None
        finally:
            if task.done:
                self._opening.pop(key, None)
        return connection

    def _make(self, address: Address, broker_id: int | None, deadline: float) -> Flow[BrokerConnection]:
        """Open a connection, and track it for ``close``, because its callers may be cancelled before it is ready."""
        connection = yield from BrokerConnection.open(
            self.network,
            address,
            self.config,
            broker_id=broker_id,
            deadline=deadline,
            dialer=self.dialer,
            hooks=self.hooks,
        )
        self._connections = [*(each for each in self._connections if each.alive), connection]
        return connection

    def _bootstrap(self, deadline: float) -> Flow[BrokerConnection]:
        """Connect to one of the bootstrap addresses. Raises the last failure if none can be reached."""
        failure: ConnectionFailedError | None = None
        addresses = yield from self._bootstrap_addresses(deadline)
        for address in sorted(self._shuffled(addresses), key=self.dialer.ready_at):
            try:
                return (yield from self._open(address, address, None, deadline))
            except ConnectionFailedError as error:
                if failure is None or error.retriable:
                    failure = error
        assert failure is not None
        raise failure

    def _bootstrap_addresses(self, deadline: float) -> Flow[Sequence[Address]]:
        """Return the bootstrap addresses, as canonical names if ``dns_lookup`` requires it."""
        addresses = self.config.bootstrap_servers
        if self.config.dns_lookup == "use_all_dns_ips":
            return addresses
        names: list[Address] = []
        for address in addresses:
            try:
                looking = self.network.offload(resolve_canonical_names, address)
                names += yield from wait_for(looking, deadline, f"the canonical names of {address.host}")
            except OSError:
                names.append(address)
        return names

    def _adopt_first(self, broker_id: int) -> bool:
        """Use the bootstrap connection for the broker at its address, if it is that broker."""
        first, broker = self._first, self.cluster.brokers.get(broker_id)
        if first is None or broker is None or not first.alive or first.address != broker.address:
            return False
        first.broker_id = broker_id
        self._links[broker_id, GENERAL_PURPOSE] = first
        self._first = None
        return True

    def _connect(self, broker_id: int, purpose: str, deadline: float, asks: bool) -> Flow[BrokerConnection]:
        known = self.cluster.brokers.get(broker_id)
        address = known.address if known and not asks else (yield from self._address(broker_id, deadline))
        try:
            return (yield from self._open((broker_id, purpose), address, broker_id, deadline))
        except ConnectionFailedError:
            self._moved.add(broker_id)
            raise

    def _address(self, broker_id: int, deadline: float) -> Flow[Address]:
        """Return the address of a broker. Refresh it if the last connection to the broker failed."""
        if broker_id not in self.cluster.brokers or broker_id in self._moved:
            self._moved.discard(broker_id)
            yield from self.refresh((), deadline=deadline)
        broker = self.cluster.brokers.get(broker_id)
        if broker is None:
            reason = "the cluster has no such broker"
            raise ConnectionFailedError(address=f"broker {broker_id}", step="connect", reason=reason)
        return broker.address

    def _renew(self, connection: BrokerConnection, deadline: float) -> Flow[None]:
        """Re-authenticate on a connection whose session ends soon. Later requests wait for it."""
        task = self._renewing.get(connection)
        if task is None or task.done:
            credentials, now = self.config.credentials, self.network.now()
            if connection.reauthenticate_at is None or credentials is None or now < connection.reauthenticate_at:
                return
            limit = now + self.config.connect_timeout
            task = self._renewing[connection] = self.network.spawn(
                connection.authenticate(credentials, self.network, limit)
            )
        try:
            lifetime = yield from wait_for(task, deadline, f"authentication by {connection.address}")
            connection.reauthenticate_at = (
                None if lifetime is None else self.network.now() + lifetime * REAUTHENTICATION_SHARE
            )
        except (AuthenticationError, DeadlineError):
            connection.close()
            raise
        finally:
            if task.done:
                self._renewing.pop(connection, None)

    def _shuffled(self, values: Iterable[T]) -> list[T]:
        shuffled = list(values)
        self.random.shuffle(shuffled)
        return shuffled


def _first_of(present: BrokerConnection | None, made: BrokerConnection) -> BrokerConnection:
    """Return the first of two connections that were opened concurrently, and close the second."""
    if present is None or present is made or not present.alive:
        return made
    made.close()
    return present


def _asked(topic: str | UUID) -> MetadataRequestTopic:
    if isinstance(topic, UUID):
        return MetadataRequestTopic(topic_id=topic, name=None)
    return MetadataRequestTopic(name=topic)
