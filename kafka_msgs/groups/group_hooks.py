"""The definition of a group coordinator for the runtime, from the tables of its protocols.

``GroupProtocol`` defines the appliers of a protocol, and its hooks for loaded and unloaded partitions and for changed
topics. This module defines their order: the order of the protocols, and Kafka's order of the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import frozen

from kafka_msgs.errors import InternalError
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.group_protocol import GroupHooks, GroupProtocol, TopicChange
from kafka_msgs.groups.operation import OFFSETS_TOPIC, OperationContext
from kafka_msgs.groups.runtime.shard_runtime import CoordinatorDefinition
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.runtime.uncommitted_changes import UncommittedChanges
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.groups.shard_state import ShardState
from kafka_msgs.groups.topics_image import EMPTY_IMAGE

__all__ = ["ProtocolHooks"]


@frozen
class ProtocolHooks:
    """The hooks of all protocols of a coordinator."""

    protocols: tuple[GroupProtocol, ...]

    def definition(
        self, services: GroupServices, new_changes: Callable[[], UncommittedChanges]
    ) -> CoordinatorDefinition[ShardState, OperationContext]:
        """Return the definition of the coordinator for the runtime."""
        makers = [each.new_simple_group for each in self.protocols if each.new_simple_group is not None]
        return CoordinatorDefinition(
            topic=OFFSETS_TOPIC,
            new_state=partial(ShardState, makers[0] if makers else _no_group),
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


def _no_group(group_id: str) -> Group:
    raise InternalError(reason="no protocol makes groups for offsets alone")
