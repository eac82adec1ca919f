"""A cluster of virtual brokers, without sockets, threads and clock.

A shell gives requests (``receive``) and the time (``tick``). The state of the cluster is its image, which changes only
by the metadata records that ``commit`` is given. Who follows the image is called with a ``Delta`` after each commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random, SystemRandom
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID

from attrs import Factory, define

from kafka_msgs.broker.call import Call, Session
from kafka_msgs.broker.cluster_directory import ClusterDirectory
from kafka_msgs.broker.config import SECURITY_PROTOCOLS, BrokerConfig
from kafka_msgs.broker.controller.altering import MIN_IN_SYNC
from kafka_msgs.broker.controller.elections import broker_gone, broker_here, give_leadership, replace_replicas
from kafka_msgs.broker.controller.features import STARTING_FEATURES
from kafka_msgs.broker.controller.image import Delta, Image
from kafka_msgs.broker.controller.internal_topics import CONSUMER_OFFSETS
from kafka_msgs.broker.controller.settings import BrokerSettings
from kafka_msgs.broker.controller.topics import auto_create
from kafka_msgs.broker.dispatch import Dispatch
from kafka_msgs.broker.faults import Faults
from kafka_msgs.broker.handlers import all_handlers, handler_modules
from kafka_msgs.broker.partition_table import OpenStore, PartitionTable, memory_store
from kafka_msgs.broker.partitions import Guard
from kafka_msgs.broker.recovery import adopt_partitions, recover_image
from kafka_msgs.broker.security.acls import AclAuthorizer
from kafka_msgs.broker.security.credentials import MECHANISMS, PLAIN, Credentials
from kafka_msgs.broker.state_partition import state_partition
from kafka_msgs.broker.timers import TimerHandle, Timers
from kafka_msgs.enums import AclOperation, ConfigResourceType, ResourceType
from kafka_msgs.errors import OptionError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord

__all__ = ["Authorizer", "Cluster", "VirtualBroker"]

Address: TypeAlias = tuple[str, int]
Authorizer: TypeAlias = Callable[[Session, AclOperation, ResourceType, str], bool]
"""Whether the client of a connection may do an operation on the resource of a type and name."""


class Network(Protocol):
    """What brings the brokers to their clients. Without one, requests come from ``Cluster.receive`` alone."""

    def open_broker(self, broker_id: int, addresses: Mapping[str, Address]) -> None:
        """Listen at the addresses of a broker."""

    def close_broker(self, broker_id: int, *, reset: bool) -> None:
        """Stop listening, and close all connections; ``reset`` breaks them off."""


@define(eq=False)
class VirtualBroker:
    """One of the brokers. ``addresses`` has host and port of each listener, by name. ``parts`` is for what hosts state
    here, such as coordinators and sessions, by their class. They end with the broker. ``log_dir`` is the id of its log
    directory.
    """

    id: int
    addresses: Mapping[str, Address]
    log_dir: UUID
    sessions: dict[int, Session] = Factory(dict)
    parts: dict[type, Any] = Factory(dict)
    running: bool = False


class Cluster:
    """The brokers, the image, the timers, and what is told about changes.

    ``now`` is the present in milliseconds, as it was given last. ``problems`` has the exceptions of handlers that are
    not answers: bugs. ``intercept`` are called with each request before its handler; if one returns True, it took
    the call. ``observers`` are called after each answer, with the call and the response. ``authorizer`` decides
    what clients may do; without it they may do everything. ``join_transaction`` makes sure that a partition is in a
    transaction before a producer writes to it.
    """

    def __init__(self, config: BrokerConfig | None = None, *, now: int, open_store: OpenStore | None = None) -> None:
        self.config = config = config or BrokerConfig()
        self.settings = BrokerSettings({**config.embedded_defaults(), **config.configs})
        self.now = now
        self.random: Random = SystemRandom() if config.seed is None else Random(config.seed)
        self.timers = Timers()
        self.image = Image()
        self.brokers: dict[int, VirtualBroker] = {}
        self.controller_id = 0
        self.cluster_id = config.cluster_id or _base64(self.new_id())
        self.directory: ClusterDirectory | None = None
        if config.directory is not None:
            self.directory = ClusterDirectory(
                config.directory, cluster_id=self.cluster_id, directory_id=self.new_id(), now=now
            )
            self.cluster_id, self.controller_id = self.directory.cluster_id, self.directory.node_id
            open_store = open_store or self.directory.open_store
        self.dispatch = Dispatch(all_handlers(), config.release)
        self.problems: list[Exception] = []
        self.authorizer: Authorizer | None = AclAuthorizer(self) if config.authorizer else None
        self.intercept: list[Callable[[Call[Any]], bool]] = []
        self.observers: list[Callable[[Call[Any], Any], None]] = []
        self.listeners: list[Callable[[Delta], None]] = []
        self.faults = Faults(self)
        self.network: Network | None = None
        self.join_transaction: Callable[..., Guard | None] | None = None
        self._soon: deque[Callable[[], None]] = deque()
        self.partitions = PartitionTable(self, open_store or memory_store)
        self._sessions = 0
        for module in handler_modules():
            attach = getattr(module, "attach", None)
            if attach is not None:
                attach(self)

    @property
    def sasl_mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms that are enabled, of those that there are."""
        enabled = (self.settings.text("sasl.enabled.mechanisms") or "").split(",")
        return tuple(name for each in enabled if (name := each.strip()) == PLAIN or name in MECHANISMS)

    def new_id(self) -> UUID:
        """Return a new id."""
        return UUID(int=self.random.getrandbits(128), version=4)

    # Requests and time

    def receive(self, call: Call[Any]) -> None:
        """Handle a request. Its answer may come now or later."""
        if not any(hook(call) for hook in self.intercept):
            self.dispatch.run(self, call)
        self.settle()

    def soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` at the end of the present step."""
        self._soon.append(callback)

    def settle(self) -> None:
        """End a step: do what was put off. Whoever changes the cluster from outside calls this. What fails is kept in
        ``problems``.
        """
        while self._soon:
            self._guarded(self._soon.popleft())

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.note_problem(error)

    def note_problem(self, error: Exception) -> None:
        """Keep an exception that is not an answer. After the first ``_PROBLEMS`` they are not kept any more."""
        if len(self.problems) < _PROBLEMS:
            self.problems.append(error)

    @property
    def next_timer(self) -> int | None:
        """The moment (ms) at which ``tick`` has something to do, or None."""
        return self.timers.next_due()

    def tick(self, now: int) -> None:
        """Note the time, and run what is due. What fails is kept in ``problems``."""
        self.now = now
        while (due := self.timers.pop_due(now)) is not None:
            self._guarded(due)
        self.settle()

    def after(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        """Run ``callback`` after ``delay_ms`` milliseconds."""
        return self.timers.schedule(self.now + delay_ms, callback)

    # Metadata

    def commit(self, records: Iterable[MetadataRecord]) -> Delta:
        """Apply records to the image, then tell all listeners in the order in which they were added.

        With a directory the records are written to the metadata log first. Raises ``RefusedError`` if that fails.
        """
        return self._tell(self.apply(records, Delta()))

    def apply(self, records: Iterable[MetadataRecord], delta: Delta) -> Delta:
        """Write records and apply them, without telling anybody. All others use ``commit``."""
        written = tuple(records)
        if self.directory is not None and written:
            self.directory.append(written, self.now)
        for record in written:
            self.image.apply(record, delta)
        return delta

    def _tell(self, delta: Delta) -> Delta:
        for listener in self.listeners:
            listener(delta)
        return delta

    # Brokers

    def start(self, addresses: Mapping[int, Mapping[str, Address]]) -> None:
        """Register and start the brokers. ``addresses`` has host and port of each listener, by broker and name."""
        for broker_id, listeners in addresses.items():
            self.brokers[broker_id] = VirtualBroker(broker_id, listeners, self._log_dir(broker_id))
        if self.directory is not None:
            self._tell(recover_image(self, self.directory.records()))
        if self.directory is None or self.directory.is_new:
            self._begin()
        self.commit(Credentials(self).records())
        for broker in self.brokers.values():
            self._register(broker)
        adopt_partitions(self)
        self._clean_later()

    def _clean_later(self) -> None:
        """Clean the logs again and again, as often as the settings of the brokers say."""
        intervals = ("log.retention.check.interval.ms", "log.cleaner.backoff.ms")
        self.after(max(1, min(map(self.settings.number, intervals))), self._clean)

    def _clean(self) -> None:
        self._clean_later()
        self.partitions.clean()
        if self.directory is not None:
            self.directory.checkpoint()

    def _log_dir(self, broker_id: int) -> UUID:
        if self.directory is not None and broker_id == self.directory.node_id:
            return self.directory.directory_id
        return self.new_id()

    def _begin(self) -> None:
        features = [FeatureLevelRecord(name=name, feature_level=level) for name, level in STARTING_FEATURES.items()]
        if self.directory is not None:
            self.directory.write_bootstrap(features, self.now)
        # With eligible leader replicas the controller keeps the default of this setting itself (KIP-966).
        least = ConfigRecord(
            resource_type=ConfigResourceType.BROKER,
            name=MIN_IN_SYNC,
            value=self.settings.text(MIN_IN_SYNC),
        )
        self.commit((*features, least))

    @property
    def broker_ids(self) -> range:
        """The ids of the brokers. They begin at 0, or at the id of the node that a directory belongs to."""
        first = 0 if self.directory is None else self.directory.node_id
        return range(first, first + self.config.brokers)

    def close(self) -> None:
        """End all connections, and close the directory. The cluster cannot be used afterwards."""
        for broker in self.brokers.values():
            for session in tuple(broker.sessions.values()):
                session.end()
        self._say_goodbye()
        self.partitions.close()
        if self.directory is not None:
            first = self.image.brokers.get(self.directory.node_id)
            self.directory.close(broker_epoch=first.epoch if first else -1)

    def _say_goodbye(self) -> None:
        """Let the metadata log say that all brokers stopped, so that whoever opens it may start them at once."""
        if self.directory is not None:
            running = [broker.id for broker in self.brokers.values() if broker.running]
            self.commit(self._registration_change(each, fenced=_FENCE, in_controlled_shutdown=1) for each in running)

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that does not run: it registers, listens at its addresses, and is in sync at once."""
        broker = self._broker(broker_id)
        if broker.running:
            return
        if self.network is not None:
            self.network.open_broker(broker_id, broker.addresses)
        self._register(broker)

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in order: others lead its partitions first, then its connections are closed."""
        broker = self._broker(broker_id)
        if broker.running:
            self.commit([self._registration_change(broker_id, in_controlled_shutdown=1)])
            self._leave(broker, reset=False)

    def kill_broker(self, broker_id: int) -> None:
        """End a broker as a crash does: its connections are reset, and then others lead its partitions."""
        broker = self._broker(broker_id)
        if broker.running:
            self._leave(broker, reset=True)

    def move_leader(self, topic: str, partition: int, broker_id: int) -> None:
        """Make a broker the leader of a partition. It becomes a replica first if it is none.

        Raises ``OptionError`` if there is no such partition, or if the broker does not run.
        """
        found = self.image.topics.get(topic)
        state = self.image.partition(found.id, partition) if found else None
        if found is None or state is None:
            raise _wrong("partition", f"{topic}-{partition}", "there is no such partition")
        if not self._broker(broker_id).running:
            raise _wrong("broker_id", broker_id, "the broker does not run")
        if broker_id not in state.replicas:
            self.commit([replace_replicas(self, state, (broker_id, *state.replicas[1:]))])
            state = found.partitions[partition]
        if state.leader != broker_id:
            self.commit([give_leadership(state, broker_id)])

    def move_coordinator(self, key: str, broker_id: int, topic: str = CONSUMER_OFFSETS) -> None:
        """Make a broker the coordinator of a group, or of a transactional id if ``topic`` is that of transactions.

        It becomes the leader of the partition that holds the state of ``key``. The topic is created if it is missing.
        Raises ``OptionError`` if the broker does not run.
        """
        if topic not in self.image.topics:
            auto_create(self, topic)
        partitions = len(self.image.topics[topic].partitions)
        self.move_leader(topic, state_partition(key, partitions), broker_id)

    def move_controller(self, broker_id: int) -> None:
        """Let answers name another broker as the controller. Raises ``OptionError`` if it does not run."""
        if not self._broker(broker_id).running:
            raise _wrong("broker_id", broker_id, "the broker does not run")
        self.controller_id = broker_id

    def _register(self, broker: VirtualBroker) -> None:
        """Register a broker, give it its partitions, and end its fencing, as a broker that starts does."""
        broker.running = True
        protocols = {listener.name: listener.protocol for listener in self.config.listeners}
        endpoints = tuple(
            BrokerEndpoint(name=name, host=host, port=port, security_protocol=_protocol_number(protocols[name]))
            for name, (host, port) in broker.addresses.items()
        )
        registration = RegisterBrokerRecord(
            broker_id=broker.id,
            broker_epoch=self.image.offset,
            incarnation_id=self.new_id(),
            end_points=endpoints,
            rack=self.config.rack(broker.id - self.broker_ids[0]),
            log_dirs=(broker.log_dir,),
        )
        self.commit([registration])
        unfenced = self._registration_change(broker.id, fenced=_UNFENCE)
        self.commit([unfenced, *broker_here(self, broker.id)])
        if not self.brokers[self.controller_id].running:
            self.controller_id = broker.id

    def _leave(self, broker: VirtualBroker, *, reset: bool) -> None:
        broker.running = False
        if self.network is not None:
            self.network.close_broker(broker.id, reset=reset)
        for session in tuple(broker.sessions.values()):
            session.end()
        self.commit([self._registration_change(broker.id, fenced=_FENCE), *broker_gone(self, broker.id)])
        broker.parts.clear()
        alive = self.image.alive()
        if alive and self.controller_id == broker.id:
            self.controller_id = alive[0].id

    def _registration_change(self, broker_id: int, **changes: Any) -> BrokerRegistrationChangeRecord:
        epoch = self.image.brokers[broker_id].epoch
        return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **changes)

    def open_session(self, broker_id: int, **facts: Any) -> Session:
        """Return a new connection to a broker. ``facts`` are attributes of ``Session``."""
        self._sessions += 1
        session = Session(id=self._sessions, broker_id=broker_id, **facts)
        sessions = self.brokers[broker_id].sessions
        sessions[session.id] = session
        session.on_close(partial(sessions.__delitem__, session.id))
        return session

    def _broker(self, broker_id: int) -> VirtualBroker:
        if broker_id not in self.brokers:
            raise _wrong("broker_id", broker_id, f"the brokers are {', '.join(map(str, self.brokers))}")
        return self.brokers[broker_id]


_PROBLEMS: Final = 1000
_FENCE: Final = 1
_UNFENCE: Final = -1


def _wrong(option: str, value: object, reason: str) -> OptionError:
    return OptionError(source="Cluster", option=option, value=value, reason=reason)


def _protocol_number(name: str) -> int:
    return SECURITY_PROTOCOLS.index(name)


def _base64(value: UUID) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(value.bytes).decode().rstrip("=")
