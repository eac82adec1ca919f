"""A cluster of virtual brokers, without sockets, threads or a clock.

The caller passes in requests (``receive``) and the time (``tick``). The state of the cluster is its metadata image,
which changes only through the records passed to ``commit``. After each commit the cluster calls its listeners with a
``MetadataDelta``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kafka_msgs.broker.api_dispatcher import ApiDispatcher
from kafka_msgs.broker.broker_interface import Authorizer, FollowerView, TransactionJoiner
from kafka_msgs.broker.client_metrics import ClientMetrics
from kafka_msgs.broker.client_session import Address, BrokerListeners, ClientSession, VirtualBroker
from kafka_msgs.broker.cluster_storage import ClusterStorage
from kafka_msgs.broker.config import BrokerConfig
from kafka_msgs.broker.controller.config_defs import BrokerConfigs
from kafka_msgs.broker.controller.elections import leader_changes_on_start, leader_changes_on_stop
from kafka_msgs.broker.controller.image import MetadataDelta, MetadataImage, PartitionKey
from kafka_msgs.broker.controller.image_writer import image_records
from kafka_msgs.broker.controller.topics import TopicToCreate, create_topic
from kafka_msgs.broker.faults import FaultInjector
from kafka_msgs.broker.handlers import HANDLER_MODULES, iter_handlers
from kafka_msgs.broker.log_manager import LogManager, OpenStore
from kafka_msgs.broker.quotas import ClientQuotaManager, Window
from kafka_msgs.broker.registration_records import (
    FENCE,
    UNFENCE,
    change_record,
    elect_missing_leaders,
    feature_records,
    min_in_sync_record,
    recover_image,
    registration_record,
    stop_all,
)
from kafka_msgs.broker.security.acls import AclAuthorizer
from kafka_msgs.broker.security.certificates import MAPPING_RULES, parse_mapping_rules
from kafka_msgs.broker.security.credentials import MECHANISMS, OAUTHBEARER, PLAIN, CredentialStore
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.broker.sliced_work import SlicedWork
from kafka_msgs.broker.storage import MemoryPartitionStore
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.errors import OptionError
from kafka_msgs.groups.config import ForcedTarget
from kafka_msgs.groups.runtime.timer_queue import TimerHandle, TimerQueue
from kafka_msgs.log.writers.small_files import uuid_text
from kafka_msgs.message import MetadataRecord
from kafka_msgs.versions import VersionRange

if TYPE_CHECKING:
    from kafka_msgs.broker.security.tokens import TokenValidator

__all__ = ["Cluster", "VirtualBroker"]


class Cluster:
    """The brokers, the metadata image, the timers and the listeners.

    ``now`` is the current time in milliseconds on the brokers' clock. ``errors`` collects unexpected exceptions from
    handlers, which are bugs. Each function in ``intercept`` is called with a request before its handler; if it returns
    True, the handler is skipped. ``response_observers`` are called with the call and the response after each response.
    ``authorizer`` decides what clients may do; without it they may do everything. ``clock_jump_listeners`` are called
    with the number of milliseconds after each clock jump. ``transaction_joiner`` ensures that a partition is in a
    transaction before a producer writes to it. ``stopwatch`` returns nanoseconds and measures request times.
    ``long_work`` runs between requests. ``follower_views`` maps broker id and partition to a follower's limits of
    its offsets.
    """

    def __init__(self, config: BrokerConfig | None = None, *, now: int, open_store: OpenStore | None = None) -> None:
        self.config = config = config or BrokerConfig()
        self.now = now
        self._skew = 0
        self.random: Random = SystemRandom() if config.seed is None else Random(config.seed)
        self.timers = TimerQueue()
        self.stopwatch: Callable[[], int] = int
        self.image = MetadataImage()
        self.brokers: dict[int, VirtualBroker] = {}
        self.broker_ids: Sequence[int] = range(config.brokers)
        """The broker ids: numbered from 0, or the ids of the nodes whose log directories were opened."""
        self.cluster_id = config.cluster_id or uuid_text(self.new_id())
        self.storage: ClusterStorage | None = None
        if config.directory is not None:
            self.storage = ClusterStorage(
                config.directory,
                config.brokers,
                cluster_id=self.cluster_id,
                new_id=self.new_id,
                now=now,
                durable=config.durable,
            )
            self.cluster_id, self.broker_ids = self.storage.cluster_id, self.storage.broker_ids
            open_store = open_store or self.storage.open_store
        self.controller_id = self.broker_ids[0]
        self.configs = BrokerConfigs(
            {**config.embedded_defaults(len(self.broker_ids)), **config.configs},
            lambda: self.image.configs.get((ConfigResourceType.BROKER, ""), {}),
        )
        self.certificate_user = parse_mapping_rules(self.configs.text(MAPPING_RULES) or "DEFAULT")
        self.dispatch = ApiDispatcher(iter_handlers(), config)
        self.errors: list[Exception] = []
        self.intercept: list[Callable[[ServerCall[Any]], bool]] = []
        self.response_observers: list[Callable[[ServerCall[Any], Any], None]] = []
        self.image_listeners: list[Callable[[MetadataDelta], None]] = []
        self.authorizer: Authorizer | None = AclAuthorizer(self) if config.authorizer else None
        self.clock_jump_listeners: list[Callable[[int], None]] = []
        self.faults = FaultInjector(self, self.intercept)
        self.quotas = ClientQuotaManager(self._window("quota"), self._window("controller.quota"))
        self.image_listeners.append(lambda delta: self.quotas.follow(delta.records))
        self.follower_views: dict[tuple[int, PartitionKey], FollowerView] = {}
        self.client_metrics = ClientMetrics(self)
        self.forced_targets: dict[str, ForcedTarget] = {}
        """The consumer groups whose target assignment a test chooses."""
        self.network: BrokerListeners | None = None
        self.long_work = SlicedWork(self._guarded)
        self.transaction_joiner: TransactionJoiner | None = None
        self._callbacks: deque[Callable[[], None]] = deque()
        self.log_manager = LogManager(self, open_store or (lambda *_: MemoryPartitionStore()))
        if self.storage is not None:
            self.image_listeners.append(self.storage.follow)
        self._sessions = 0
        if OAUTHBEARER in self.sasl_mechanisms:
            _ = self.token_validator  # A wrong key set is an error at the start.
        for module in HANDLER_MODULES:
            attach = getattr(module, "attach", None)
            if attach is not None:
                attach(self)

    @property
    def offered_versions(self) -> Mapping[int, VersionRange]:
        """The versions of each API that ApiVersions responses list."""
        return self.dispatch.offered

    def log_dir_path(self, broker_id: int) -> Path | None:
        """Return the absolute path of the log directory of a broker, or None without files."""
        return None if self.storage is None else self.storage.path_of(broker_id).absolute()

    @property
    def sasl_mechanisms(self) -> tuple[str, ...]:
        """The enabled SASL mechanisms, without those that the broker does not support."""
        enabled = (self.configs.text("sasl.enabled.mechanisms") or "").split(",")
        known = (PLAIN, OAUTHBEARER, *MECHANISMS)
        return tuple(name for each in enabled if (name := each.strip()) in known)

    @cached_property
    def token_validator(self) -> TokenValidator:
        """The validator of OAUTHBEARER tokens, for which few clusters need its modules."""
        from kafka_msgs.broker.security.oauthbearer import new_token_validator

        return new_token_validator(self.configs)

    def _window(self, name: str) -> Window:
        number = self.configs.number
        return Window(number(f"{name}.window.num"), 1000 * number(f"{name}.window.size.seconds"))

    def new_id(self) -> UUID:
        """Return a new id."""
        return UUID(int=self.random.getrandbits(128), version=4)

    # Requests and time

    def receive(self, call: ServerCall[Any]) -> None:
        """Handle a request. The response may come immediately or later."""
        if not any(hook(call) for hook in self.intercept):
            self.run_handler(call)
        self.settle()

    def run_handler(self, call: ServerCall[Any]) -> None:
        """Run the handler of a request, without faults."""
        self.dispatch.run(self, call)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` at the end of the current step."""
        self._callbacks.append(callback)

    def settle(self) -> None:
        """End a step by running its deferred callbacks. Code that changes the cluster from outside must call this.

        Exceptions are collected in ``errors``.
        """
        while self._callbacks:
            self._guarded(self._callbacks.popleft())

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.record_error(error)

    def record_error(self, error: Exception) -> None:
        """Collect an unexpected exception, up to ``_PROBLEMS`` exceptions."""
        if len(self.errors) < _PROBLEMS:
            self.errors.append(error)

    @property
    def next_timer(self) -> int | None:
        """Return the time in ms of the next timer, or None."""
        due = self.timers.next_due()
        return None if due is None else due - self._skew

    def advance_clock_to(self, now: int) -> None:
        """Set the current time in ms, without running timers."""
        self.now = now + self._skew

    def tick(self, now: int) -> None:
        """Set the current time and run all due timers. Exceptions are collected in ``errors``."""
        self.advance_clock_to(now)
        while (due := self.timers.pop_due(self.now)) is not None:
            self._guarded(due)
        self.settle()

    def jump_clock(self, ms: int) -> None:
        """Make the brokers' clock jump by ``ms``, back if negative, like a change of the system clock.

        The ages of records, transactions and offsets change. Pending timers (sessions, long polls, backoffs) are
        unaffected, because Kafka measures them with a monotonic clock. Raises ``OptionError`` for a jump to a time
        before 1970.
        """
        if self.now + ms < 0:
            raise _wrong("ms", ms, "the time would be before 1970")
        self._skew += ms
        self.now += ms
        self.timers.shift(ms)
        for follow in self.clock_jump_listeners:
            follow(ms)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        """Run ``callback`` after ``delay_ms`` milliseconds."""
        return self.timers.schedule(self.now + delay_ms, callback)

    def wait(self, ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` after ``ms`` milliseconds of real time, or immediately if there is no network."""
        if self.network is None or not ms:
            callback()
        else:
            self.network.call_later(ms, partial(self._guarded, callback))

    # Metadata

    def create_topic(self, new: TopicToCreate) -> None:
        """Create a topic. Raises ``RequestRefusedError``."""
        self.commit(create_topic(self.image, self.configs, self.new_id, new))

    def commit(self, records: Iterable[MetadataRecord]) -> MetadataDelta:
        """Apply records to the image, then call all listeners in the order of their registration.

        If the cluster has a directory, the records are first written to the metadata log. Raises
        ``RequestRefusedError`` if that write fails.
        """
        return self._publish(self.apply(records, MetadataDelta()))

    def apply(self, records: Iterable[MetadataRecord], delta: MetadataDelta) -> MetadataDelta:
        """Write and apply records without calling the listeners. Most callers use ``commit`` instead."""
        written = tuple(records)
        if self.storage is not None and written:
            self.storage.append(written, self.now)
        for record in written:
            self.image.apply(record, delta)
        return delta

    def _publish(self, delta: MetadataDelta) -> MetadataDelta:
        for listener in self.image_listeners:
            listener(delta)
        return delta

    # Brokers

    def start(self, addresses: Mapping[int, Mapping[str, Address]]) -> None:
        """Register and start the brokers. ``addresses`` maps broker id and listener name to host and port."""
        self.long_work.scheduler = self.network
        for number, (broker_id, listening) in enumerate(addresses.items()):
            meters = self.quotas.new_meters()
            advertised = {
                each.name: each.advertised(number, listening[each.name])
                for each in self.config.listeners
                if each.name in listening
            }
            log_dir = self.new_id() if self.storage is None else self.storage.id_of(broker_id)
            self.brokers[broker_id] = VirtualBroker(broker_id, listening, advertised, log_dir, meters)
        if self.storage is not None:
            self._recover(self.storage)
        if self.storage is None or self.storage.is_new:
            features = feature_records()
            if self.storage is not None:
                self.storage.write_bootstrap(features, self.now)
            self.commit([*features, min_in_sync_record(self.configs)])
        self.commit(CredentialStore(self).records())
        self._register(*self.brokers.values())
        for record in elect_missing_leaders(self.image, min(self.brokers)):
            self.commit([record])
        self.log_manager.start_cleaning(self._checkpoint)

    def _recover(self, storage: ClusterStorage) -> None:
        delta = recover_image(self.image, storage.records(), storage.end_offset)
        for records in stop_all(self.image, self.configs):
            self.apply(records, delta)
        self._publish(delta)

    def _checkpoint(self) -> None:
        if self.storage is not None:
            self.storage.checkpoint()
            self._snapshot(self.storage)

    def _snapshot(self, directory: ClusterStorage) -> None:
        limit = self.configs.number("metadata.log.max.record.bytes.between.snapshots")
        directory.snapshot(partial(image_records, self.image), self.now, after_bytes=limit)

    def close(self) -> None:
        """Close all connections and the directory. The cluster cannot be used again."""
        self.long_work.clear()
        for broker in self.brokers.values():
            for session in tuple(broker.sessions.values()):
                session.end()
        if self.storage is not None:
            running = [broker.id for broker in self.brokers.values() if broker.running]
            # The brokers can then be started when the metadata log is reopened.
            self.commit(change_record(self.image, each, fenced=FENCE, in_controlled_shutdown=1) for each in running)
        self.log_manager.close()
        if self.storage is not None:
            self._snapshot(self.storage)
            self.storage.close({broker.id: broker.epoch for broker in self.image.brokers.values()})

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker: it registers, listens at its addresses, and is in sync immediately."""
        broker = self.broker(broker_id)
        if broker.running:
            return
        if self.network is not None:
            self.network.open_broker(broker_id, broker.addresses)
        self._register(broker)

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down cleanly: its leaderships move first, then its connections close."""
        broker = self.broker(broker_id)
        if broker.running:
            self.commit([change_record(self.image, broker_id, in_controlled_shutdown=1)])
            self._shut_down_broker(broker, reset=False)

    def kill_broker(self, broker_id: int) -> None:
        """End a broker like a crash: its connections are reset, then its leaderships move."""
        broker = self.broker(broker_id)
        if broker.running:
            self._shut_down_broker(broker, reset=True)

    def _register(self, *brokers: VirtualBroker) -> None:
        """Register brokers, assign their partitions, and unfence them, as a starting broker does."""
        for broker in brokers:
            broker.running = True
            number = self.broker_ids.index(broker.id)
            incarnation_id = self.new_id()
            self.commit(
                [registration_record(self.image, self.config, broker, number=number, incarnation_id=incarnation_id)]
            )
        broker_ids = [broker.id for broker in brokers]
        leader_changes = leader_changes_on_start(self.image, self.configs, broker_ids)
        self.commit([*(change_record(self.image, each, fenced=UNFENCE) for each in broker_ids), *leader_changes])
        if not self.brokers[self.controller_id].running:
            self.controller_id = brokers[0].id

    def _shut_down_broker(self, broker: VirtualBroker, *, reset: bool) -> None:
        broker.running = False
        if self.network is not None:
            self.network.close_broker(broker.id, reset=reset)
        for session in tuple(broker.sessions.values()):
            session.end()
        leader_changes = leader_changes_on_stop(self.image, self.configs, broker.id)
        self.commit([change_record(self.image, broker.id, fenced=FENCE), *leader_changes])
        broker.components.clear()
        broker.meters = self.quotas.new_meters()
        alive = self.image.alive()
        if alive and self.controller_id == broker.id:
            self.controller_id = alive[0].id

    def open_session(self, broker_id: int, **facts: Any) -> ClientSession:
        """Return a new session on a broker. ``facts`` are attributes of ``ClientSession``."""
        self._sessions += 1
        session = ClientSession(id=self._sessions, broker_id=broker_id, **facts)
        sessions = self.brokers[broker_id].sessions
        sessions[session.id] = session
        session.on_close(partial(sessions.__delitem__, session.id))
        return session

    def broker(self, broker_id: int) -> VirtualBroker:
        """Return a broker. Raises ``OptionError`` for an unknown broker id."""
        if broker_id not in self.brokers:
            raise _wrong("broker_id", broker_id, f"the brokers are {', '.join(map(str, self.brokers))}")
        return self.brokers[broker_id]


_PROBLEMS: Final = 1000


def _wrong(option: str, value: object, reason: str) -> OptionError:
    return OptionError(source="Cluster", option=option, value=value, reason=reason)
