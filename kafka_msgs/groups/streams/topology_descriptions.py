"""StreamsGroupTopologyDescriptionUpdate, and other uses of topology descriptions (KIP-1331).

Before the plugin is called, the group records that its stored epoch is uncertain. So a coordinator that fails in the
meantime does not assume that the description is stored.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.group import group_not_found
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.group_protocol import SingleGroupApi
from kafka_msgs.groups.modern_group import check_names, find_group, invalid_request
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.streams.configured_topology import StatusCode
from kafka_msgs.groups.streams.description_plugin import DescriptionFailure, DescriptionRequests, PluginError
from kafka_msgs.groups.streams.group import NO_EPOCH, UNCERTAIN, StreamsGroup
from kafka_msgs.messages import streams_group_describe_response as shown
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kafka_msgs.messages.streams_group_topology_description_update_request import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionNode,
)
from kafka_msgs.messages.streams_group_topology_description_update_response import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)

__all__ = ["UPDATE", "ask_for_description", "with_description"]

_SOURCE, _PROCESSOR, _SINK = 1, 2, 3
_NOT_STORED, _FAILED, _SHOWN = 1, 2, 3
_MOVED: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
)


def ask_for_description(
    op: OperationContext,
    context: RequestContext,
    group: StreamsGroup,
    topology_epoch: int,
    response: StreamsGroupHeartbeatResponse,
) -> StreamsGroupHeartbeatResponse | Future[StreamsGroupHeartbeatResponse]:
    """Return the response to a heartbeat, which requests a description from the member if the plugin needs one.

    This is decided when the records of the heartbeat are committed.
    """
    plugin: DescriptionRequests | None = op.services.plugin
    is_stale = any(status.status_code == StatusCode.STALE_TOPOLOGY for status in response.status or ())
    known = (group.stored_description, group.failed_description)
    if plugin is None or context.version < 1 or topology_epoch in (NO_EPOCH, *known) or is_stale:
        return response
    promise = op.new_future()

    def finish(error: ApiError | None) -> None:
        if error is not None:
            promise.fail(error)
        else:
            asks = plugin.may_ask(group.group_id, topology_epoch, op.now)
            promise.resolve(evolve(response, topology_description_required=True) if asks else response)

    op.on_committed(finish)
    return promise


def _check(
    services: GroupServices, context: RequestContext, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> None:
    if services.plugin is None:
        raise GroupError(
            ErrorCode.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
        )
    check_names(("MemberId", request.member_id), ("GroupId", request.group_id))


def update(
    op: OperationContext, context: RequestContext, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> Future[StreamsGroupTopologyDescriptionUpdateResponse]:
    """Pass a description to the plugin, and record that it is stored, or permanently refused."""
    op.at_last_commit(lambda committed: _check_update(committed, request))
    group = op.state.groups.get(request.group_id)
    is_there = isinstance(group, StreamsGroup)
    if isinstance(group, StreamsGroup) and group.stored_description != UNCERTAIN:
        op.emit(*group.metadata_record(stored_description_topology_epoch=UNCERTAIN))
    promise = op.new_future()

    def follow(error: ApiError | None) -> None:
        if error is None and is_there:
            _store(op, request, promise)
        else:
            promise.fail(error or group_not_found(request.group_id))

    op.on_committed(follow)
    return promise


def _check_update(op: OperationContext, request: StreamsGroupTopologyDescriptionUpdateRequest) -> None:
    group = find_group(op, StreamsGroup, request.group_id)
    group.member(request.member_id)
    if request.topology_epoch != group.topology_epoch:
        raise invalid_request(
            f"Topology epoch {request.topology_epoch} does not match the group's current topology epoch "
            f"{group.topology_epoch}."
        )
    _check_description(request.topology_description)


def _check_description(description: TopologyDescription) -> None:
    stores = [node for store in description.global_stores for node in (store.source, store.processor)]
    for node in (*(node for each in description.subtopologies for node in each.nodes), *stores):
        if node.node_type not in (_SOURCE, _PROCESSOR, _SINK):
            raise invalid_request(f"Unknown topology node type: {node.node_type}")
    for store in description.global_stores:
        if (store.source.node_type, store.processor.node_type) != (_SOURCE, _PROCESSOR):
            raise invalid_request("Global store must be composed of a source and a processor node.")


def _store(
    op: OperationContext, request: StreamsGroupTopologyDescriptionUpdateRequest, promise: Future[object]
) -> None:
    """Call the plugin, and record the result in a separate operation."""
    plugin: DescriptionRequests = op.services.plugin
    group_id, epoch = request.group_id, request.topology_epoch
    response = StreamsGroupTopologyDescriptionUpdateResponse()
    is_refused = False
    op.record_plugin_call(f"set {group_id} {epoch}")
    try:
        plugin.plugin.set_topology(group_id, epoch, request.topology_description)
    except PluginError as error:
        response = StreamsGroupTopologyDescriptionUpdateResponse(
            error_code=ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, error_message=error.message
        )
        if error.failure is DescriptionFailure.TRANSIENT:
            plugin.wait_longer(group_id, epoch, op.now)
            promise.resolve(response)
            return
        is_refused = True

    def finish(written: Future[None]) -> None:
        error = written.error
        if error is None:
            plugin.clear(group_id, epoch)
            promise.resolve(response)
            return
        if error.error == ErrorCode.GROUP_ID_NOT_FOUND:
            plugin.clear(group_id)
        elif error.error not in _MOVED:
            plugin.wait_longer(group_id, epoch, op.now)
        promise.fail(error)

    op.submit(lambda step: _note_result(step, group_id, epoch, is_refused)).add_done_callback(finish)


def _note_result(op: OperationContext, group_id: str, epoch: int, is_refused: bool) -> None:
    group = find_group(op, StreamsGroup, group_id)
    stored, failed = group.stored_description, group.failed_description
    if is_refused:
        failed = max(failed, epoch)
    else:
        stored = UNCERTAIN if stored == NO_EPOCH else max(stored, epoch)
    op.emit(*group.metadata_record(stored_description_topology_epoch=stored, failed_description_topology_epoch=failed))


def with_description(
    op: OperationContext, group: StreamsGroup, described: shown.DescribedGroup
) -> shown.DescribedGroup:
    """Return the description of a group with its topology description, and the reason if it is missing."""
    plugin: DescriptionRequests | None = op.services.plugin
    topology = described.topology
    if plugin is None or topology is None or group.stored_description != topology.epoch:
        return evolve(described, topology_description_status=_NOT_STORED)
    op.record_plugin_call(f"get {group.group_id} {topology.epoch}")
    try:
        found = plugin.plugin.get_topology(group.group_id, topology.epoch)
    except PluginError:
        return evolve(described, topology_description_status=_FAILED)
    if found is None:
        return evolve(described, topology_description_status=_NOT_STORED)
    return evolve(described, topology_description=_shown(found), topology_description_status=_SHOWN)


def _shown(description: TopologyDescription) -> shown.TopologyDescription:
    return shown.TopologyDescription(
        subtopologies=tuple(
            shown.TopologyDescriptionSubtopology(
                subtopology_id=each.subtopology_id, nodes=tuple(_shown_node(node) for node in each.nodes)
            )
            for each in description.subtopologies
        ),
        global_stores=tuple(
            shown.TopologyDescriptionGlobalStore(source=_shown_node(each.source), processor=_shown_node(each.processor))
            for each in description.global_stores
        ),
    )


def _shown_node(node: TopologyDescriptionNode) -> shown.TopologyDescriptionNode:
    """Return a node with the fields of its type: topics of a source, stores of a processor, the topic of a sink."""
    return shown.TopologyDescriptionNode(
        name=node.name,
        node_type=node.node_type,
        source_topics=tuple(dict.fromkeys(node.source_topics)) if node.node_type == _SOURCE else (),
        sink_topic=node.sink_topic if node.node_type == _SINK else None,
        stores=tuple(dict.fromkeys(node.stores)) if node.node_type == _PROCESSOR else (),
        successors=tuple(dict.fromkeys(node.successors)),
    )


UPDATE: Final = SingleGroupApi(request=StreamsGroupTopologyDescriptionUpdateRequest, handle=update, check=_check)
