"""The share coordinator of a broker: share partition state as records of ``__share_group_state`` (KIP-932).

``ShareCoordinator`` uses no sockets, clocks or threads. Each state change is a record, which the coordinator passes to
its ``append`` function. If the append fails, the state is unchanged. A snapshot record contains the whole state of a
share partition, an update record only its changes; a snapshot follows after several updates. Times are in milliseconds
since the epoch. In Kafka this is ``ShareCoordinatorShard``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn
from uuid import UUID

from attrs import Factory, define, evolve

from kafka_msgs.broker.share.share_partition_key import SharePartitionKey
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.coordinator_partition import partition_for_key
from kafka_msgs.internal_topics.records import InternalRecord, TopicRecord
from kafka_msgs.internal_topics.share_state import apply_update, combine_batches
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue, StateBatch
from kafka_msgs.messages.share_update_key import ShareUpdateKey
from kafka_msgs.messages.share_update_value import ShareUpdateValue
from kafka_msgs.messages.share_update_value import StateBatch as UpdateBatch

__all__ = ["UNSET", "ShareCoordinator"]

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


@define
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


@define
class _Shard:
    epoch: int
    loading: bool = True
    states: dict[SharePartitionKey, _SharePartitionState] = Factory(dict)


class ShareCoordinator:
    """The coordinator of the share partitions whose state is in the partitions that it leads.

    ``append`` appends a record to a partition of ``__share_group_state`` and returns its offset, or raises
    ``RequestRefusedError``. ``partition_count`` returns the number of partitions of a topic, 0 for an unknown one.
    ``partitions`` is the number of partitions of ``__share_group_state``, and ``updates_per_snapshot`` is the number of
    updates between two snapshots.
    """

    def __init__(
        self,
        append: Callable[[int, TopicRecord], int],
        partition_count: Callable[[UUID], int],
        *,
        partitions: int = 50,
        updates_per_snapshot: int = 500,
    ) -> None:
        self._append = append
        self._partition_count = partition_count
        self._partitions = partitions
        self._updates_per_snapshot = updates_per_snapshot
        self._shards: dict[int, _Shard] = {}

    def partition_for(self, key: SharePartitionKey) -> int:
        """Return the partition of ``__share_group_state`` with the state of a share partition."""
        return partition_for_key(key.text, self._partitions)

    # Requests

    def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int, now: int) -> None:
        """Create the state of a share partition, or reset it with a higher ``state_epoch``.

        Raises ``RequestRefusedError`` with FENCED_STATE_EPOCH, or with the errors of all requests: INVALID_REQUEST,
        UNKNOWN_TOPIC_OR_PARTITION, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        shard = self._shard(key)
        _check_numbers(("partition id", key.partition), ("state epoch", state_epoch))
        state = shard.states.get(key)
        if state is not None and state.state_epoch > state_epoch:
            _refuse(ErrorCode.FENCED_STATE_EPOCH)
        self._check_topic(key)
        value = ShareSnapshotValue(
            snapshot_epoch=0 if state is None else state.value.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=UNSET if start_offset == UNSET else 0,
            create_timestamp=now,
            write_timestamp=now,
        )
        self._write(shard, key, _snapshot(key, value))

    def read(self, key: SharePartitionKey, *, leader_epoch: int, now: int) -> ShareSnapshotValue:
        """Return the state of a share partition, and record the epoch of the leader that reads it.

        Raises ``RequestRefusedError`` with FENCED_LEADER_EPOCH, or with the errors of all requests.
        """
        shard = self._shard(key)
        _check_numbers(("partition id", key.partition), ("leader epoch", leader_epoch))
        state = shard.states.get(key)
        if state is None:
            _refuse(ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed.")
        _check_leader(state, leader_epoch)
        self._check_topic(key)
        value = state.value
        if leader_epoch != state.leader_epoch:
            record = self._changed(
                key, state, value.start_offset, value.delivery_complete_count, (), now, leader_epoch=leader_epoch
            )
            self._write(shard, key, record)
        return value

    def write(
        self,
        key: SharePartitionKey,
        states: Iterable[StateBatch],
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete: int,
        now: int,
    ) -> None:
        """Change the state of a share partition. Raises ``RequestRefusedError``.

        ``complete`` counts the finished records from the start offset on. The errors are FENCED_LEADER_EPOCH,
        FENCED_STATE_EPOCH and the errors of all requests.
        """
        shard = self._shard(key)
        _check_numbers(("partition id", key.partition), ("leader epoch", leader_epoch), ("state epoch", state_epoch))
        state = shard.states.get(key)
        if state is None:
            _refuse(ErrorCode.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed.")
        _check_leader(state, leader_epoch)
        if state.state_epoch > state_epoch:
            _refuse(ErrorCode.FENCED_STATE_EPOCH)
        self._check_topic(key)
        self._write(shard, key, self._changed(key, state, start_offset, complete, tuple(states), now))

    def delete(self, key: SharePartitionKey) -> None:
        """Delete the state of a share partition, if it exists. Raises ``RequestRefusedError`` like all requests."""
        shard = self._shard(key)
        _check_numbers(("partition id", key.partition))
        self._check_topic(key)
        if key in shard.states:
            self._write(shard, key, _snapshot(key, None))

    def summary(self, key: SharePartitionKey) -> ShareSnapshotValue | None:
        """Return the state of a share partition, or None.

        Raises ``RequestRefusedError`` like all requests.
        """
        shard = self._shard(key)
        _check_numbers(("partition id", key.partition))
        self._check_topic(key)
        state = shard.states.get(key)
        return None if state is None else state.value

    # Maintenance

    def forget_topics(self, topic_ids: Collection[UUID]) -> None:
        """Delete the state of the share partitions of deleted topics."""
        for shard in self._loaded().values():
            for key in [each for each in shard.states if each.topic_id in topic_ids]:
                self._write_later(shard, key, _snapshot(key, None))

    def snapshot_cold(self, interval_ms: int, *, now: int) -> None:
        """Write a snapshot of each share partition whose latest is older than ``interval_ms``.

        Older records can then be deleted.
        """
        for shard in self._loaded().values():
            states = shard.states.values()
            if all(each.value.create_timestamp != each.value.write_timestamp for each in states):
                continue
            for key, state in list(shard.states.items()):
                value = state.value
                if now - value.write_timestamp >= interval_ms:
                    fresh = evolve(value, snapshot_epoch=value.snapshot_epoch + 1, write_timestamp=now)
                    self._write_later(shard, key, _snapshot(key, fresh))

    def _write_later(self, shard: _Shard, key: SharePartitionKey, record: TopicRecord) -> None:
        """Write a record that no client waits for. If the write fails, the next round retries it."""
        with suppress(RequestRefusedError):
            self._write(shard, key, record)

    def needed_from(self) -> Iterator[tuple[int, int]]:
        """Yield each partition with share partitions, and the offset below which its records are no longer needed."""
        for partition, shard in self._loaded().items():
            if shard.states:
                yield partition, min(each.snapshot_at for each in shard.states.values())

    # Partitions

    def elect(self, partition: int, epoch: int) -> None:
        """Become the leader of a partition. Until ``loaded``, requests get COORDINATOR_LOAD_IN_PROGRESS."""
        self._shards[partition] = _Shard(epoch)

    def load(self, partition: int, records: Iterable[InternalRecord], first_offset: int = 0) -> None:
        """Replay records of a loading partition, in order, from ``first_offset`` on."""
        shard = self._shards[partition]
        for offset, record in enumerate(records, first_offset):
            if isinstance(record, TopicRecord):
                self._apply(shard, record, offset)

    def loaded(self, partition: int) -> None:
        """Mark a partition as completely loaded."""
        self._shards[partition].loading = False

    def resign(self, partition: int, epoch: int | None = None) -> None:
        """Resign from a partition whose leader changed at an epoch. None means at any epoch."""
        shard = self._shards.get(partition)
        if shard is not None and (epoch is None or shard.epoch < epoch):
            del self._shards[partition]

    # Helpers

    def _loaded(self) -> dict[int, _Shard]:
        return {partition: shard for partition, shard in self._shards.items() if not shard.loading}

    def _shard(self, key: SharePartitionKey) -> _Shard:
        shard = self._shards.get(self.partition_for(key))
        if shard is None:
            _refuse(ErrorCode.NOT_COORDINATOR)
        if shard.loading:
            _refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _check_topic(self, key: SharePartitionKey) -> None:
        if key.partition >= self._partition_count(key.topic_id):
            _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _changed(
        self,
        key: SharePartitionKey,
        state: _SharePartitionState,
        start_offset: int,
        complete: int,
        batches: Sequence[StateBatch],
        now: int,
        *,
        leader_epoch: int | None = None,
    ) -> TopicRecord:
        """Return the record of a change: an update, or a snapshot after enough updates."""
        value = state.value
        if leader_epoch is None:
            leader_epoch = value.leader_epoch
        if state.updates < self._updates_per_snapshot:
            update = ShareUpdateValue(
                snapshot_epoch=value.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=complete,
                state_batches=tuple(map(_update_batch, combine_batches(batches, start_offset))),
            )
            return TopicRecord(
                topic=_TOPIC,
                key=ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
                value=update,
                version=_VERSION,
            )
        start = value.start_offset if start_offset == UNSET else start_offset
        snapshot = evolve(
            value,
            snapshot_epoch=value.snapshot_epoch + 1,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=combine_batches([*value.state_batches, *batches], start),
            create_timestamp=now,
            write_timestamp=now,
        )
        return _snapshot(key, snapshot)

    def _write(self, shard: _Shard, key: SharePartitionKey, record: TopicRecord) -> None:
        self._apply(shard, record, self._append(self.partition_for(key), record))

    def _apply(self, shard: _Shard, record: TopicRecord, offset: int) -> None:
        key, value = record.key, record.value
        if isinstance(key, ShareSnapshotKey):
            self._apply_snapshot(shard, SharePartitionKey(key.group_id, key.topic_id, key.partition), value, offset)
        elif isinstance(key, ShareUpdateKey) and isinstance(value, ShareUpdateValue):
            _apply_update(shard, SharePartitionKey(key.group_id, key.topic_id, key.partition), value, offset)

    def _apply_snapshot(self, shard: _Shard, key: SharePartitionKey, value: object, offset: int) -> None:
        if not isinstance(value, ShareSnapshotValue):
            shard.states.pop(key, None)
            return
        before = shard.states.get(key)
        if before is None:
            shard.states[key] = _SharePartitionState(value, value.leader_epoch, value.state_epoch, snapshot_at=offset)
            return
        before.value, before.snapshot_at = value, offset
        before.leader_epoch = max(before.leader_epoch, value.leader_epoch)
        before.state_epoch = max(before.state_epoch, value.state_epoch)
        if before.updates >= self._updates_per_snapshot:
            before.updates = 0


def _apply_update(shard: _Shard, key: SharePartitionKey, value: ShareUpdateValue, offset: int) -> None:
    state = shard.states.get(key)
    if state is None:
        merged = apply_update(None, value)
        shard.states[key] = _SharePartitionState(
            merged, merged.leader_epoch, merged.state_epoch, updates=1, snapshot_at=offset
        )
        return
    state.value = apply_update(state.value, value)
    state.leader_epoch = max(state.leader_epoch, value.leader_epoch)
    state.updates += 1


def _check_numbers(*numbers: tuple[str, int]) -> None:
    for name, number in numbers:
        if number < 0:
            _refuse(ErrorCode.INVALID_REQUEST, f"The {name} cannot be a negative number.")


def _check_leader(state: _SharePartitionState, leader_epoch: int) -> None:
    if state.leader_epoch > leader_epoch:
        _refuse(ErrorCode.FENCED_LEADER_EPOCH)


def _snapshot(key: SharePartitionKey, value: ShareSnapshotValue | None) -> TopicRecord:
    return TopicRecord(
        topic=_TOPIC,
        key=ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
        value=value,
        version=None if value is None else _VERSION,
    )


def _update_batch(batch: StateBatch) -> UpdateBatch:
    return UpdateBatch(
        first_offset=batch.first_offset,
        last_offset=batch.last_offset,
        delivery_state=batch.delivery_state,
        delivery_count=batch.delivery_count,
    )


def _refuse(error: ErrorCode, message: str | None = None) -> NoReturn:
    raise RequestRefusedError(error=error, message=message or _TEXTS.get(error))
