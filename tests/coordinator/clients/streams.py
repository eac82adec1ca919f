"""An instance of a Kafka Streams application with the protocol of KIP-1071."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.coordinator.clients.base import ignore
from tests.coordinator.clients.epochs import EpochClient
from tests.coordinator.clients.topologies import DESCRIPTION, other_topology
from tests.coordinator.script_state import Body, World

__all__ = ["StreamsClient"]

Tasks = dict[str, set[int]]

_ROLES = ("activeTasks", "standbyTasks", "warmupTasks")


class StreamsClient(EpochClient):
    """Joins with a topology, reconciles its tasks in phases, leaves or crashes, and returns."""

    def __init__(
        self, world: World, group: str, name: str, topology: list[Body], *, instance: str | None = None
    ) -> None:
        super().__init__(world, group, name, instance=instance)
        self.process = self.random.choice((f"process-{name}", "process-1", "process-2"))
        self.subtopologies = topology
        self.topology: Body = {"epoch": 0, "subtopologies": topology}
        self.endpoint = self.random.choice((None, None, {"host": f"host-{name}", "port": 1}))
        self.tags = self.random.choice(([], [{"key": "zone", "value": self.random.choice("ab")}]))
        self.endpoints_epoch = -1
        self.describe_topology = False

    def actions(self) -> Mapping[Callable[[], None], int]:
        """Return the possible next actions, with weights."""
        if self.epoch is None:
            return {self.join: 6, ignore: 4}
        return {
            self.heartbeat: 55,
            self.reconcile: 45,
            self.report_offsets: 5,
            self.change: 3,
            self.upload_description: 20 if self.describe_topology else 1,
            self.commit: 4,
            self.leave: 3,
            self.leave_for_a_while: 3 if self.instance else 0,
            self.fall_silent: 2,
            self.join: 1,
            self.join_with_another_topology: 1,
            self.shut_down: 1 if self.random.random() < 0.2 else 0,
        }

    def send(self, epoch: int, **fields: Any) -> None:
        """Send a heartbeat with some fields."""
        body = {
            "groupId": self.group,
            "memberId": self.member,
            "memberEpoch": epoch,
            "instanceId": self.instance,
            "endpointInformationEpoch": self.random.choice((self.endpoints_epoch, self.endpoints_epoch, -1)),
        }
        self.request("StreamsGroupHeartbeat", body | fields, self.answered)

    def join(self) -> None:
        """Join with the full state."""
        self._join(self.topology)

    def _join(self, topology: Body) -> None:
        self.owned = {role: {} for role in _ROLES}
        self.target = {role: {} for role in _ROLES}
        state = {
            "rebalanceTimeoutMs": self.random.choice((5000, 60_000)),
            "topology": topology,
            "processId": self.process,
            "userEndpoint": self.endpoint,
            "clientTags": self.tags,
        }
        self.send(0, **state, **{role: [] for role in _ROLES})

    def join_with_another_topology(self) -> None:
        """Join with the topology of an upgraded application."""
        self._join(other_topology(self.topology, self.random))

    def reconcile(self) -> None:
        """Revoke tasks outside the target assignment. If there are none, own the target assignment."""
        kept = {role: _both(self.owned[role], self.target[role]) for role in _ROLES}
        self.owned = dict(self.target) if kept == self.owned else kept
        self.send(self.epoch or 0, **{role: _task_ids(self.owned[role]) for role in _ROLES})

    def report_offsets(self) -> None:
        """Report the offsets of stores."""
        tasks = [
            (name, number) for owned in self.owned.values() for name, numbers in owned.items() for number in numbers
        ]
        offsets = [
            {"subtopologyId": name, "partition": number, "offset": self.random.randint(0, 1000)}
            for name, number in sorted(set(tasks))
        ]
        self.send(self.epoch or 0, taskOffsets=offsets, taskEndOffsets=self.random.choice((None, offsets)))

    def change(self) -> None:
        """Change the process, endpoint, rack, tags or timeout."""
        self.endpoint = self.random.choice((None, {"host": "moved", "port": 2}))
        changes = {
            "userEndpoint": self.endpoint,
            "rackId": self.random.choice(("r0", "r1")),
            "processId": self.process,
            "clientTags": [{"key": "zone", "value": "c"}],
            "rebalanceTimeoutMs": 7000,
        }
        name = self.random.choice(list(changes))
        self.send(self.epoch or 0, **{name: changes[name]})

    def upload_description(self) -> None:
        """Upload the description of the topology."""
        self.describe_topology = False
        if self.random.random() < 0.3:
            self.world.do("fail-plugin", kind=self.random.choice(("transient", "transient", "permanent")))
        body = {
            "groupId": self.group,
            "memberId": self.member,
            "topologyEpoch": self.random.choice((0, 0, 0, 1)),
            "topologyDescription": DESCRIPTION,
        }
        self.request("StreamsGroupTopologyDescriptionUpdate", body, ignore)

    def shut_down(self) -> None:
        """Request the shutdown of all members of the application."""
        self.send(self.epoch or 0, shutdownApplication=True)

    def answered(self, answer: Body) -> None:
        """Store the epochs and the target assignment."""
        super().answered(answer)
        if answer["errorCode"] == 0:
            self.endpoints_epoch = answer.get("endpointInformationEpoch", -1)
            self.describe_topology = answer.get("topologyDescriptionRequired", False)
            if answer["activeTasks"] is not None:
                self.target = {role: _tasks(answer[role] or []) for role in _ROLES}


def _tasks(entries: list[Body]) -> Tasks:
    return {entry["subtopologyId"]: set(entry["partitions"]) for entry in entries}


def _task_ids(tasks: Tasks) -> list[Body]:
    return [{"subtopologyId": name, "partitions": sorted(numbers)} for name, numbers in sorted(tasks.items())]


def _both(first: Tasks, second: Tasks) -> Tasks:
    common = {name: numbers & second.get(name, set()) for name, numbers in first.items()}
    return {name: numbers for name, numbers in common.items() if numbers}
