"""The share coordinator of a broker: share partition state as records of ``__share_group_state`` (KIP-932).

A snapshot record contains the whole state of a share partition, an update record only its changes; a snapshot follows
after several updates. Times are in milliseconds since the epoch. In Kafka this is ``ShareCoordinatorShard``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NoReturn, TypeVar
from uuid import UUID

from attrs import evolve, frozen

from kafka_msgs.broker.share.record_state import SharePartitionKey
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.coordinator_runtime import CoordinatorRuntime
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import MarkerAppend, RecordAppend
from kafka_msgs.groups.runtime.shard_operation import ShardOperation
from kafka_msgs.groups.runtime.shard_runtime import CoordinatorDefinition
from kafka_msgs.groups.runtime.undo_log import Changes, HardState
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.internal_topics.share_state import apply_update, combine_batches
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue, StateBatch
from kafka_msgs.messages.share_update_key import ShareUpdateKey
from kafka_msgs.messages.share_update_value import ShareUpdateValue
from kafka_msgs.messages.share_update_value import StateBatch as UpdateBatch

__all__ = ["UNSET", "ShareCoordinator", "ShareCoordinatorConfig"]

T = TypeVar("T")

_TOPIC: Final = "__share_group_state"
UNSET: Final = -1
"""An unknown start offset, and the count for it."""
_VERSION: Final = 0

_TEXTS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    ErrorCode.FENCED_STATE_EPOCH: "The coordinator rejected the request because the state epoch did not match.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}
"""Kafka's error messages by error code."""


@frozen(kw_only=True)
class ShareCoordinatorConfig:
    """Configuration of the coordinator, with Kafka's defaults. Times are in ms.

    ``partitions`` is the number of partitions of ``__share_group_state``, and ``updates_per_snapshot`` is the number of
    updates between two snapshots. A share partition without updates gets a snapshot each ``snapshot_interval_ms``, and
    obsolete records are deleted each ``prune_interval_ms``.
    """

    partitions: int = 50
    updates_per_snapshot: int = 500
    snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000
    write_timeout_ms: int = 5_000


@frozen
class _SharePartitionState:
    """The state of a share partition.

    ``leader_epoch`` and ``state_epoch`` are the highest observed epochs, ``updates`` counts the updates since the last
    snapshot, and ``snapshot_at`` is the offset of the latest snapshot.
    """

    value: ShareSnapshotValue
    leader_epoch: int
    state_epoch: int
    updates: int = 0
    snapshot_at: int = 0


class _ShareStates(HardState):
    """The share partitions of one partition of ``__share_group_state``."""

    __slots__ = ("states", "updates_per_snapshot")

    def __init__(self, updates_per_snapshot: int) -> None:
        super().__init__()
        self.updates_per_snapshot = updates_per_snapshot
        self.states: dict[SharePartitionKey, _SharePartitionState] = {}


class _Operation(ShardOperation):
    """One operation against the share partitions of a partition."""

    __slots__ = ()

    state: _ShareStates

    def find(self, key: SharePartitionKey, action: str) -> _SharePartitionState:
        """Return the state of a share partition. Raises ``RequestRefusedError`` if it is not initialized."""
        state = self.state.states.get(key)
        if state is None:
            _refuse(ErrorCode.INVALID_REQUEST, f"{action} operation on uninitialized share partition not allowed.")
        return state

    def write_snapshot(self, key: SharePartitionKey, value: ShareSnapshotValue | None) -> None:
        """Emit a snapshot, or a tombstone."""
        snapshot = ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
        self.emit(snapshot, value, None if value is None else _VERSION)

    def write_change(
        self,
        key: SharePartitionKey,
        state: _SharePartitionState,
        start_offset: int,
        complete: int,
        batches: Sequence[StateBatch] = (),
        leader_epoch: int | None = None,
    ) -> None:
        """Emit the record of a change: an update, or a snapshot after enough updates."""
        value = state.value
        if leader_epoch is None:
            leader_epoch = value.leader_epoch
        if state.updates < self.state.updates_per_snapshot:
            update = ShareUpdateValue(
                snapshot_epoch=value.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=complete,
                state_batches=tuple(copy_as(UpdateBatch, each) for each in combine_batches(batches, start_offset)),
            )
            changed = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
            self.emit(changed, update, _VERSION)
            return
        start = value.start_offset if start_offset == UNSET else start_offset
        snapshot = evolve(
            value,
            snapshot_epoch=value.snapshot_epoch + 1,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=combine_batches([*value.state_batches, *batches], start),
            create_timestamp=self.now,
            write_timestamp=self.now,
        )
        self.write_snapshot(key, snapshot)


