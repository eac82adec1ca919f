"""Deletion of topology descriptions (KIP-1331): before their group is deleted or replaced, and periodically.

The plugin deletes all descriptions of a group. Before the call, the group records that its stored epoch is uncertain,
as before a description is stored. After the call it records that no description is stored. Only groups without members
lose their descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.group_protocol import client_error_for
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.streams.description_plugin import DescriptionRequests, PluginError
from kafka_msgs.groups.streams.group import NO_EPOCH, UNCERTAIN, StreamsGroup

__all__ = ["clean_up", "delete_description_then", "delete_descriptions", "has_description"]


class _Deleted(NamedTuple):
    """The groups whose descriptions the plugin deleted, and the groups for which it failed."""

    done: Sequence[str]
    failed: Sequence[str]


_FAILURE: Final = GroupError(
    ErrorCode.GROUP_DELETION_FAILED, "Topology description plugin failed to delete the topology."
)


def has_description(op: OperationContext, group: Group | None) -> bool:
    """Return whether a description must be deleted before a streams group is deleted."""
    return op.services.plugin is not None and isinstance(group, StreamsGroup) and group.stored_description != NO_EPOCH


# Before groups are deleted.


def delete_descriptions(op: OperationContext, group_ids: Sequence[str]) -> Future[Mapping[str, GroupError]]:
    """Delete the descriptions of groups before their deletion. The future has the errors of groups that must stay."""
    errors: Future[Mapping[str, GroupError]] = Future()

    def deleted(promise: Future[_Deleted]) -> None:
        if promise.error is not None:
            errors.resolve(dict.fromkeys(group_ids, client_error_for(promise.error)))
        elif promise.value is not None:
            found = dict.fromkeys(promise.value.failed, _FAILURE)
            _finish(op, promise.value.done).add_done_callback(lambda _: errors.resolve(found))

    def look() -> None:
        try:
            stored = op.at_last_commit(lambda committed: _described(committed, group_ids))
        except GroupError as error:
            errors.resolve(dict.fromkeys(group_ids, client_error_for(error)))
        else:
            _delete(op, stored).add_done_callback(deleted)

    if op.services.plugin is None:
        errors.resolve({})
    else:
        op.run_after(look)
    return errors


def _described(op: OperationContext, group_ids: Iterable[str]) -> list[str]:
    return hash_map_order(group_id for group_id in group_ids if has_description(op, op.state.groups.get(group_id)))


# Before a classic group replaces an empty streams group.


def delete_description_then(
    op: OperationContext, group_id: str, operation: Callable[[OperationContext], None]
) -> Future[bool]:
    """Delete the descriptions of a group, and run the operation that replaces it.

    The future's value is whether the operation ran; if not, a member may retry later. After a failure the plugin is not
    called for a while.
    """
    plugin: DescriptionRequests = op.services.plugin
    ran: Future[bool] = Future()

    def deleted(promise: Future[_Deleted]) -> None:
        if promise.error is not None:
            ran.fail(promise.error)
        elif promise.value is not None and promise.value.done:
            op.submit(operation).add_done_callback(finish)
        else:
            if promise.value is not None and promise.value.failed:
                plugin.may_ask(group_id, UNCERTAIN, op.now)
            ran.resolve(False)

    def finish(promise: Future[None]) -> None:
        if promise.error is not None:
            ran.fail(promise.error)
        ran.resolve(True)
        _finish(op, [group_id])

    if plugin.is_waiting(group_id, UNCERTAIN, op.now):
        ran.resolve(False)
    else:
        _delete(op, [group_id]).add_done_callback(deleted)
    return ran


# Periodically.


def clean_up(op: OperationContext) -> None:
    """Delete the descriptions of groups that have neither members nor offsets. Such groups then expire."""

    def deleted(promise: Future[_Deleted]) -> None:
        if promise.value is not None:
            _finish(op, promise.value.done)

    _delete(op, op.at_last_commit(_needing_cleanup)).add_done_callback(deleted)


def _needing_cleanup(op: OperationContext) -> list[str]:
    state = op.state
    unused = (
        each
        for each in iter_kafka_order(state.groups)
        if each not in state.offsets and each not in state.open_transactions
    )
    return [each for each in _described(op, unused) if state.groups[each].is_empty]


# The operations.


def _delete(op: OperationContext, group_ids: Sequence[str]) -> Future[_Deleted]:
    """Record that the stored epochs are uncertain, and call the plugin."""
    promise: Future[_Deleted] = Future()

    def marked(step: Future[Sequence[str]]) -> None:
        if step.error is not None:
            promise.fail(step.error)
        else:
            promise.resolve(_call_plugin(op, step.value or ()))

    if group_ids:
        op.submit(partial(_mark, group_ids=group_ids)).add_done_callback(marked)
    else:
        promise.resolve(_Deleted((), ()))
    return promise


def _mark(op: OperationContext, group_ids: Iterable[str]) -> Sequence[str]:
    """Record the uncertain epochs of groups, and return the groups whose descriptions the plugin may delete."""
    found = []
    for group_id in group_ids:
        group = op.state.groups.get(group_id)
        if isinstance(group, StreamsGroup) and group.is_empty and group.stored_description != NO_EPOCH:
            found.append(group_id)
            if group.stored_description != UNCERTAIN:
                op.emit(*group.metadata_record(stored_description_topology_epoch=UNCERTAIN))
    return found


def _call_plugin(op: OperationContext, group_ids: Iterable[str]) -> _Deleted:
    plugin: DescriptionRequests = op.services.plugin
    done, failed = [], []
    for group_id in group_ids:
        op.record_plugin_call(f"delete {group_id}")
        try:
            plugin.plugin.delete_topology(group_id)
        except PluginError:
            failed.append(group_id)
        else:
            plugin.clear(group_id)
            done.append(group_id)
    return _Deleted(done, failed)


def _finish(op: OperationContext, group_ids: Sequence[str]) -> Future[None]:
    """Record that no description is stored. A failure has no effect: the next cleanup tries again."""
    if group_ids:
        return op.submit(partial(_note_deleted, group_ids=group_ids))
    nothing: Future[None] = Future()
    nothing.resolve(None)
    return nothing


def _note_deleted(op: OperationContext, group_ids: Iterable[str]) -> None:
    """Record that no description is stored, or an uncertain epoch if one was stored in the meantime."""
    for group_id in group_ids:
        group = op.state.groups.get(group_id)
        if isinstance(group, StreamsGroup) and group.stored_description != NO_EPOCH:
            stored = NO_EPOCH if group.stored_description == UNCERTAIN else UNCERTAIN
            op.emit(*group.metadata_record(stored_description_topology_epoch=stored))
