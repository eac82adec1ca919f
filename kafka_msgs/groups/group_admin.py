"""The apis for groups of every kind, ListGroups and DeleteGroups, and the group count metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.assignors.java_hash_order import copy_capacity, hash_map_order
from kafka_msgs.groups.assignors.spec import Partitions
from kafka_msgs.groups.group import group_not_found
from kafka_msgs.groups.group_protocol import GroupProtocol, MultiGroupApi, client_error_for
from kafka_msgs.groups.offsets.appliers import delete_all_offsets
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.share.group import ShareGroup
from kafka_msgs.groups.share.initialization import begin_deletion, delete_share_state
from kafka_msgs.groups.streams.description_cleanup import delete_descriptions
from kafka_msgs.messages.delete_groups_request import DeleteGroupsRequest
from kafka_msgs.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_groups_response import ListedGroup, ListGroupsResponse

__all__ = ["PROTOCOL"]

_COUNTER: Final = "group-size-counter"
_COUNT_INTERVAL_MS: Final = 60_000


def _list_groups(
    op: OperationContext, context: RequestContext, request: ListGroupsRequest, questions: Sequence[ListGroupsRequest]
) -> list[ListedGroup | GroupError]:
    states = {state.lower().strip() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    return [
        group.listed()
        for group in map(op.state.groups.__getitem__, iter_kafka_order(op.state.groups))
        if (not states or group.state_filter(op) in states) and (not kinds or group.kind in kinds)
    ]


def _respond_list(
    request: ListGroupsRequest, items: Sequence[ListedGroup | GroupError], version: int
) -> ListGroupsResponse:
    """Return the groups of all partitions. NOT_COORDINATOR errors are skipped; any other error fails the request."""
    errors = [item.error for item in items if isinstance(item, GroupError)]
    for error in errors:
        if error is not ErrorCode.NOT_COORDINATOR:
            return ListGroupsResponse(error_code=error)
    return ListGroupsResponse(groups=tuple(item for item in items if not isinstance(item, GroupError)))


def _groups_to_delete(request: DeleteGroupsRequest, version: int) -> Iterator[tuple[str, str]]:
    """Return the groups in the order in which Kafka refuses them, which is the order of a ``HashMap``."""
    return ((group_id, group_id) for group_id in hash_map_order(request.groups_names))


def _delete_groups(
    op: OperationContext, context: RequestContext, request: DeleteGroupsRequest, group_ids: Sequence[str]
) -> Future[Sequence[DeletableGroupResult]]:
    """Delete groups as soon as all earlier records are committed.

    Like Kafka, it first handles share groups in a separate operation, because another coordinator stores their state.
    Then the plugin deletes the topology descriptions of streams groups.
    """
    results: Future[Sequence[DeletableGroupResult]] = Future()
    asked = [group_id for group_id in request.groups_names if group_id in group_ids]
    ordered = hash_map_order(asked, capacity=copy_capacity(len(asked)))
    outcomes, doomed = _prepare_share_groups(op, asked)

    def clean_up(error: ApiError | None) -> None:
        if error is None:
            outcomes.update(_forget_share_states(op, doomed))
            rest = [group_id for group_id in ordered if group_id not in outcomes]
            delete_descriptions(op, rest).add_done_callback(partial(delete, rest))

    def delete(rest: Sequence[str], described: Future[Mapping[str, GroupError]]) -> None:
        errors = described.value or {}
        outcomes.update((group_id, errors[group_id]) for group_id in rest if group_id in errors)
        left = [group_id for group_id in rest if group_id not in errors]
        ended = op.submit(lambda step: _delete(step, left)) if left else Future.from_value({})
        ended.add_done_callback(partial(answer, left))

    def answer(left: Sequence[str], ended: Future[dict[str, GroupError | None]]) -> None:
        error = ended.error
        outcomes.update(ended.result() if error is None else dict.fromkeys(left, client_error_for(error)))
        results.resolve([_result(group_id, error, context.version) for group_id, error in outcomes.items()])

    op.on_committed(clean_up)
    return results


def _prepare_share_groups(
    op: OperationContext, group_ids: Sequence[str]
) -> tuple[dict[str, GroupError | None], dict[str, Partitions]]:
    """Start to delete the state of share groups.

    Return the errors of groups that cannot be deleted, and the partitions with state of the remaining groups.
    """
    begun: list[ShareGroup] = []
    errors: dict[str, GroupError] = {}
    for group_id in group_ids:
        group = op.state.groups.get(group_id)
        if isinstance(group, ShareGroup):
            try:
                group.validate_delete(op)
            except GroupError as error:
                errors[group_id] = error
            else:
                begun.append(group)
    doomed = begin_deletion(op, begun)
    return {group_id: errors[group_id] for group_id in hash_map_order(errors)}, doomed


def _forget_share_states(op: OperationContext, doomed: Mapping[str, Partitions]) -> Iterator[tuple[str, GroupError]]:
    """Delete the state of groups in the share coordinator. Yield the errors of groups whose deletion failed."""
    for group_id, partitions in doomed.items():
        try:
            delete_share_state(op, group_id, partitions)
        except GroupError as error:
            yield group_id, error


def _delete(op: OperationContext, group_ids: Sequence[str]) -> dict[str, GroupError | None]:
    """Delete groups. Return the errors of groups that cannot be deleted, and None for the others."""
    outcomes: dict[str, GroupError | None] = {}
    for group_id in group_ids:
        group = op.state.groups.get(group_id)
        try:
            if group is None:
                raise group_not_found(group_id)
            group.validate_delete(op)
        except GroupError as error:
            outcomes[group_id] = error
        else:
            delete_all_offsets(op, group_id)
            group.emit_tombstones(op)
            group.cancel_timers(op)
            outcomes[group_id] = None
    return outcomes


def _result(group_id: str, error: GroupError | None, version: int) -> DeletableGroupResult:
    if error is None:
        return DeletableGroupResult(group_id=group_id)
    message = error.message if error.error == ErrorCode.GROUP_DELETION_FAILED else None
    return DeletableGroupResult(group_id=group_id, error_code=error.error, error_message=message)


def _schedule_count(op: OperationContext) -> None:
    op.timers.schedule(_COUNTER, _COUNT_INTERVAL_MS, _count_groups)


def _count_groups(op: OperationContext) -> None:
    states = ((group.kind, group.state_name()) for group in op.state.groups.values())
    op.services.metrics.groups[op.partition] = Counter(states)
    _schedule_count(op)


PROTOCOL: Final = GroupProtocol(
    apis=(
        MultiGroupApi(
            request=ListGroupsRequest,
            groups=None,
            handle=_list_groups,
            refuse=lambda question, error, version: error,
            respond=_respond_list,
        ),
        MultiGroupApi(
            request=DeleteGroupsRequest,
            groups=_groups_to_delete,
            handle=_delete_groups,
            refuse=_result,
            respond=lambda request, results, version: DeleteGroupsResponse(results=tuple(results)),
            is_read_only=lambda request: False,
        ),
    ),
    on_started=(_schedule_count,),
)
