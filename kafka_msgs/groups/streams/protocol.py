"""The streams group protocol for the coordinator: its apis, appliers and hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka_msgs.groups.group_protocol import GroupProtocol, SingleGroupApi, TopicChange
from kafka_msgs.groups.modern_records import apply_group, apply_target_metadata, for_group
from kafka_msgs.groups.operation import OperationContext, ShardState, subscribe
from kafka_msgs.groups.runtime.undo_log import Applier, Changes
from kafka_msgs.groups.streams.describe import DESCRIBE
from kafka_msgs.groups.streams.description_cleanup import clean_up
from kafka_msgs.groups.streams.extension import streams_extension
from kafka_msgs.groups.streams.fencing import loaded
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.heartbeat import heartbeat
from kafka_msgs.groups.streams.heartbeat_response import creation_failed
from kafka_msgs.groups.streams.records import RECORDS
from kafka_msgs.groups.streams.tasks import TasksTuple, task_set
from kafka_msgs.groups.streams.topology import StreamsTopology
from kafka_msgs.groups.streams.topology_descriptions import UPDATE
from kafka_msgs.groups.streams.validation import check
from kafka_msgs.message import Message
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_topology_key import StreamsGroupTopologyKey

__all__ = ["APPLIERS", "PROTOCOL"]


def _metadata(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None and group.topology is not None:
        subscribe(state, changes, group.group_id, group.topology.required_topics, ())
    apply_group(state, changes, group, key, value)
    if value is None:
        return
    changes.assign(group, "validated_epoch", value.validated_topology_epoch)
    changes.assign(group, "stored_description", value.stored_description_topology_epoch)
    changes.assign(group, "failed_description", value.failed_description_topology_epoch)
    changes.assign(group, "configs", {config.key: config.value for config in value.last_assignment_configs or ()})
    group.forget_shutdown()


def _topology(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    topology = None if value is None else StreamsTopology(value)
    before = () if group.topology is None else group.topology.required_topics
    after = () if topology is None else topology.required_topics
    subscribe(state, changes, group.group_id, before, after)
    changes.assign(group, "topology", topology)
    group.forget_shutdown()


def _target_metadata(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    apply_target_metadata(state, changes, group, key, value)
    group.forget_shutdown()


def _target(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        changes.delete(group.targets, key.member_id)
    else:
        tasks = TasksTuple(task_set(value.active_tasks), task_set(value.standby_tasks), task_set(value.warmup_tasks))
        changes.set(group.targets, key.member_id, tasks)
    changes.assign(group, "targets_version", object())


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    **RECORDS.appliers(StreamsGroup, group_key=_metadata, target_metadata_key=_target_metadata, target_key=_target),
    StreamsGroupTopologyKey: for_group(StreamsGroup, _topology),
}


def _refresh_patterns(op: OperationContext, change: TopicChange) -> None:
    """Resolve the topics again for all groups whose topologies have patterns."""
    if (extension := streams_extension(op)) is not None:
        for group in op.state.groups.values():
            if isinstance(group, StreamsGroup) and group.topology and extension.has_patterns(group.topology):
                group.request_refresh()


PROTOCOL: Final = GroupProtocol(
    apis=(SingleGroupApi(request=StreamsGroupHeartbeatRequest, handle=heartbeat, check=check), DESCRIBE, UPDATE),
    appliers=APPLIERS,
    on_loaded={"streams": loaded},
    on_image_changed=(_refresh_patterns,),
    on_topics_changed={"streams": lambda op, group: group.request_refresh()},
    on_topic_creation_failed=creation_failed,
    cleanup=clean_up,
)
