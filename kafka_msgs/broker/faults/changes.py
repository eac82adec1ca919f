"""Changes of the cluster that a fault makes: brokers go and come back, leaders move, the clock jumps, the disk is full.

Each is a value. It happens at a request (``Fault``) or at a moment (``At``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from kafka_msgs.broker.call import Call
from kafka_msgs.broker.controller.internal_topics import TRANSACTION_STATE
from kafka_msgs.option_checks import whole

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = [
    "Change",
    "FillDisk",
    "Heal",
    "JumpClock",
    "KillBroker",
    "MoveController",
    "MoveGroupCoordinator",
    "MoveLeader",
    "MoveTransactionCoordinator",
    "RestartBroker",
    "StartBroker",
    "StopBroker",
]


class OnCluster(ABC):
    """A change that may happen at a request, before its handler."""

    def begin(self, call: Call[Any]) -> bool:
        """Make the change. Return True if the request is lost by it: its connection is gone."""
        call.cluster.faults.make(self)
        return call.session.closed

    @abstractmethod
    def happen(self, cluster: Cluster) -> None:
        """Make the change. Raises ``OptionError`` for a broker or a partition that is not there, or does not run."""


@frozen
class MoveLeader(OnCluster):
    """Make a broker the leader of a partition. It becomes a replica first if it is none."""

    topic: str
    partition: int
    broker: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.move_leader(self.topic, self.partition, self.broker)


@frozen
class MoveGroupCoordinator(OnCluster):
    """Make a broker the coordinator of a group, and of all groups in the same partition of ``__consumer_offsets``."""

    group_id: str
    broker: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.move_coordinator(self.group_id, self.broker)


@frozen
class MoveTransactionCoordinator(OnCluster):
    """Make a broker the coordinator of a transactional id, and of all in the same partition of its topic."""

    transactional_id: str
    broker: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.move_coordinator(self.transactional_id, self.broker, TRANSACTION_STATE)


@frozen
class MoveController(OnCluster):
    """Let answers name another broker as the controller."""

    broker: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.move_controller(self.broker)


@frozen
class StopBroker(OnCluster):
    """Stop a broker in order: others lead its partitions first. One that does not run stays as it is."""

    broker: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.stop_broker(self.broker)


@frozen
class KillBroker(OnCluster):
    """End a broker as a crash does: its connections are reset. One that does not run stays as it is."""

    broker: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.kill_broker(self.broker)


@frozen
class StartBroker(OnCluster):
    """Start a broker that was stopped or killed. One that runs stays as it is."""

    broker: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.start_broker(self.broker)


@frozen
class RestartBroker(OnCluster):
    """Kill a broker, and start it again after ``down_ms`` milliseconds."""

    broker: int
    down_ms: int = field(default=0, validator=whole(0))

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.kill_broker(self.broker)
        cluster.after(self.down_ms, lambda: cluster.start_broker(self.broker))


@frozen
class JumpClock(OnCluster):
    """Let the clock of the brokers jump by ``ms`` milliseconds, back if it is negative. See ``Cluster.jump_clock``."""

    ms: int

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.jump_clock(self.ms)


@frozen
class FillDisk(OnCluster):
    """Refuse everything that is to be written with KAFKA_STORAGE_ERROR, or accept it again if ``full`` is False."""

    full: bool = True

    def happen(self, cluster: Cluster) -> None:
        """Make the change."""
        cluster.faults.disk_full = self.full


@frozen
class Heal(OnCluster):
    """End all faults on requests, make room on the disk, and start all brokers that do not run."""

    def happen(self, cluster: Cluster) -> None:
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
    | Heal
)
"""What a fault does to the cluster."""
