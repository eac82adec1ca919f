"""Cluster changes that a fault makes: brokers stop and start, leaders move, the clock jumps, the disk fills up.

Each change is a value. It happens at a request (``Fault``) or at a time (``At``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from attrs import field, frozen

from kafka_msgs.broker.broker_interface import BrokerInterface, FollowerView
from kafka_msgs.broker.client_session import VirtualBroker
from kafka_msgs.broker.controller.elections import elect_leader, replace_replicas
from kafka_msgs.broker.controller.image import PartitionRegistration
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS, TRANSACTION_STATE
from kafka_msgs.broker.coordinators.leadership import auto_create_topic
from kafka_msgs.errors import OptionError
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.validators import int_range

__all__ = [
    "Change",
    "ClusterControl",
    "FillDisk",
    "Heal",
    "JumpClock",
    "KillBroker",
    "MoveController",
    "MoveGroupCoordinator",
    "MoveLeader",
    "MoveTransactionCoordinator",
    "RestartBroker",
    "SetFollowerOffsets",
    "StartBroker",
    "StopBroker",
    "move_coordinator",
]


class ActiveFaults(Protocol):
    """The active faults of a cluster."""

    def end_faults(self) -> None: ...


class ClusterControl(BrokerInterface, Protocol):
    """The interface of a cluster for changes of it. ``Cluster`` documents it."""

    @property
    def faults(self) -> ActiveFaults: ...

    def start_broker(self, broker_id: int) -> None: ...

    def stop_broker(self, broker_id: int) -> None: ...

    def broker(self, broker_id: int) -> VirtualBroker: ...

    def jump_clock(self, ms: int) -> None: ...


class Change(ABC):
    """A change that happens before the handler of a request, or at a time."""

    @abstractmethod
    def apply(self, cluster: ClusterControl) -> None:
        """Make the change.

        Raises ``OptionError`` if the broker or the partition does not exist, or if the broker does not run.
        """


@frozen
class MoveLeader(Change):
    """Make a broker the leader of a partition, adding it to the replicas if necessary."""

    topic: str
    partition: int
    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        state = _partition(cluster, self.topic, self.partition)
        _require_running(cluster, self.broker)
        if self.broker not in state.replicas:
            cluster.commit([replace_replicas(cluster.image, state, (self.broker, *state.replicas[1:]))])
            state = _partition(cluster, self.topic, self.partition)
        if state.leader != self.broker:
            cluster.commit([elect_leader(state, self.broker)])


@frozen
class MoveGroupCoordinator(Change):
    """Make a broker the coordinator of a group, and of all groups in the same partition of ``__consumer_offsets``."""

    group_id: str
    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        move_coordinator(cluster, CONSUMER_OFFSETS, self.group_id, self.broker)


@frozen
class MoveTransactionCoordinator(Change):
    """Make a broker the coordinator of a transactional id, and of all others in the same state partition."""

    transactional_id: str
    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        move_coordinator(cluster, TRANSACTION_STATE, self.transactional_id, self.broker)


@frozen
class MoveController(Change):
    """Make another broker the controller in responses."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        _require_running(cluster, self.broker)
        cluster.controller_id = self.broker


@frozen
class StopBroker(Change):
    """Shut a broker down cleanly: its leaderships move first. A stopped broker is unaffected."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        cluster.stop_broker(self.broker)


@frozen
class KillBroker(Change):
    """End a broker like a crash: its connections are reset. A stopped broker is unaffected."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        cluster.kill_broker(self.broker)


@frozen
class StartBroker(Change):
    """Start a broker that was stopped or killed. A running broker is unaffected."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        cluster.start_broker(self.broker)


@frozen
class RestartBroker(Change):
    """Kill a broker, and start it again after ``down_ms`` milliseconds."""

    broker: int
    down_ms: int = field(default=0, validator=int_range(0))

    def apply(self, cluster: ClusterControl) -> None:
        cluster.kill_broker(self.broker)
        cluster.call_later(self.down_ms, lambda: cluster.start_broker(self.broker))


@frozen
class JumpClock(Change):
    """Make the brokers' clock jump by ``ms`` milliseconds, back if negative. See ``Cluster.jump_clock``."""

    ms: int

    def apply(self, cluster: ClusterControl) -> None:
        cluster.jump_clock(self.ms)


@frozen
class FillDisk(Change):
    """Refuse all writes with KAFKA_STORAGE_ERROR, or accept them again if ``full`` is False."""

    full: bool = True

    def apply(self, cluster: ClusterControl) -> None:
        cluster.log_manager.disk_full = self.full


@frozen
class SetFollowerOffsets(Change):
    """Make a follower lag or lose old records: consumers that fetch from it only see records from ``start`` to ``end``.

    None is the offset of the leader, so both None end the fault. The records themselves do not change.
    """

    topic: str
    partition: int
    broker: int
    start: int | None = None
    end: int | None = None

    def apply(self, cluster: ClusterControl) -> None:
        state = _partition(cluster, self.topic, self.partition)
        if cluster.broker(self.broker).id not in state.replicas:
            raise _wrong("broker_id", self.broker, f"the replicas are {', '.join(map(str, state.replicas))}")
        cluster.follower_views[self.broker, state.key] = FollowerView(self.start, self.end)


@frozen
class Heal(Change):
    """End all request faults, free the disk, let followers have all records, and start all stopped brokers."""

    def apply(self, cluster: ClusterControl) -> None:
        cluster.faults.end_faults()
        for broker_id in cluster.brokers:
            cluster.start_broker(broker_id)


def _partition(cluster: ClusterControl, topic: str, partition: int) -> PartitionRegistration:
    found = cluster.image.topics.get(topic)
    state = cluster.image.partition(found.id, partition) if found else None
    if state is None:
        raise _wrong("partition", f"{topic}-{partition}", "there is no such partition")
    return state


def _require_running(cluster: ClusterControl, broker_id: int) -> None:
    if not cluster.broker(broker_id).running:
        raise _wrong("broker_id", broker_id, "the broker does not run")


def move_coordinator(cluster: ClusterControl, topic: str, key: str, broker_id: int) -> None:
    """Make a broker the leader of the partition with the state of ``key``. The topic is created if it is missing."""
    if topic not in cluster.image.topics:
        auto_create_topic(cluster, topic)
    partition = partition_for_key(key, len(cluster.image.topics[topic].partitions))
    MoveLeader(topic, partition, broker_id).apply(cluster)


def _wrong(option: str, value: object, reason: str) -> OptionError:
    return OptionError(source="Cluster", option=option, value=value, reason=reason)
