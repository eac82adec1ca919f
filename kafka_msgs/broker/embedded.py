"""The public embedded brokers: ``EmbeddedBroker`` runs in a thread, ``AsyncEmbeddedBroker`` on asyncio."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from attrs import evolve

from kafka_msgs.broker.client_metrics import ALL_METRICS, PushedMetrics
from kafka_msgs.broker.clock import Clock, SystemClock
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.config import BrokerConfig
from kafka_msgs.broker.controller.config_changes import replace_configs
from kafka_msgs.broker.faults import (
    At,
    FaultInjector,
    MoveController,
    MoveGroupCoordinator,
    MoveLeader,
    MoveTransactionCoordinator,
    SetFollowerOffsets,
)
from kafka_msgs.broker.request_log import RequestLog
from kafka_msgs.broker.server import BrokerServer
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.errors import BrokerStartError, InternalError, OptionError
from kafka_msgs.groups.config import ForcedTarget

if TYPE_CHECKING:
    from kafka_msgs.broker.initial_data import InitialData

__all__ = ["AsyncEmbeddedBroker", "EmbeddedBroker"]

T = TypeVar("T")
_SUBSCRIPTION: Final = "kafka-msgs"
"""The name of the client metrics subscription of ``subscribe_metrics``."""


class _Embedded(ABC):
    """The common methods of both brokers. They may be called while the broker runs."""

    def __init__(
        self,
        config: BrokerConfig | None = None,
        *,
        clock: Clock | None = None,
        data: InitialData | None = None,
        **settings: Any,
    ) -> None:
        self.data = data
        made = evolve(config or BrokerConfig(), **settings)
        self.config = made if data is None else data.configure(made)
        self.clock: Clock = clock or SystemClock()
        self._server: BrokerServer | None = None

    @abstractmethod
    def run(self, work: Callable[[Cluster], T]) -> T:
        """Call ``work`` with the cluster between two requests, and return its result."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers for clients: host:port, separated by commas."""
        return self.bootstrap_of(self.config.listeners[0].name)

    def bootstrap_of(self, listener: str) -> str:
        """Return the addresses of all brokers on a listener."""

        def addresses(cluster: Cluster) -> str:
            return ",".join(
                f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                for host, port in (broker.advertised[listener] for broker in cluster.brokers.values())
            )

        return self.run(addresses)

    @property
    def control_url(self) -> str:
        """The URL of the remote control. Raises ``OptionError`` if it is not enabled."""
        return self._url("control_port")

    @property
    def registry_url(self) -> str:
        """The URL of the schema registry. Raises ``OptionError`` if it is not enabled."""
        return self._url("registry_port")

    def _url(self, option: str) -> str:
        found = self.run(lambda _: self._running().endpoints.get(option))
        if found is None:
            raise OptionError(source="BrokerConfig", option=option, value=None, reason="it is not set")
        return found.url

    @property
    def problems(self) -> list[Exception]:
        """Unexpected exceptions in the broker, which are bugs."""
        return self.run(lambda cluster: list(cluster.errors))

    @property
    def faults(self) -> FaultInjector:
        """The fault injector of the cluster. See ``kafka_msgs.broker.faults``."""
        return self.run(lambda cluster: cluster.faults)

    @property
    def pushed_metrics(self) -> list[PushedMetrics]:
        """The latest metrics that clients have pushed (KIP-714): at most 1,000 pushes, and at most 64 MiB."""
        return self.run(lambda cluster: list(cluster.client_metrics))

    def subscribe_metrics(
        self, *prefixes: str, interval_ms: int = 1000, match: Mapping[str, str] | None = None
    ) -> None:
        """Request metrics from clients, by the prefixes of their names: all metrics without prefixes.

        Clients push them every ``interval_ms`` milliseconds. ``match`` maps client attributes such as ``client_id`` to
        regular expressions. Another call replaces the subscription. Raises ``OptionError`` without
        ``BrokerConfig.telemetry``, and ``RequestRefusedError`` with Kafka's error.
        """
        if not self.config.telemetry:
            raise OptionError(source="BrokerConfig", option="telemetry", value=False, reason="it is not set")
        configs: dict[str, str | None] = {
            "metrics": ",".join(prefixes or (ALL_METRICS,)),
            "interval.ms": str(interval_ms),
            "match": ",".join(f"{name}={pattern}" for name, pattern in (match or {}).items()),
        }
        kind = ConfigResourceType.CLIENT_METRICS
        self.run(
            lambda cluster: cluster.commit(
                replace_configs(cluster.image, cluster.configs, kind, _SUBSCRIPTION, configs)
            )
        )

    def requests(self, max_requests: int = 10_000) -> RequestLog:
        """Log client requests from now on, decoded. See ``RequestLog``."""
        return RequestLog(self._run_if_running, max_requests)

    def _run_if_running(self, work: Callable[[Cluster], T]) -> T | None:
        return None if self._server is None else self.run(work)

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that was stopped or killed. Raises ``OptionError`` for an unknown broker id."""
        self.run(lambda cluster: cluster.start_broker(broker_id))

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down cleanly: its leaderships move first. Raises ``OptionError`` for an unknown broker id."""
        self.run(lambda cluster: cluster.stop_broker(broker_id))

    def kill_broker(self, broker_id: int) -> None:
        """End a broker like a crash: its connections are reset. Raises ``OptionError`` for an unknown broker id."""
        self.run(lambda cluster: cluster.kill_broker(broker_id))

    def move_leader(self, topic: str, partition: int, broker_id: int) -> None:
        """Make a broker the leader of a partition, adding it to the replicas if necessary.

        Raises ``OptionError`` if the partition does not exist or the broker does not run.
        """
        self.run(MoveLeader(topic, partition, broker_id).apply)

    def set_follower_offsets(
        self, topic: str, partition: int, broker_id: int, *, start: int | None = None, end: int | None = None
    ) -> None:
        """Make a follower lag or lose old records, for consumers that fetch from it. See ``SetFollowerOffsets``.

        Raises ``OptionError`` if the broker has no replica of the partition.
        """
        self.run(SetFollowerOffsets(topic, partition, broker_id, start, end).apply)

    def move_group_coordinator(self, group_id: str, broker_id: int) -> None:
        """Make a broker the coordinator of a group. Raises ``OptionError`` if the broker does not run."""
        self.run(MoveGroupCoordinator(group_id, broker_id).apply)

    def force_assignment(self, group_id: str, target: ForcedTarget | None) -> None:
        """Choose the target assignment of a consumer group (KIP-848) instead of its assignor.

        ``target`` maps members to their partitions by topic name: ``{"client-a": {"orders": [0, 1]}}``. A member is
        named by its member id, instance id or client id; all others get no partitions. Members move to the target with
        their next heartbeats. None returns the choice to the assignor, which computes the next assignment when members,
        subscriptions or topics change. A partition may have several members, which no assignor would do.
        """

        def force(cluster: Cluster) -> None:
            if target is None:
                cluster.forced_targets.pop(group_id, None)
            else:
                cluster.forced_targets[group_id] = target

        self.run(force)

    def move_transaction_coordinator(self, transactional_id: str, broker_id: int) -> None:
        """Make a broker the coordinator of a transactional id. Raises ``OptionError`` if the broker does not run."""
        self.run(MoveTransactionCoordinator(transactional_id, broker_id).apply)

    def move_controller(self, broker_id: int) -> None:
        """Make another broker the controller in responses. Raises ``OptionError`` if it does not run."""
        self.run(MoveController(broker_id).apply)

    def jump_clock(self, ms: int) -> None:
        """Make the brokers' clock jump by ``ms``, back if negative. See ``Cluster.jump_clock``."""
        self.run(lambda cluster: cluster.jump_clock(ms))

    def run_fault_script(self, script: Iterable[At]) -> None:
        """Schedule the faults of a script, relative to now, and return immediately. See ``FaultInjector.play``."""
        self.run(lambda cluster: cluster.faults.play(script))

    def _running(self) -> BrokerServer:
        if self._server is None:
            raise InternalError(reason="the embedded broker does not run; start it first")
        return self._server

    def _check_stopped(self) -> None:
        if self._server is not None:
            raise BrokerStartError(address=self.bootstrap_servers, reason="the embedded broker runs already")

    def _open(self) -> BrokerServer:
        cluster = Cluster(self.config, now=self.clock.now())
        server = BrokerServer(cluster, self.clock)
        try:
            server.start()
            if self.data is not None:
                from kafka_msgs.broker.data_loading import load_initial_data  # Few brokers need it.

                load_initial_data(cluster, self.data)
            if self.config.control_port is not None or self.config.registry_port is not None:
                from kafka_msgs.broker.endpoints.opening import open_endpoints  # Few brokers need it.

                server.endpoints = open_endpoints(server)
        except BaseException:
            server.stop()
            cluster.close()
            raise
        return server


