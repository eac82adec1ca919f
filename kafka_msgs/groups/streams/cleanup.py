"""When topology descriptions are deleted (KIP-1331): before their group, before a classic group, and in time.

The plugin forgets all descriptions of a group. Before it is called, the group records that its stored epoch is
uncertain, as before a description is stored. Afterwards it records that nothing is stored. Only groups without members
lose their descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.api import operation_error
from kafka_msgs.groups.assignors.java_order import hash_map_order
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.promise import Promise
from kafka_msgs.groups.streams import records
from kafka_msgs.groups.streams.group import NO_EPOCH, UNCERTAIN, StreamsGroup
from kafka_msgs.groups.streams.plugin import PluginError, TopologyDescriptions
from kafka_msgs.groups.timeline import walk
from kafka_msgs.groups.transaction import Transaction

__all__ = ["clean_up", "delete_descriptions", "has_description", "take_over"]


class _Deleted(NamedTuple):
    """The groups whose descriptions the plugin deleted, and those where it failed."""

    done: Sequence[str]
    failed: Sequence[str]


_FAILURE: Final = GroupError(
    error=ErrorCode.GROUP_DELETION_FAILED, message="Topology description plugin failed to delete the topology."
)


def has_description(tx: Transaction, group: Group | None) -> bool:
    """Tell whether a description must be deleted before a streams group goes."""
    return tx.plugin is not None and isinstance(group, StreamsGroup) and group.stored_description != NO_EPOCH


# Before groups are deleted.


def delete_descriptions(tx: Transaction, group_ids: Sequence[str]) -> Promise[Mapping[str, GroupError]]:
    """Delete the descriptions of groups that are to be deleted. The promise has the errors of groups that must stay."""
    errors: Promise[Mapping[str, GroupError]] = Promise()

    def deleted(promise: Promise[_Deleted]) -> None:
        if promise.error is not None:
            errors.resolve(dict.fromkeys(group_ids, operation_error(promise.error)))
        elif promise.value is not None:
            found = dict.fromkeys(promise.value.failed, _FAILURE)
            _finish(tx, promise.value.done).then(lambda _: errors.resolve(found))

    def look() -> None:
        try:
            stored = tx.as_committed(lambda committed: _described(committed, group_ids))
        except GroupError as error:
            errors.resolve(dict.fromkeys(group_ids, operation_error(error)))
        else:
            _delete(tx, stored).then(deleted)

    if tx.plugin is None:
        errors.resolve({})
    else:
        tx.enqueue(look)
    return errors


def _described(tx: Transaction, group_ids: Iterable[str]) -> list[str]:
    return hash_map_order(group_id for group_id in group_ids if has_description(tx, tx.state.groups.get(group_id)))


# Before a classic group takes the place of an empty streams group.


def take_over(tx: Transaction, group_id: str, operation: Callable[[Transaction], None]) -> Promise[bool]:
    """Delete the descriptions of a group, and run the step that takes its place.

    The promise tells whether the step ran; if not, a member may try again later. After a failure the plugin is left
    alone for a while.
    """
    plugin: TopologyDescriptions = tx.plugin
    ran: Promise[bool] = Promise()

    def deleted(promise: Promise[_Deleted]) -> None:
        if promise.error is not None:
            ran.fail(promise.error)
        elif promise.value is not None and promise.value.done:
            tx.submit(operation).then(finish)
        else:
            if promise.value is not None and promise.value.failed:
                plugin.may_ask(group_id, UNCERTAIN, tx.now)
            ran.resolve(False)

    def finish(promise: Promise[None]) -> None:
        if promise.error is not None:
            ran.fail(promise.error)
        ran.resolve(True)
        _finish(tx, [group_id])

    if plugin.is_waiting(group_id, UNCERTAIN, tx.now):
        ran.resolve(False)
    else:
        _delete(tx, [group_id]).then(deleted)
    return ran


# In time.


def clean_up(tx: Transaction) -> None:
    """Delete the descriptions of groups that have neither members nor offsets. Such groups expire afterwards."""

    def deleted(promise: Promise[_Deleted]) -> None:
        if promise.value is not None:
            _finish(tx, promise.value.done)

    _delete(tx, tx.as_committed(_needing_cleanup)).then(deleted)


def _needing_cleanup(tx: Transaction) -> list[str]:
    state = tx.state
    unused = (each for each in walk(state.groups) if each not in state.offsets and each not in state.open)
    return [each for each in _described(tx, unused) if state.groups[each].is_empty]


# The steps.


def _delete(tx: Transaction, group_ids: Sequence[str]) -> Promise[_Deleted]:
    """Record that the stored epochs are uncertain, and call the plugin."""
    promise: Promise[_Deleted] = Promise()

    def marked(step: Promise[Sequence[str]]) -> None:
        if step.error is not None:
            promise.fail(step.error)
        else:
            promise.resolve(_call_plugin(tx, step.value or ()))

    if group_ids:
        tx.submit(partial(_mark, group_ids=group_ids)).then(marked)
    else:
        promise.resolve(_Deleted((), ()))
    return promise


def _mark(tx: Transaction, group_ids: Iterable[str]) -> Sequence[str]:
    """Return the groups of which the plugin may be asked to forget, after a record that says so."""
    found = []
    for group_id in group_ids:
        group = tx.state.groups.get(group_id)
        if isinstance(group, StreamsGroup) and group.is_empty and group.stored_description != NO_EPOCH:
            found.append(group_id)
            if group.stored_description != UNCERTAIN:
                tx.emit(*records.metadata_record(group, stored_description_topology_epoch=UNCERTAIN))
    return found


def _call_plugin(tx: Transaction, group_ids: Iterable[str]) -> _Deleted:
    plugin: TopologyDescriptions = tx.plugin
    done, failed = [], []
    for group_id in group_ids:
        tx.report_plugin(f"delete {group_id}")
        try:
            plugin.plugin.delete_topology(group_id)
        except PluginError:
            failed.append(group_id)
        else:
            plugin.clear(group_id)
            done.append(group_id)
    return _Deleted(done, failed)


def _finish(tx: Transaction, group_ids: Sequence[str]) -> Promise[None]:
    """Record that nothing is stored. A failure has no effect: the next cleanup tries again."""
    if group_ids:
        return tx.submit(partial(_note_deleted, group_ids=group_ids))
    nothing: Promise[None] = Promise()
    nothing.resolve(None)
    return nothing


def _note_deleted(tx: Transaction, group_ids: Iterable[str]) -> None:
    """A description that was stored meanwhile makes the stored epoch uncertain again."""
    for group_id in group_ids:
        group = tx.state.groups.get(group_id)
        if isinstance(group, StreamsGroup) and group.stored_description != NO_EPOCH:
            stored = NO_EPOCH if group.stored_description == UNCERTAIN else UNCERTAIN
            tx.emit(*records.metadata_record(group, stored_description_topology_epoch=stored))
