"""The plugin that stores topology descriptions (KIP-1331), and its back-off.

A description explains a topology to people, node by node. The coordinator does not read it: members send it on request,
a plugin stores it, and StreamsGroupDescribe returns it. ``DescriptionRequests`` combines the plugin with its back-off:
Kafka's ``StreamsGroupTopologyDescriptionManager``. A coordinator takes it as ``plugin``.
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
    """Whether the same description may be sent again."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"


class PluginError(Exception):
    """An error of a plugin. The response to the member contains the message."""

    def __init__(self, message: str, failure: DescriptionFailure = DescriptionFailure.TRANSIENT) -> None:
        super().__init__(message)
        self.message = message
        self.failure = failure


class TopologyDescriptionPlugin(Protocol):
    """Stores descriptions by group and topology epoch. Each method may raise ``PluginError``."""

    def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        """Store a description."""

    def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
        """Return a description, or None if it does not exist."""

    def delete_topology(self, group_id: str) -> None:
        """Delete all descriptions of a group."""


class InMemoryDescriptions:
    """A plugin that stores descriptions in memory."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], TopologyDescription] = {}

    def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        """Store a description."""
        self.stored[group_id, epoch] = description

    def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
        """Return a description, or None if it does not exist."""
        return self.stored.get((group_id, epoch))

    def delete_topology(self, group_id: str) -> None:
        """Delete all descriptions of a group."""
        for key in [key for key in self.stored if key[0] == group_id]:
            del self.stored[key]


@frozen
class _Wait:
    """The time during which a group is not asked for the description of a topology epoch again."""

    epoch: int
    attempts: int
    until: int


@define(eq=False)
class DescriptionRequests:
    """A plugin with its back-off: 30 s, doubled up to an hour, with a jitter of up to 20 % in either direction.

    ``random`` returns numbers from 0 to 1. The back-off lasts for the coordinator's lifetime, across all its
    partitions.
    """

    plugin: TopologyDescriptionPlugin
    random: Callable[[], float]
    _waits: dict[str, _Wait] = field(factory=dict, init=False)

    def may_ask(self, group_id: str, epoch: int, now: int) -> bool:
        """Return whether a description may be requested now. If so, the next request must wait for the back-off."""
        if self.is_waiting(group_id, epoch, now):
            return False
        self._extend(group_id, epoch, now)
        return True

    def is_waiting(self, group_id: str, epoch: int, now: int) -> bool:
        """Return whether the plugin must not be called now for a topology epoch of a group."""
        wait = self._waits.get(group_id)
        return wait is not None and wait.epoch == epoch and now < wait.until

    def wait_longer(self, group_id: str, epoch: int, now: int) -> None:
        """Increase the back-off after a failure, unless a later epoch has one."""
        wait = self._waits.get(group_id)
        if wait is None or wait.epoch <= epoch:
            self._extend(group_id, epoch, now)

    def clear(self, group_id: str, epoch: int | None = None) -> None:
        """Clear the back-off of that epoch, or of any epoch."""
        wait = self._waits.get(group_id)
        if wait is not None and epoch in (None, wait.epoch):
            del self._waits[group_id]

    def _extend(self, group_id: str, epoch: int, now: int) -> None:
        wait = self._waits.get(group_id)
        attempts = wait.attempts + 1 if wait is not None and wait.epoch == epoch else 0
        jitter = 1 - _JITTER + 2 * _JITTER * self.random()
        delay = min(_FIRST_DELAY_MS * _MULTIPLIER**attempts, _LAST_DELAY_MS)
        self._waits[group_id] = _Wait(epoch, attempts, now + min(int(jitter * delay), _LAST_DELAY_MS))
