"""The hooks of protocols for the groups of a partition, apart from requests and timers.

A partition is loaded or unloaded, or the topics of the cluster change. ``GroupProtocol`` defines the hooks of each
protocol for these events. This module defines their order: the order of the protocols, and Kafka's order of the groups.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_msgs.groups.group_protocol import GroupHooks, GroupProtocol, TopicChange
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.shard_runtime import ShardRuntime
from kafka_msgs.groups.timeline_map import iter_kafka_order
from kafka_msgs.groups.topics_image import EMPTY_IMAGE

__all__ = ["on_partition_loaded", "on_partition_unloaded", "on_topics_changed"]


def on_partition_loaded(op: OperationContext, runtime: ShardRuntime) -> None:
    """Start to serve the groups of a partition that was loaded."""
    change = TopicChange(EMPTY_IMAGE, op.image, (), (), ())
    for protocol in runtime.protocols:
        for hook in protocol.on_image_changed:
            hook(op, change)
    _each_group(op, runtime, lambda protocol: protocol.on_loaded)
    for protocol in runtime.protocols:
        for begin in protocol.on_started:
            begin(op)


def on_partition_unloaded(op: OperationContext, runtime: ShardRuntime) -> None:
    """Release the groups of a partition when the shard resigns from it."""
    _each_group(op, runtime, lambda protocol: protocol.on_unloaded)


def _each_group(op: OperationContext, runtime: ShardRuntime, hooks: Callable[[GroupProtocol], GroupHooks]) -> None:
    for group_id in iter_kafka_order(op.state.groups):
        group = op.state.groups[group_id]
        for hook in runtime.hooks_of(hooks, group.kind):
            hook(op, group)


def on_topics_changed(op: OperationContext, runtime: ShardRuntime, change: TopicChange) -> None:
    """Notify the groups that subscribe to topics of a change."""
    for protocol in runtime.protocols:
        for hook in protocol.on_image_changed:
            hook(op, change)
    names = (*change.created, *change.changed, *change.deleted)
    for group_id in {each: None for name in names for each in op.state.subscribers.get(name, ())}:
        group = op.state.groups.get(group_id)
        if group is not None:
            for tell in runtime.hooks_of(lambda protocol: protocol.on_topics_changed, group.kind):
                tell(op, group)