class AsyncEmbeddedBroker(_Embedded):
    """An embedded broker in the running event loop.

    ``async with AsyncEmbeddedBroker() as broker`` starts and stops it. ``settings`` are attributes of ``BrokerConfig``,
    which override the attributes of ``config``. ``data`` is loaded at the start. All methods must be called from the
    event loop's thread.
    """

    async def start(self) -> None:
        """Start the brokers. Raises ``BrokerStartError`` on failure or if they already run, and ``OptionError``."""
        self._check_stopped()
        self._server = server = self._open()
        self._unlisten = self.clock.add_listener(server.tick)

    async def close(self) -> None:
        """Stop the brokers and close all connections. It is safe to call again."""
        server, self._server = self._server, None
        if server is not None:
            self._unlisten()
            await server.close()
            server.cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def run(self, work: Callable[[Cluster], T]) -> T:
        """Call ``work`` with the cluster, and return its result."""
        return self._running().run(work)


class EmbeddedBroker(_Embedded):
    """An embedded broker in a separate thread.

    ``with EmbeddedBroker() as broker`` starts and stops it. ``settings`` are attributes of ``BrokerConfig``, which
    override the attributes of ``config``. ``data`` is loaded before clients can connect. All methods may be called from
    any thread.
    """

    def start(self) -> None:
        """Start the brokers; return when clients can connect.

        Raises ``BrokerStartError`` on failure or if they already run, and ``OptionError``.
        """
        self._check_stopped()
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, args=(started,), name="kafka-msgs-broker", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            raise
        self._unlisten = self.clock.add_listener(lambda: self._in_loop(self._running().tick))

    def close(self) -> None:
        """Stop the brokers, close all connections and end the thread. It is safe to call again."""
        if self._server is not None:
            self._unlisten()
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(self, work: Callable[[Cluster], T]) -> T:
        """Call ``work`` with the cluster in the broker's thread, and return its result."""
        return self._in_loop(partial(self._running().run, work))

    def _in_loop(self, step: Callable[[], T]) -> T:
        if threading.current_thread() is self._thread:
            return step()
        done: Future[T] = Future()

        def call() -> None:
            try:
                done.set_result(step())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(call)
        return done.result()

    def _main(self, started: Future[None]) -> None:
        asyncio.run(self._serve(started))

    async def _serve(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            self._server = server = self._open()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(None)
        try:
            await self._stop.wait()
        finally:
            await server.close()
            server.cluster.close()