class ShareCoordinator(CoordinatorRuntime[_ShareStates, _Operation]):
    """The coordinator of the share partitions whose state is in the partitions that it leads.

    ``append`` appends records to a partition of ``__share_group_state`` and returns the offset after them, or raises
    ``ApiError``. ``partition_count`` returns the number of partitions of a topic, 0 for an unknown one.
    ``delete_records`` deletes the records of a partition before an offset.

    Each request fails with INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, NOT_COORDINATOR or
    COORDINATOR_LOAD_IN_PROGRESS, or with the errors that its method lists. Futures settle when the records are
    committed.
    """

    def __init__(
        self,
        append: Callable[[RecordAppend | MarkerAppend], int],
        partition_count: Callable[[UUID], int],
        delete_records: Callable[[int, int], object],
        *,
        config: ShareCoordinatorConfig | None = None,
    ) -> None:
        self.config = config = config or ShareCoordinatorConfig()
        self._partition_count = partition_count
        self._delete_records = delete_records
        super().__init__(
            CoordinatorDefinition(
                topic=_TOPIC,
                new_state=partial(_ShareStates, config.updates_per_snapshot),
                new_operation=_Operation,
                appliers={ShareSnapshotKey: _apply_snapshot, ShareUpdateKey: _apply_update},
                write_timeout_ms=config.write_timeout_ms,
            ),
            append,
        )
        self.run_periodically(config.prune_interval_ms, self._prune, catches_up=False)
        self.run_periodically(config.snapshot_interval_ms, self._snapshot_cold, catches_up=False)

    def partition_for(self, key: SharePartitionKey) -> int:
        """Return the partition of ``__share_group_state`` with the state of a share partition."""
        return partition_for_key(key.text, self.config.partitions)

    # Requests

    def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int, now: int
    ) -> Future[None]:
        """Create the state of a share partition, or reset it with a higher ``state_epoch``.

        The error is FENCED_STATE_EPOCH.
        """

        def initialize(op: _Operation) -> None:
            _check_numbers(key, state_epoch=state_epoch)
            state = op.state.states.get(key)
            if state is not None and state.state_epoch > state_epoch:
                _refuse(ErrorCode.FENCED_STATE_EPOCH)
            self._check_topic(key)
            value = ShareSnapshotValue(
                snapshot_epoch=0 if state is None else state.value.snapshot_epoch + 1,
                state_epoch=state_epoch,
                start_offset=start_offset,
                delivery_complete_count=UNSET if start_offset == UNSET else 0,
                create_timestamp=op.now,
                write_timestamp=op.now,
            )
            op.write_snapshot(key, value)

        return self.write(self.partition_for(key), initialize, now=now)

    def read_state(self, key: SharePartitionKey, *, leader_epoch: int, now: int) -> Future[ShareSnapshotValue]:
        """Return the state of a share partition, and record the epoch of the leader that reads it.

        The error is FENCED_LEADER_EPOCH.
        """

        def read(op: _Operation) -> ShareSnapshotValue:
            _check_numbers(key, leader_epoch=leader_epoch)
            state = op.find(key, "Read")
            _check_leader(state, leader_epoch)
            self._check_topic(key)
            value = state.value
            if leader_epoch != state.leader_epoch:
                op.write_change(
                    key, state, value.start_offset, value.delivery_complete_count, leader_epoch=leader_epoch
                )
            return value

        return self.write(self.partition_for(key), read, now=now)

    def write_state(
        self,
        key: SharePartitionKey,
        batches: Iterable[StateBatch],
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete: int,
        now: int,
    ) -> Future[None]:
        """Change the state of a share partition. ``complete`` counts the finished records from the start offset on.

        The errors are FENCED_LEADER_EPOCH and FENCED_STATE_EPOCH.
        """

        def write(op: _Operation) -> None:
            _check_numbers(key, leader_epoch=leader_epoch, state_epoch=state_epoch)
            state = op.find(key, "Write")
            _check_leader(state, leader_epoch)
            if state.state_epoch > state_epoch:
                _refuse(ErrorCode.FENCED_STATE_EPOCH)
            self._check_topic(key)
            op.write_change(key, state, start_offset, complete, tuple(batches))

        return self.write(self.partition_for(key), write, now=now)

    def delete_state(self, key: SharePartitionKey, *, now: int) -> Future[None]:
        """Delete the state of a share partition, if it exists."""

        def delete(op: _Operation) -> None:
            _check_numbers(key)
            self._check_topic(key)
            if key in op.state.states:
                op.write_snapshot(key, None)

        return self.write(self.partition_for(key), delete, now=now)

    def read_summary(self, key: SharePartitionKey) -> ShareSnapshotValue | None:
        """Return the state of a share partition, or None. Raises ``ApiError``."""

        def read(op: _Operation) -> ShareSnapshotValue | None:
            _check_numbers(key)
            self._check_topic(key)
            state = op.state.states.get(key)
            return None if state is None else state.value

        return self.read(self.partition_for(key), read)

    def _check_topic(self, key: SharePartitionKey) -> None:
        if key.partition >= self._partition_count(key.topic_id):
            _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # Maintenance. If a write fails, the next round retries it.

    def forget_topics(self, topic_ids: Collection[UUID]) -> None:
        """Delete the state of the share partitions of deleted topics."""

        def forget(op: _Operation) -> None:
            for key in [each for each in op.state.states if each.topic_id in topic_ids]:
                op.write_snapshot(key, None)

        self.run_in_each([forget])

    def _snapshot_cold(self) -> None:
        """Write a snapshot of each share partition whose latest is old. Older records can then be deleted."""
        self.run_in_each([self._snapshot])

    def _snapshot(self, op: _Operation) -> None:
        states = op.state.states
        if all(each.value.create_timestamp != each.value.write_timestamp for each in states.values()):
            return
        for key, state in list(states.items()):
            value = state.value
            if op.now - value.write_timestamp >= self.config.snapshot_interval_ms:
                fresh = evolve(value, snapshot_epoch=value.snapshot_epoch + 1, write_timestamp=op.now)
                op.write_snapshot(key, fresh)

    def _prune(self) -> None:
        """Delete records that no share partition needs."""
        for partition, shard in self.shards.items():
            if shard.is_active and shard.state.states:
                self._delete_records(partition, min(each.snapshot_at for each in shard.state.states.values()))


