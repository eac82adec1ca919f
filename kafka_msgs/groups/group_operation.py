"""The services of a group coordinator for its operations, and the context of an operation on one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol
from uuid import UUID

from attrs import define, field

from kafka_msgs.groups.compat.quirks import Quirks
from kafka_msgs.groups.config import CoordinatorConfig, ForcedTarget, GroupConfig
from kafka_msgs.groups.metrics import Metrics
from kafka_msgs.groups.profiles import Profile
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.shard_operation import ShardAccess, ShardOperation
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, TopicsImage

__all__ = ["UNSET", "GroupOperation", "GroupServices", "NoOpSharePersister", "SharePersister"]

UNSET: Final = -1
"""The start offset of a share partition before its first fetch: ``share.auto.offset.reset`` then sets the start."""


class SharePersister(Protocol):
    """Stores the state of share partitions. Each method raises ``GroupError`` if it fails."""

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Initialize the state of a share partition, at an epoch that counts its initializations."""

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Delete the state of a share partition."""


class NoOpSharePersister:
    """A persister without storage: every call succeeds."""

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Do nothing."""

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Do nothing."""


@define(kw_only=True, eq=False)
class GroupServices:
    """The services of a coordinator that all its operations use.

    ``image`` has the topics of the cluster. ``plugin`` is the plugin for topology descriptions, or None.
    ``share_persister`` stores the state of share partitions. ``forced_targets`` has the consumer groups whose target
    assignment a test chooses, and ``group_configs`` the groups with their own configs. ``new_id`` returns the text of a
    random UUID.
    """

    config: CoordinatorConfig
    profile: Profile
    quirks: Quirks
    new_id: Callable[[], str]
    plugin: Any = None
    share_persister: SharePersister = field(factory=NoOpSharePersister)
    forced_targets: Mapping[str, ForcedTarget] = field(factory=dict)
    metrics: Metrics = field(factory=Metrics)
    image: TopicsImage = EMPTY_IMAGE
    group_configs: dict[str, GroupConfig] = field(factory=dict)
    default_group_config: GroupConfig = field(init=False)
    streams_extension: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.default_group_config = self.config.for_group({})
        name = self.profile.streams_extension
        self.streams_extension = None if name is None else import_module(name)

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the config of a group."""
        return self.group_configs.get(group_id, self.default_group_config)


class GroupOperation(ShardOperation):
    """An operation on one group, without access to the other groups of its shard.

    ``image`` has the topics of the cluster, and ``services`` the services of the coordinator.
    """

    __slots__ = ("config", "image", "profile", "quirks", "services", "topics_to_create")

    def __init__(
        self, services: GroupServices, shard: ShardAccess, producer_id: int, reply: Callable[[Future[Any]], None] | None
    ) -> None:
        super().__init__(shard, producer_id, reply)
        self.services = services
        self.image: TopicsImage = services.image
        self.config: CoordinatorConfig = services.config
        self.profile: Profile = services.profile
        self.quirks: Quirks = services.quirks
        self.topics_to_create: list[Any] = []

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the config of a group."""
        services = self.services
        return services.group_configs.get(group_id, services.default_group_config)

    def stop_timer(self, key: str) -> None:
        """Cancel the timer of a key. If the append of this operation fails, the timer is restored."""
        if self.quirks.failed_append_stops_timers:
            self.timers.cancel(key)
        else:
            super().stop_timer(key)

    def count_metric(self, name: str, number: int = 1) -> None:
        """Count events for the metrics when the records of this operation are committed."""
        counts = self.services.metrics.counts
        self.on_committed(lambda error: counts.update({name: number}) if error is None else None)

    def create_topics(self, topics: Iterable[Any]) -> None:
        """Request topics from the broker (``CreatableTopic`` of CreateTopics), as part of the reply."""
        self.topics_to_create.extend(topics)

    def record_plugin_call(self, call: str) -> None:
        """Add a call of the plugin for topology descriptions to the output."""
        self._shard.output.plugin.append(call)
