"""The group coordinator of a broker: it routes requests to shards, collects their responses, and follows the topics.

``GroupCoordinator`` has no socket, clock or thread. Its caller passes requests, the current time, and changes of its
partitions, and receives a ``CoordinatorOutput`` from each call. The ``append`` callback writes records. This module
corresponds to Kafka's ``GroupCoordinatorService``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import random
from typing import Any, Final
from uuid import uuid4

from attrs import frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import InternalError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups import classic_protocol as classic
from kafka_msgs.groups import group_admin
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.compat.quirks import Quirks
from kafka_msgs.groups.config import CoordinatorConfig, ForcedTarget, GroupConfig
from kafka_msgs.groups.consumer import protocol as consumer
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.group_operation import GroupServices, NoOpSharePersister, SharePersister
from kafka_msgs.groups.group_protocol import Api, GroupHooks, GroupProtocol, SingleGroupApi, TopicChange
from kafka_msgs.groups.offsets import protocol as offsets
from kafka_msgs.groups.operation import OFFSETS_TOPIC, OperationContext, ShardState
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.request_routing import ReplyCallback, handle_multi, handle_single
from kafka_msgs.groups.runtime.coordinator_runtime import CoordinatorRuntime
from kafka_msgs.groups.runtime.output import CoordinatorOutput, MarkerAppend, ProducerIdAndEpoch, RecordAppend, Reply
from kafka_msgs.groups.runtime.shard_runtime import CoordinatorDefinition
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.runtime.uncommitted_changes import UncommittedChanges
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.groups.share import protocol as share
from kafka_msgs.groups.streams import protocol as streams
from kafka_msgs.groups.streams.description_plugin import DescriptionRequests, TopologyDescriptionPlugin
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, TopicsImage
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.message import Message, Request

__all__ = ["GroupCoordinator"]

PROTOCOLS: Final[tuple[GroupProtocol, ...]] = (
    offsets.PROTOCOL,
    group_admin.PROTOCOL,
    classic.PROTOCOL,
    consumer.PROTOCOL,
    share.PROTOCOL,
    streams.PROTOCOL,
)
"""The protocols in the order in which their hooks run."""


@frozen
class ProtocolHooks:
    """The hooks of all protocols of a coordinator."""

    protocols: tuple[GroupProtocol, ...]

    def definition(
        self, services: GroupServices, new_changes: Callable[[], UncommittedChanges]
    ) -> CoordinatorDefinition[ShardState, OperationContext]:
        """Return the definition of the coordinator for the runtime."""
        return CoordinatorDefinition(
            topic=OFFSETS_TOPIC,
            new_state=partial(ShardState, ClassicGroup),
            new_operation=partial(OperationContext, services),
            appliers={cls: applier for each in self.protocols for cls, applier in each.appliers.items()},
            write_timeout_ms=services.config.offsets_commit_timeout_ms,
            apply_end_transaction=self.apply_end_transaction,
            on_loaded=self.on_partition_loaded,
            on_unloaded=self.on_partition_unloaded,
            timers_outlive_leadership=services.quirks.timers_outlive_leadership,
            new_changes=new_changes,
        )

    def apply_end_transaction(self, state: ShardState, changes: Changes, producer_id: int, committed: bool) -> None:
        """Apply the end of a transaction to the state."""
        for protocol in self.protocols:
            if protocol.apply_end_transaction is not None:
                protocol.apply_end_transaction(state, changes, producer_id, committed)

    def on_partition_loaded(self, op: OperationContext) -> None:
        """Start to serve the groups of a partition that was loaded."""
        self._image_changed(op, TopicChange(EMPTY_IMAGE, op.image, (), (), ()))
        self._each_group(op, lambda protocol: protocol.on_loaded)
        for protocol in self.protocols:
            for begin in protocol.on_started:
                begin(op)

    def on_partition_unloaded(self, op: OperationContext) -> None:
        """Release the groups of a partition when the shard resigns from it."""
        self._each_group(op, lambda protocol: protocol.on_unloaded)

    def on_topics_changed(self, change: TopicChange, op: OperationContext) -> None:
        """Notify the groups that subscribe to topics of a change."""
        self._image_changed(op, change)
        names = (*change.created, *change.changed, *change.deleted)
        for group_id in {each: None for name in names for each in op.state.subscribers.get(name, ())}:
            group = op.state.groups.get(group_id)
            if group is not None:
                self._run(op, group, lambda protocol: protocol.on_topics_changed)

    def on_topics_deleted(self, change: TopicChange) -> list[Callable[[OperationContext], None]]:
        """Return the operations that follow the deletion of topics."""
        return [_bind(each, change) for protocol in self.protocols for each in protocol.on_topics_deleted]

    def on_topic_creation_failed(self, group_id: str, reason: str) -> list[Callable[[OperationContext], None]]:
        """Return the operations that notify a group that its topics could not be created."""
        hooks = (each.on_topic_creation_failed for each in self.protocols)
        return [_bind(each, group_id, reason) for each in hooks if each is not None]

    def cleanups(self) -> list[Callable[[OperationContext], None]]:
        """Return the periodic operations."""
        return [each.cleanup for each in self.protocols if each.cleanup is not None]

    def _image_changed(self, op: OperationContext, change: TopicChange) -> None:
        for protocol in self.protocols:
            for hook in protocol.on_image_changed:
                hook(op, change)

    def _each_group(self, op: OperationContext, hooks: Callable[[GroupProtocol], GroupHooks]) -> None:
        for group_id in iter_kafka_order(op.state.groups):
            self._run(op, op.state.groups[group_id], hooks)

    def _run(self, op: OperationContext, group: Group, hooks: Callable[[GroupProtocol], GroupHooks]) -> None:
        for protocol in self.protocols:
            hook = hooks(protocol).get(group.kind)
            if hook is not None:
                hook(op, group)


def _bind(hook: Callable[..., None], *arguments: object) -> Callable[[OperationContext], None]:
    return lambda op: hook(op, *arguments)


class GroupCoordinator(CoordinatorRuntime[ShardState, OperationContext]):
    """The coordinator of the groups in its partitions.

    ``append`` appends a batch or a marker to its partition, and returns the offset after it. It raises ``GroupError``
    if the append fails. The caller reports committed records with ``committed``, which ``append`` may call itself.
    ``new_id`` generates the ids of new members. ``plugin`` stores topology descriptions (KIP-1331), and ``random``
    returns numbers from 0 to 1 for its back-off. ``share_states`` stores the state of share partitions. Without it,
    requests of share groups to it always succeed. ``forced_targets`` has the consumer groups whose target assignment a
    test chooses; the mapping may change at any time. ``new_changes`` creates the uncommitted changes of a partition,
    for a comparison with Kafka's order of tables.

    Each method that takes ``now``, the time in milliseconds, returns its output.
    """

    def __init__(
        self,
        append: Callable[[RecordAppend | MarkerAppend], int],
        *,
        config: CoordinatorConfig | None = None,
        profile: Profile = SHIPPED,
        quirks: Quirks | None = None,
        new_id: Callable[[], str] = lambda: str(uuid4()),
        plugin: TopologyDescriptionPlugin | None = None,
        share_states: SharePersister | None = None,
        forced_targets: Mapping[str, ForcedTarget] | None = None,
        random: Callable[[], float] = random,
        protocols: tuple[GroupProtocol, ...] = PROTOCOLS,
        new_changes: Callable[[], UncommittedChanges] = UncommittedChanges,
    ) -> None:
        self.config = config or CoordinatorConfig()
        descriptions = None if plugin is None else DescriptionRequests(plugin, random)
        self.services = GroupServices(
            config=self.config,
            profile=profile,
            quirks=quirks or Quirks(),
            new_id=new_id,
            plugin=descriptions,
            share_persister=share_states or NoOpSharePersister(),
            forced_targets={} if forced_targets is None else forced_targets,
        )
        self.metrics = self.services.metrics
        self._hooks = ProtocolHooks(protocols)
        self._apis: Mapping[type[Message], Api] = {api.request: api for each in protocols for api in each.apis}
        super().__init__(self._hooks.definition(self.services, new_changes), append)
        if descriptions is not None:
            interval = self.config.offsets_retention_check_interval_ms
            self.run_periodically(interval, lambda: self.run_in_each(self._hooks.cleanups()))

    @property
    def requests(self) -> frozenset[type[Message]]:
        """The classes of the requests that ``handle`` supports."""
        return frozenset(self._apis)

    @property
    def image(self) -> TopicsImage:
        """The topics of the cluster."""
        return self.services.image

    def partition_for(self, group_id: str) -> int:
        """Return the partition of ``__consumer_offsets`` that stores a group."""
        return partition_for_key(group_id, self.config.offsets_topic_num_partitions)

    # Requests

    def handle(
        self, request: Request[Any], context: RequestContext, *, now: int, opaque: Any = None
    ) -> CoordinatorOutput:
        """Handle a request. The reply, which may come later, carries ``opaque``.

        Raises ``InternalError`` for a request that group coordinators do not handle.
        """
        api = self._apis.get(type(request))
        if api is None:
            raise InternalError(reason=f"{request.INFO.name} is not a request to a group coordinator")
        self._clock.now = now
        if isinstance(api, SingleGroupApi):
            handle_single(self, api, request, context, self._reply_callback(opaque))
        else:
            handle_multi(self, api, request, context, self._reply_callback(opaque))
        return self._take_output()

    def _reply_callback(self, opaque: Any) -> ReplyCallback:
        runtime = self._runtime

        def answer(response: Any, creates: Sequence[Any] = ()) -> None:
            runtime.output.answers.append(Reply(opaque=opaque, response=response, topics_to_create=tuple(creates)))

        return answer

    def end_transaction(
        self, partition: int, producer: ProducerIdAndEpoch, committed: bool, *, now: int, opaque: Any
    ) -> CoordinatorOutput:
        """End a transaction in a partition, by commit or by abort.

        The reply has ``opaque``, and the error code as its response.
        """
        answer = self._reply_callback(opaque)

        def done(value: Any, error: ApiError | None) -> None:
            answer(ErrorCode.NONE if error is None else error.error)

        return self.write_end_transaction(partition, producer, committed, done, now=now)

    # The cluster

    def set_image(self, image: TopicsImage, *, now: int, names: Iterable[str] | None = None) -> CoordinatorOutput:
        """Set the topics of the cluster. ``names`` are the topics that may have changed; None compares all topics."""
        return self.change_image(TopicChange.between(self.image, image, names), now=now)

    def change_image(self, change: TopicChange, *, now: int) -> CoordinatorOutput:
        """Apply a change of the cluster's topics, whose names are in an order of the caller's choice."""
        self._clock.now = now
        self.services.image = change.after
        for shard in self.shards.values():
            if shard.is_active:
                shard.run(lambda op: self._hooks.on_topics_changed(change, op))
        if change.deleted:
            self.run_in_each(self._hooks.on_topics_deleted(change))
        return self._take_output()

    def creation_failed(self, group_id: str, reason: str, *, now: int) -> CoordinatorOutput:
        """Record why the broker could not create requested topics. The page profile reports it to the members."""
        self._clock.now = now
        shard = self.shards.get(self.partition_for(group_id))
        if shard is not None:
            for operation in self._hooks.on_topic_creation_failed(group_id, reason):
                shard.run(operation)
        return self._take_output()

    def update_group_config(self, group_id: str, own: Mapping[str, str]) -> None:
        """Set the configs of a group, by Kafka's names. An empty mapping restores the defaults.

        Raises ``OptionError`` for an unknown name and for a value that cannot be parsed.
        """
        if own:
            self.services.group_configs[group_id] = self.config.for_group(own)
        else:
            self.services.group_configs.pop(group_id, None)

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the config of a group."""
        return self.services.group_config(group_id)
