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
    if op.services.plugin is None:
        return Future.from_value({})
    errors: Future[Mapping[str, GroupError]] = Future()

    def finish(deleted: _Deleted) -> Future[Mapping[str, GroupError]]:
        finished = Future.gather([_finish(op, deleted.done)])
        return finished.then(lambda _: dict.fromkeys(deleted.failed, _FAILURE))

    def look() -> None:
        try:
            stored = op.at_last_commit(lambda committed: _described(committed, group_ids))
        except GroupError as error:
            found: Future[Mapping[str, GroupError]] = Future.from_error(error)
        else:
            found = _delete(op, stored).then(finish)
        found.add_done_callback(settle)

    def settle(found: Future[Mapping[str, GroupError]]) -> None:
        error = found.error
        errors.resolve(found.result() if error is None else dict.fromkeys(group_ids, client_error_for(error)))

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

    def finish(ran: Future[None]) -> None:
        _finish(op, [group_id])

    def deleted(found: _Deleted) -> bool | Future[bool]:
        if found.done:
            ran = op.submit(operation)
            ran.add_done_callback(finish)
            return ran.then(lambda _: True)
        if found.failed:
            plugin.may_ask(group_id, UNCERTAIN, op.now)
        return False

    if plugin.is_waiting(group_id, UNCERTAIN, op.now):
        return Future.from_value(False)
    return _delete(op, [group_id]).then(deleted)


# Periodically.


def clean_up(op: OperationContext) -> None:
    """Delete the descriptions of groups that have neither members nor offsets. Such groups then expire."""

    def finish(deleted: _Deleted) -> None:
        _finish(op, deleted.done)

    _delete(op, op.at_last_commit(_needing_cleanup)).then(finish)


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
    if not group_ids:
        return Future.from_value(_Deleted((), ()))
    return op.submit(partial(_mark, group_ids=group_ids)).then(lambda marked: _call_plugin(op, marked))


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
    return op.submit(partial(_note_deleted, group_ids=group_ids)) if group_ids else Future.from_value(None)


def _note_deleted(op: OperationContext, group_ids: Iterable[str]) -> None:
    """Record that no description is stored, or an uncertain epoch if one was stored in the meantime."""
    for group_id in group_ids:
        group = op.state.groups.get(group_id)
        if isinstance(group, StreamsGroup) and group.stored_description != NO_EPOCH:
            stored = NO_EPOCH if group.stored_description == UNCERTAIN else UNCERTAIN
            op.emit(*group.metadata_record(stored_description_topology_epoch=stored))
