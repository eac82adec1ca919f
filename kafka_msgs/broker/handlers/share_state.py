"""The inter-broker APIs for share partition state (KIP-932).

These are Initialize-, Read-, Write- and DeleteShareGroupState, and ReadShareGroupStateSummary. A request may contain
several share partitions. Each is handled separately, as in Kafka's ``ShareCoordinatorService``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from kafka_msgs.broker.coordinators.share_service import ShareCoordinatorService
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.share import UNSET, ShareCoordinator, SharePartitionKey
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.message import Request
from kafka_msgs.messages import (
    delete_share_group_state_response as deleted,
)
from kafka_msgs.messages import (
    initialize_share_group_state_response as initialized,
)
from kafka_msgs.messages import (
    read_share_group_state_response as read,
)
from kafka_msgs.messages import (
    read_share_group_state_summary_response as summarized,
)
from kafka_msgs.messages import (
    write_share_group_state_response as written,
)
from kafka_msgs.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from kafka_msgs.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from kafka_msgs.messages.read_share_group_state_request import ReadShareGroupStateRequest
from kafka_msgs.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from kafka_msgs.messages.share_snapshot_value import StateBatch
from kafka_msgs.messages.write_share_group_state_request import WriteShareGroupStateRequest

__all__ = ["HANDLERS", "attach"]

attach = ShareCoordinatorService.attach

Ask = Callable[[ShareCoordinator, SharePartitionKey, Any, int], Mapping[str, Any]]
"""A query to a coordinator about a share partition, which returns response fields.

The last two arguments are the share partition's part of the request and the time in ms.
"""


def _initialize(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Mapping[str, Any]:
    coordinator.initialize(key, state_epoch=part.state_epoch, start_offset=part.start_offset, now=now)
    return {}


def _read(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Mapping[str, Any]:
    state = coordinator.read(key, leader_epoch=part.leader_epoch, now=now)
    batches = (
        read.StateBatch(
            first_offset=each.first_offset,
            last_offset=each.last_offset,
            delivery_state=each.delivery_state,
            delivery_count=each.delivery_count,
        )
        for each in state.state_batches
    )
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": tuple(batches),
    }


def _write(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Mapping[str, Any]:
    coordinator.write(
        key,
        [
            StateBatch(
                first_offset=each.first_offset,
                last_offset=each.last_offset,
                delivery_state=each.delivery_state,
                delivery_count=each.delivery_count,
            )
            for each in part.state_batches
        ],
        state_epoch=part.state_epoch,
        leader_epoch=part.leader_epoch,
        start_offset=part.start_offset,
        complete=part.delivery_complete_count,
        now=now,
    )
    return {}


def _delete(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Mapping[str, Any]:
    coordinator.delete(key)
    return {}


def _summarize(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Mapping[str, Any]:
    state = coordinator.summary(key)
    if state is None:
        return {"start_offset": UNSET, "delivery_complete_count": UNSET}
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete_count,
    }


_COORDINATOR_GONE: Final[Mapping[int, str]] = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
}
"""Messages for errors that do not concern a single share partition."""


@frozen
class _Api:
    """An API about share partition state. ``verb`` describes its action in error messages."""

    request: type[Request[Any]]
    ask: Ask
    verb: str
    part: type
    topic: type
    response: type

    def run(self, call: ServerCall[Any]) -> None:
        """Handle a request."""
        call.require_cluster(AclOperation.CLUSTER_ACTION)
        request = call.request
        if not request.group_id:
            call.respond(self.response())
            return
        results = tuple(
            self.topic(
                topic_id=topic.topic_id,
                partitions=tuple(self._result(call, topic.topic_id, each) for each in topic.partitions),
            )
            for topic in request.topics
        )
        call.respond(self.response(results=results))

    def _result(self, call: ServerCall[Any], topic_id: Any, part: Any) -> Any:
        host = ShareCoordinatorService.on(call.cluster, call.session.broker_id)
        key = SharePartitionKey(call.request.group_id, topic_id, part.partition)
        try:
            fields = self.ask(host.coordinator, key, part, call.cluster.now)
        except RequestRefusedError as error:
            gone = _COORDINATOR_GONE.get(error.error)
            message = error.message if gone is None else f"Unable to {self.verb}: {gone}"
            return self.part(partition=part.partition, error_code=error.error, error_message=message)
        return self.part(partition=part.partition, **fields)


_APIS: Final = (
    _Api(
        InitializeShareGroupStateRequest,
        _initialize,
        "initialize share group state",
        initialized.PartitionResult,
        initialized.InitializeStateResult,
        initialized.InitializeShareGroupStateResponse,
    ),
    _Api(
        ReadShareGroupStateRequest,
        _read,
        "read share group state",
        read.PartitionResult,
        read.ReadStateResult,
        read.ReadShareGroupStateResponse,
    ),
    _Api(
        WriteShareGroupStateRequest,
        _write,
        "write share group state",
        written.PartitionResult,
        written.WriteStateResult,
        written.WriteShareGroupStateResponse,
    ),
    _Api(
        DeleteShareGroupStateRequest,
        _delete,
        "delete share group state",
        deleted.PartitionResult,
        deleted.DeleteStateResult,
        deleted.DeleteShareGroupStateResponse,
    ),
    _Api(
        ReadShareGroupStateSummaryRequest,
        _summarize,
        "read share group state summary",
        summarized.PartitionResult,
        summarized.ReadStateSummaryResult,
        summarized.ReadShareGroupStateSummaryResponse,
    ),
)

HANDLERS: Final = tuple(ApiHandler(api.request, api.run) for api in _APIS)
