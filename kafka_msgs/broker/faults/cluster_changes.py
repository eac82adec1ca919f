"""Cluster changes that a fault makes: brokers stop and start, leaders move, the clock jumps, the disk fills up.

Each change is a value. It happens at a request (``Fault``) or at a time (``At``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from attrs import field, frozen

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS, TRANSACTION_STATE
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

    def move_leader(self, topic: str, partition: int, broker_id: int) -> None: ...

    def move_coordinator(self, key: str, broker_id: int, topic: str = CONSUMER_OFFSETS) -> None: ...

    def move_controller(self, broker_id: int) -> None: ...

    def jump_clock(self, ms: int) -> None: ...

    def set_follower_offsets(
        self, topic: str, partition: int, broker_id: int, start: int | None, end: int | None
    ) -> None: ...


class ClusterChange(ABC):
    """A change that happens before the handler of a request, or at a time."""

    @abstractmethod
    def apply(self, cluster: ClusterControl) -> None:
        """Make the change.

        Raises ``OptionError`` if the broker or the partition does not exist, or if the broker does not run.
        """


@frozen
class MoveLeader(ClusterChange):
    """Make a broker the leader of a partition, adding it to the replicas if necessary."""

    topic: str
    partition: int
    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.move_leader(self.topic, self.partition, self.broker)


@frozen
class MoveGroupCoordinator(ClusterChange):
    """Make a broker the coordinator of a group, and of all groups in the same partition of ``__consumer_offsets``."""

    group_id: str
    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.move_coordinator(self.group_id, self.broker)


@frozen
class MoveTransactionCoordinator(ClusterChange):
    """Make a broker the coordinator of a transactional id, and of all others in the same state partition."""

    transactional_id: str
    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.move_coordinator(self.transactional_id, self.broker, TRANSACTION_STATE)


@frozen
class MoveController(ClusterChange):
    """Make another broker the controller in responses."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.move_controller(self.broker)


@frozen
class StopBroker(ClusterChange):
    """Shut a broker down cleanly: its leaderships move first. A stopped broker is unaffected."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.stop_broker(self.broker)


@frozen
class KillBroker(ClusterChange):
    """End a broker like a crash: its connections are reset. A stopped broker is unaffected."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.kill_broker(self.broker)


@frozen
class StartBroker(ClusterChange):
    """Start a broker that was stopped or killed. A running broker is unaffected."""

    broker: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.start_broker(self.broker)


@frozen
class RestartBroker(ClusterChange):
    """Kill a broker, and start it again after ``down_ms`` milliseconds."""

    broker: int
    down_ms: int = field(default=0, validator=int_range(0))

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.kill_broker(self.broker)
        cluster.call_later(self.down_ms, lambda: cluster.start_broker(self.broker))


@frozen
class JumpClock(ClusterChange):
    """Make the brokers' clock jump by ``ms`` milliseconds, back if negative. See ``Cluster.jump_clock``."""

    ms: int

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.jump_clock(self.ms)


@frozen
class FillDisk(ClusterChange):
    """Refuse all writes with KAFKA_STORAGE_ERROR, or accept them again if ``full`` is False."""

    full: bool = True

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.log_manager.disk_full = self.full


@frozen
class SetFollowerOffsets(ClusterChange):
    """Make a follower lag or lose old records: consumers that fetch from it only see records from ``start`` to ``end``.

    None is the offset of the leader, so both None end the fault. The records themselves do not change.
    """

    topic: str
    partition: int
    broker: int
    start: int | None = None
    end: int | None = None

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.set_follower_offsets(self.topic, self.partition, self.broker, self.start, self.end)


@frozen
class Heal(ClusterChange):
    """End all request faults, free the disk, let followers have all records, and start all stopped brokers."""

    def apply(self, cluster: ClusterControl) -> None:
        """Make the change."""
        cluster.faults.end_faults()
        for broker_id in cluster.brokers:
            cluster.start_broker(broker_id)


Change = (
    MoveLeader
    | MoveGroupCoordinator
    | MoveTransactionCoordinator
    | MoveController
    | StopBroker
    | KillBroker
    | StartBroker
    | RestartBroker
    | JumpClock
    | FillDisk
    | SetFollowerOffsets
    | Heal
)
"""A fault's change of the cluster."""