def _apply_snapshot(
    states: _ShareStates, changes: Changes, key: ShareSnapshotKey, value: ShareSnapshotValue | None
) -> None:
    share = SharePartitionKey(key.group_id, key.topic_id, key.partition)
    if value is None:
        changes.delete(states.states, share)
        return
    before = states.states.get(share)
    updates = 0 if before is None or before.updates >= states.updates_per_snapshot else before.updates
    state = _SharePartitionState(
        value,
        value.leader_epoch if before is None else max(before.leader_epoch, value.leader_epoch),
        value.state_epoch if before is None else max(before.state_epoch, value.state_epoch),
        updates,
        states.position,
    )
    changes.set(states.states, share, state)


def _apply_update(states: _ShareStates, changes: Changes, key: ShareUpdateKey, value: ShareUpdateValue | None) -> None:
    if value is None:
        return
    share = SharePartitionKey(key.group_id, key.topic_id, key.partition)
    before = states.states.get(share)
    if before is None:
        merged = apply_update(None, value)
        state = _SharePartitionState(merged, merged.leader_epoch, merged.state_epoch, 1, states.position)
    else:
        state = evolve(
            before,
            value=apply_update(before.value, value),
            leader_epoch=max(before.leader_epoch, value.leader_epoch),
            updates=before.updates + 1,
        )
    changes.set(states.states, share, state)


def _check_numbers(key: SharePartitionKey, **epochs: int) -> None:
    for name, number in {"partition_id": key.partition, **epochs}.items():
        if number < 0:
            _refuse(ErrorCode.INVALID_REQUEST, f"The {name.replace('_', ' ')} cannot be a negative number.")


def _check_leader(state: _SharePartitionState, leader_epoch: int) -> None:
    if state.leader_epoch > leader_epoch:
        _refuse(ErrorCode.FENCED_LEADER_EPOCH)


def _refuse(error: ErrorCode, message: str | None = None) -> NoReturn:
    raise RequestRefusedError(error, message or _TEXTS.get(error))
