"""The inter-broker APIs for share partition state (KIP-932).

These are Initialize-, Read-, Write- and DeleteShareGroupState, and ReadShareGroupStateSummary. A request may contain
several share partitions. Each is handled separately, as in Kafka's ``ShareCoordinatorService``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final
from uuid import UUID

from attrs import define, field

from kafka_msgs.broker.coordinators.share_service import ShareCoordinatorService
from kafka_msgs.broker.handlers.response_parts import element_class
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.share import UNSET, ShareCoordinator, SharePartitionKey
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.message import Request
from kafka_msgs.messages import read_share_group_state_response as read
from kafka_msgs.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from kafka_msgs.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from kafka_msgs.messages.read_share_group_state_request import ReadShareGroupStateRequest
from kafka_msgs.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue, StateBatch
from kafka_msgs.messages.write_share_group_state_request import WriteShareGroupStateRequest

__all__ = ["HANDLERS", "attach"]

attach = ShareCoordinatorService.attach

Ask = Callable[[ShareCoordinator, SharePartitionKey, Any, int], Future[Any]]
"""A request to a coordinator about a share partition.

The last two arguments are the share partition's part of the request and the time in ms.
"""


def _initialize(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Future[None]:
    return coordinator.initialize_state(key, state_epoch=part.state_epoch, start_offset=part.start_offset, now=now)


def _read(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Future[ShareSnapshotValue]:
    return coordinator.read_state(key, leader_epoch=part.leader_epoch, now=now)


def _write(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Future[None]:
    return coordinator.write_state(
        key,
        map(partial(copy_as, StateBatch), part.state_batches),
        state_epoch=part.state_epoch,
        leader_epoch=part.leader_epoch,
        start_offset=part.start_offset,
        complete=part.delivery_complete_count,
        now=now,
    )


def _delete(coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int) -> Future[None]:
    return coordinator.delete_state(key, now=now)


def _summarize(
    coordinator: ShareCoordinator, key: SharePartitionKey, part: Any, now: int
) -> Future[ShareSnapshotValue | None]:
    try:
        return Future.from_value(coordinator.read_summary(key))
    except ApiError as error:
        return Future.from_error(error)


def _read_fields(state: ShareSnapshotValue) -> Mapping[str, Any]:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": tuple(map(partial(copy_as, read.StateBatch), state.state_batches)),
    }


def _summary_fields(state: ShareSnapshotValue | None) -> Mapping[str, Any]:
    if state is None:
        return {"start_offset": UNSET, "delivery_complete_count": UNSET}
    names = ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")
    return {name: getattr(state, name) for name in names}


_COORDINATOR_GONE: Final[Mapping[int, str]] = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
}
"""Messages for errors that do not concern a single share partition."""


@define
class _Api:
    """An API about share partition state. ``verb`` describes its action in error messages.

    ``fields`` returns the response fields from the result of ``ask``. A response lists topics, and they partitions.
    """

    request: type[Request[Any]]
    ask: Ask
    verb: str
    fields: Callable[[Any], Mapping[str, Any]] = lambda _: {}
    response: Any = field(init=False)
    topic: Any = field(init=False)
    part: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.response = self.request.response_class()
        self.topic = element_class(self.response, "results")
        self.part = element_class(self.topic, "partitions")

    def run(self, call: ServerCall[Any]) -> None:
        """Handle a request. Respond when the result of each share partition is known."""
        call.require_cluster(AclOperation.CLUSTER_ACTION)
        request, service = call.request, ShareCoordinatorService.of_call(call)
        topics = request.topics if request.group_id else ()
        futures = [[self._ask(call, topic.topic_id, part) for part in topic.partitions] for topic in topics]
        service.settle()

        def respond(_: Future[None]) -> None:
            results = (
                self.topic(topic_id=topic.topic_id, partitions=tuple(map(self._result, topic.partitions, settled)))
                for topic, settled in zip(topics, futures, strict=True)
            )
            call.respond(self.response(results=tuple(results)))

        Future.gather(chain.from_iterable(futures)).add_done_callback(respond)

    def _ask(self, call: ServerCall[Any], topic_id: UUID, part: Any) -> Future[Any]:
        key = SharePartitionKey(call.request.group_id, topic_id, part.partition)
        return self.ask(ShareCoordinatorService.of_call(call).coordinator, key, part, call.cluster.now)

    def _result(self, part: Any, future: Future[Any]) -> Any:
        error = future.error
        if error is None:
            return self.part(partition=part.partition, **self.fields(future.value))
        gone = _COORDINATOR_GONE.get(error.error)
        message = error.message if gone is None else f"Unable to {self.verb}: {gone}"
        return self.part(partition=part.partition, error_code=error.error, error_message=message)


_APIS: Final = (
    _Api(InitializeShareGroupStateRequest, _initialize, "initialize share group state"),
    _Api(ReadShareGroupStateRequest, _read, "read share group state", _read_fields),
    _Api(WriteShareGroupStateRequest, _write, "write share group state"),
    _Api(DeleteShareGroupStateRequest, _delete, "delete share group state"),
    _Api(ReadShareGroupStateSummaryRequest, _summarize, "read share group state summary", _summary_fields),
)

HANDLERS: Final = tuple(ApiHandler(api.request, api.run) for api in _APIS)
