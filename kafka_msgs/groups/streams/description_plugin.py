"""The plugin that keeps topology descriptions (KIP-1331), and when it is used.

A description tells what a topology does, node by node, for people. The coordinator does not read it: members send it
when they are asked to, a plugin keeps it, and StreamsGroupDescribe shows it. ``DescriptionRequests`` is the plugin
with its back-off: Kafka's ``StreamsGroupTopologyDescriptionManager``. A coordinator gets it as ``description_plugin``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from attrs import define, field, frozen

from kafka_msgs.messages.streams_group_topology_description_update_request import TopologyDescription

__all__ = [
    "DescriptionFailure",
    "DescriptionRequests",
    "InMemoryDescriptions",
    "PluginError",
    "TopologyDescriptionPlugin",
]

_FIRST_DELAY_MS: Final = 30_000
_LAST_DELAY_MS: Final = 3_600_000
_MULTIPLIER: Final = 2
_JITTER: Final = 0.2


class DescriptionFailure(Enum):
    """Whether it makes sense to send the same description again."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"


class PluginError(Exception):
    """What a plugin raises. The message is answered to the member."""

    def __init__(self, message: str, failure: DescriptionFailure = DescriptionFailure.TRANSIENT) -> None:
        super().__init__(message)
        self.message = message
        self.failure = failure


class TopologyDescriptionPlugin(Protocol):
    """Keeps descriptions by group and topology epoch. Each method may raise ``PluginError``."""

    def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        """Keep a description."""

    def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
        """Return a description, or None if there is none."""

    def delete_topology(self, group_id: str) -> None:
        """Forget all descriptions of a group."""


class InMemoryDescriptions:
    """A plugin that keeps descriptions in memory."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], TopologyDescription] = {}

    def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        """Keep a description."""
        self.stored[group_id, epoch] = description

    def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
        """Return a description, or None if there is none."""
        return self.stored.get((group_id, epoch))

    def delete_topology(self, group_id: str) -> None:
        """Forget all descriptions of a group."""
        for key in [key for key in self.stored if key[0] == group_id]:
            del self.stored[key]


@frozen
class _Wait:
    """How long a group is not asked again for the description of a topology epoch."""

    epoch: int
    attempts: int
    until: int


@define(eq=False)
class DescriptionRequests:
    """A plugin with its back-off: 30 s, doubled up to an hour, each time more or less by up to a fifth.

    ``random`` gives numbers from 0 to 1. The waits are kept while the coordinator lives, for all its partitions.
    """

    plugin: TopologyDescriptionPlugin
    random: Callable[[], float]
    _waits: dict[str, _Wait] = field(factory=dict, init=False)

    def may_ask(self, group_id: str, epoch: int, now: int) -> bool:
        """Tell whether the description may be asked for now. If so, it is not asked for again for a while."""
        if self.is_waiting(group_id, epoch, now):
            return False
        self._extend(group_id, epoch, now)
        return True

    def is_waiting(self, group_id: str, epoch: int, now: int) -> bool:
        """Tell whether the plugin is not to be used now for a topology epoch of a group."""
        wait = self._waits.get(group_id)
        return wait is not None and wait.epoch == epoch and now < wait.until

    def wait_longer(self, group_id: str, epoch: int, now: int) -> None:
        """Wait longer after a failure, unless a later epoch waits."""
        wait = self._waits.get(group_id)
        if wait is None or wait.epoch <= epoch:
            self._extend(group_id, epoch, now)

    def clear(self, group_id: str, epoch: int | None = None) -> None:
        """Wait no longer: for that epoch, or for any."""
        wait = self._waits.get(group_id)
        if wait is not None and epoch in (None, wait.epoch):
            del self._waits[group_id]

    def _extend(self, group_id: str, epoch: int, now: int) -> None:
        wait = self._waits.get(group_id)
        attempts = wait.attempts + 1 if wait is not None and wait.epoch == epoch else 0
        jitter = 1 - _JITTER + 2 * _JITTER * self.random()
        delay = min(_FIRST_DELAY_MS * _MULTIPLIER**attempts, _LAST_DELAY_MS)
        self._waits[group_id] = _Wait(epoch, attempts, now + min(int(jitter * delay), _LAST_DELAY_MS))
